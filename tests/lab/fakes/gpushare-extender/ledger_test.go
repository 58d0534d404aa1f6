// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"gpu.kubernetes.lab/fakes/internal/gpushare"
	"gpu.kubernetes.lab/fakes/internal/kube"
)

func nodeOf(name string, memory, count int64) kube.Node {
	node := kube.Node{Metadata: kube.Meta{Name: name}}
	node.Status.Capacity = kube.Resources{gpushare.Memory: kube.Quantity(memory), gpushare.Count: kube.Quantity(count)}
	return node
}

// podOn is a running pod with one container of this limit, on a node's GPU by its annotations.
func podOn(node, name string, index int, limit int64) kube.Pod {
	pod := kube.Pod{Metadata: kube.Meta{Name: name, Namespace: "default", UID: name, Annotations: map[string]string{
		gpushare.Index: fmt.Sprint(index), gpushare.PodMemory: fmt.Sprint(limit),
	}}}
	container := kube.Container{}
	container.Resources.Limits = kube.Resources{gpushare.Memory: kube.Quantity(limit)}
	pod.Spec.NodeName, pod.Spec.Containers, pod.Status.Phase = node, []kube.Container{container}, "Running"
	return pod
}

func TestFit(t *testing.T) {
	change := func(pod kube.Pod, change func(*kube.Pod)) kube.Pod {
		change(&pod)
		return pod
	}
	cases := map[string]struct {
		pods    []kube.Pod
		request int64
		want    int // -1: none
	}{
		"the lowest of equals":            {nil, 3, 0},
		"the smallest that is enough":     {[]kube.Pod{podOn("n", "a", 1, 10), podOn("n", "b", 2, 4)}, 6, 1},
		"not one that is too full":        {[]kube.Pod{podOn("n", "a", 1, 10), podOn("n", "b", 2, 4)}, 7, 2},
		"all of one":                      {[]kube.Pod{podOn("n", "a", 0, 1), podOn("n", "b", 1, 1)}, 16, 2},
		"more than one":                   {nil, 17, -1},
		"no one has it, together they do": {[]kube.Pod{podOn("n", "a", 0, 10), podOn("n", "b", 1, 10), podOn("n", "c", 2, 10)}, 7, -1},
		"pods of another node":            {[]kube.Pod{podOn("other", "a", 0, 10)}, 3, 0},
		"a pod that ended":                {[]kube.Pod{change(podOn("n", "a", 1, 10), func(p *kube.Pod) { p.Status.Phase = "Succeeded" })}, 3, 0},
		"a pod that failed":               {[]kube.Pod{change(podOn("n", "a", 1, 10), func(p *kube.Pod) { p.Status.Phase = "Failed" })}, 3, 0},
		"a pod that is being deleted": {
			[]kube.Pod{change(podOn("n", "a", 1, 10), func(p *kube.Pod) { p.Metadata.DeletionTimestamp = "2026-01-01T00:00:00Z" })}, 3, 0,
		},
		"a pod that nobody placed": {
			[]kube.Pod{change(podOn("n", "a", 1, 10), func(p *kube.Pod) { p.Metadata.Annotations = nil })}, 3, 0,
		},
		"a pod on a GPU that is not there": {[]kube.Pod{podOn("n", "a", 3, 10), podOn("n", "b", -1, 10)}, 3, 0},
		"the annotation counts, not the limit": {
			[]kube.Pod{change(podOn("n", "a", 1, 10), func(p *kube.Pod) { p.Metadata.Annotations[gpushare.PodMemory] = "14" })}, 3, 0,
		},
		"an overbooked GPU":   {[]kube.Pod{podOn("n", "a", 0, 20), podOn("n", "b", 1, 16), podOn("n", "c", 2, 16)}, 1, -1},
		"nothing asked for":   {[]kube.Pod{podOn("n", "a", 0, 20)}, 0, 1},
		"two pods on a GPU":   {[]kube.Pod{podOn("n", "a", 1, 3), podOn("n", "b", 1, 5)}, 8, 1},
		"two that fill a GPU": {[]kube.Pod{podOn("n", "a", 1, 3), podOn("n", "b", 1, 5)}, 9, 0},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			l.NodeSink().Replace([]kube.Node{nodeOf("n", 48, 3), nodeOf("other", 48, 3)})
			l.PodSink().Replace(test.pods)
			index, total, ok, err := l.fit("n", test.request)
			if err != nil || ok != (test.want >= 0) || (ok && (index != test.want || total != 16)) {
				t.Errorf("got GPU %d of %d, %t, %v; want %d", index, total, ok, err, test.want)
			}
		})
	}
}

