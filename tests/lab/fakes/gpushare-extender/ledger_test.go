// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
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

func TestFitIsTheFullestGPUThatIsEnough(t *testing.T) {
	with := func(pod kube.Pod, change func(*kube.Pod)) []kube.Pod {
		change(&pod)
		return []kube.Pod{pod}
	}
	busy := []kube.Pod{podOn("n", "a", 1, 10), podOn("n", "b", 2, 4)}
	cases := map[string]struct {
		pods    []kube.Pod
		request int64
		want    int // -1: none
	}{
		"the lowest of equals":       {nil, 3, 0},
		"the fullest that is enough": {busy, 6, 1},
		"not one that is too full":   {busy, 7, 2},
		"more than one GPU":          {nil, 17, -1},
		"only all together":          {[]kube.Pod{podOn("n", "a", 0, 10), podOn("n", "b", 1, 10), podOn("n", "c", 2, 10)}, 7, -1},
		"two pods on a GPU":          {[]kube.Pod{podOn("n", "a", 1, 3), podOn("n", "b", 1, 5)}, 9, 0},
		"a pod of another node":      {[]kube.Pod{podOn("other", "a", 1, 10)}, 3, 0},
		"a pod that has ended":       {with(podOn("n", "a", 1, 10), func(p *kube.Pod) { p.Status.Phase = "Succeeded" }), 3, 0},
		"a pod that is deleted":      {with(podOn("n", "a", 1, 10), func(p *kube.Pod) { p.Metadata.DeletionTimestamp = "2026-01-01T00:00:00Z" }), 3, 0},
		"a pod that was not placed":  {with(podOn("n", "a", 1, 10), func(p *kube.Pod) { p.Metadata.Annotations = nil }), 3, 0},
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

// A fault of the original, because of which the role restarts the extender: a change of a node's capacity is not read.
func TestNodeIsReadOnce(t *testing.T) {
	type capacity struct{ memory, count, size int64 } // size of GPU 0 as the extender has it; -1: none
	cases := map[string][]capacity{
		"the unit changes":                 {{32, 2, 16}, {32768, 2, 16}},
		"the number of GPUs changes":       {{32, 2, 16}, {64, 4, 16}},
		"the count comes before the rest":  {{0, 2, -1}, {32, 2, -1}, {64, 2, -1}},
		"the memory comes before the rest": {{32, 0, -1}, {32, 2, 16}, {64, 2, 16}},
	}
	size := func(l *ledger) int64 {
		if _, total, ok, _ := l.fit("n", 1); ok {
			return total
		}
		return -1
	}
	for name, steps := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			for n, step := range steps {
				l.NodeSink().Put(nodeOf("n", step.memory, step.count))
				if got := size(l); got != step.size {
					t.Errorf("step %d: got %d, want %d", n, got, step.size)
				}
			}
			last, restarted := steps[len(steps)-1], newLedger()
			restarted.NodeSink().Put(nodeOf("n", last.memory, last.count))
			if got := size(restarted); got != last.memory/last.count {
				t.Errorf("after a restart: got %d", got)
			}
		})
	}
}

// A pod that was bound counts at once, so that the next pod does not overbook its GPU.
func TestBoundPodCountsOnceBeforeTheAPIShowsIt(t *testing.T) {
	bound, unbound := podOn("n", "a", 0, 10), podOn("", "a", 0, 10)
	cases := map[string]struct {
		then func(kube.Sink[kube.Pod])
		want bool // whether GPU 0 has 10 of 16 free
	}{
		"nothing is shown":         {func(kube.Sink[kube.Pod]) {}, false},
		"an older state is shown":  {func(s kube.Sink[kube.Pod]) { s.Put(unbound) }, false},
		"an older state is listed": {func(s kube.Sink[kube.Pod]) { s.Replace([]kube.Pod{unbound}) }, false},
		"it is shown as bound":     {func(s kube.Sink[kube.Pod]) { s.Put(bound) }, false},
		"it is listed as bound":    {func(s kube.Sink[kube.Pod]) { s.Replace([]kube.Pod{bound}) }, false},
		"it is deleted":            {func(s kube.Sink[kube.Pod]) { s.Delete(bound) }, true},
		"it is listed no more":     {func(s kube.Sink[kube.Pod]) { s.Replace(nil) }, true},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLedger()
			l.NodeSink().Put(nodeOf("n", 16, 1))
			l.PodSink().Put(unbound)
			l.Assume(bound)
			test.then(l.PodSink())
			if _, _, ok, err := l.fit("n", 10); ok != test.want || err != nil {
				t.Errorf("got %t, %v, want %t", ok, err, test.want)
			}
			if _, _, ok, _ := l.fit("n", 6); !ok {
				t.Error("the pod counts twice")
			}
		})
	}
}