func TestFitOfNodesWithoutGPUs(t *testing.T) {
	l := newLedger()
	l.NodeSink().Replace([]kube.Node{nodeOf("bare", 0, 0), nodeOf("uncounted", 16, 0)})
	for name, want := range map[string]string{
		"bare": "node bare has no aliyun.com/gpu-mem", "absent": "node absent is not in the cluster", "uncounted": "",
	} {
		_, _, ok, err := l.fit(name, 1)
		if ok || (err == nil) != (want == "") || (err != nil && err.Error() != want) {
			t.Errorf("%s: got %t, %v", name, ok, err)
		}
	}
}

// What a user of the extender sees of its cache after each change of the node: the total, the number of GPUs, the size of
// GPU 0 (-1: there is none).
func TestANodeIsSeenOnce(t *testing.T) {
	type seen struct{ memory, count, total, gpus, size int64 }
	cases := map[string][]seen{
		"the unit changes":                     {{32, 2, 32, 2, 16}, {32768, 2, 32, 2, 16}},
		"the number of GPUs changes":           {{32, 2, 32, 2, 16}, {64, 4, 32, 2, 16}},
		"the memory falls to nothing and back": {{32, 2, 32, 2, 16}, {0, 2, 32, 2, 16}, {64, 2, 32, 2, 16}},
		"the count comes before the memory":    {{0, 2, 0, 2, 0}, {32, 2, 32, 2, 0}, {64, 2, 32, 2, 0}},
		"the memory comes before the count":    {{32, 0, 32, 0, -1}, {32, 2, 32, 2, 16}, {64, 2, 32, 2, 16}},
		"both come after the first look":       {{0, 0, 0, 0, -1}, {32, 2, 32, 2, 16}},
		"the count comes late, then the unit":  {{0, 0, 0, 0, -1}, {0, 2, 0, 0, -1}, {32, 2, 32, 2, 16}, {32768, 2, 32, 2, 16}},
		"GPUs of unequal parts":                {{33, 2, 33, 2, 16}},
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			for n, step := range steps {
				l.NodeSink().Put(nodeOf("n", step.memory, step.count))
				reports, err := l.inspect("n")
				if err != nil {
					t.Fatal(err)
				}
				got := seen{step.memory, step.count, reports[0].Total, int64(len(reports[0].Devices)), -1}
				if got.gpus > 0 {
					got.size = reports[0].Devices[0].Total
				}
				if got != step {
					t.Errorf("step %d: got %+v, want %+v", n, got, step)
				}
			}
			restarted := newLedger()
			last := steps[len(steps)-1]
			restarted.NodeSink().Put(nodeOf("n", last.memory, last.count))
			if reports, _ := restarted.inspect("n"); int64(len(reports[0].Devices)) != last.count {
				t.Errorf("a restart does not help: %v", reports)
			}
		})
	}
}

func TestInspect(t *testing.T) {
	l := newLedger()
	text := func() string {
		reports, err := l.inspect("")
		if err != nil {
			t.Fatal(err)
		}
		content, err := json.Marshal(reports)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	l.NodeSink().Replace([]kube.Node{nodeOf("n", 32, 2), nodeOf("idle", 32, 2)})
	if got := text(); got != "[]" {
		t.Errorf("a fresh extender knows %s", got)
	}
	l.PodSink().Put(podOn("n", "b", 1, 5))
	l.PodSink().Put(podOn("n", "a", 1, 3))
	want := `[{"name":"n","totalGPU":32,"usedGPU":8,"devs":[{"id":0,"totalGPU":16,"usedGPU":0,"pods":[]},` +
		`{"id":1,"totalGPU":16,"usedGPU":8,"pods":[{"name":"a","namespace":"default","usedGPU":3},{"name":"b","namespace":"default","usedGPU":5}]}]}]`
	if got := text(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	l.PodSink().Delete(podOn("n", "a", 1, 3))
	if reports, _ := l.inspect("n"); reports[0].Used != 5 {
		t.Errorf("after a pod has gone: %v", reports)
	}
}

func TestNodesOfPodsAreTakenInWhicheverIsListedFirst(t *testing.T) {
	nodes, pods := []kube.Node{nodeOf("n", 32, 2)}, []kube.Pod{podOn("n", "a", 0, 3)}
	first, second := newLedger(), newLedger()
	first.NodeSink().Replace(nodes)
	first.PodSink().Replace(pods)
	second.PodSink().Replace(pods)
	second.NodeSink().Replace(nodes)
	for _, l := range []*ledger{first, second} {
		if reports, _ := l.inspect(""); len(reports) != 1 || reports[0].Used != 3 {
			t.Errorf("got %v", reports)
		}
	}
}

func TestAnAssumedPodCountsOnceUntilItIsShownOrGone(t *testing.T) {
	bound := podOn("n", "a", 0, 3)
	unbound := podOn("", "a", 0, 3)
	cases := map[string]struct {
		then func(kube.Sink[kube.Pod])
		want int64
	}{
		"nothing is told":          {func(kube.Sink[kube.Pod]) {}, 3},
		"an older state is told":   {func(s kube.Sink[kube.Pod]) { s.Put(unbound) }, 3},
		"an older state is listed": {func(s kube.Sink[kube.Pod]) { s.Replace([]kube.Pod{unbound}) }, 3},
		"it is shown as bound":     {func(s kube.Sink[kube.Pod]) { s.Put(bound) }, 3},
		"it is listed as bound":    {func(s kube.Sink[kube.Pod]) { s.Replace([]kube.Pod{bound}) }, 3},
		"it is deleted":            {func(s kube.Sink[kube.Pod]) { s.Delete(bound) }, 0},
		"it is listed no more":     {func(s kube.Sink[kube.Pod]) { s.Replace(nil) }, 0},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			l.NodeSink().Put(nodeOf("n", 32, 2))
			l.PodSink().Put(unbound)
			l.Assume(bound)
			test.then(l.PodSink())
			if reports, _ := l.inspect("n"); reports[0].Used != test.want {
				t.Errorf("%d is used, want %d", reports[0].Used, test.want)
			}
		})
	}
}

func TestUnhealthyGPUsAreLeftOut(t *testing.T) {
	l := newLedger()
	l.NodeSink().Put(nodeOf("n", 48, 3))
	told := func(namespace, gpus string) kube.ConfigMap {
		return kube.ConfigMap{
			Metadata: kube.Meta{Name: "unhealthy-gpu-n", Namespace: namespace}, Data: map[string]string{"gpus": gpus},
		}
	}
	fits := func(when string, want int) {
		t.Helper()
		if index, _, ok, err := l.fit("n", 3); err != nil || ok != (want >= 0) || (ok && index != want) {
			t.Errorf("%s: GPU %d, %t, %v, want %d", when, index, ok, err, want)
		}
	}
	sink := healthSink{l}
	sink.Put(told("default", "0"))
	fits("in another namespace", 0)
	sink.Put(told("kube-system", "0, 1"))
	fits("two", 2)
	sink.Put(told("kube-system", "0,1,2"))
	fits("all", -1)
	sink.Replace([]kube.ConfigMap{told("kube-system", "0")})
	fits("one", 1)
	sink.Delete(told("kube-system", "0"))
	fits("none", 0)
}
