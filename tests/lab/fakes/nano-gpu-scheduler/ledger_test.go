// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"
	"maps"
	"strconv"
	"testing"

	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/nanogpu"
)

func nodeOf(name string, gpus int64) kube.Node {
	node := kube.Node{Metadata: kube.Meta{Name: name}}
	node.Status.Capacity = kube.Resources{nanogpu.Percent: kube.Quantity(gpus * nanogpu.Whole)}
	return node
}

// asking is a pod that nobody placed, with a container for each amount: main-0, main-1 and so on.
func asking(name string, amounts ...int64) kube.Pod {
	pod := kube.Pod{Metadata: kube.Meta{Name: name, Namespace: "default", UID: name, Annotations: map[string]string{}}}
	for n, amount := range amounts {
		container := kube.Container{Name: fmt.Sprintf("main-%d", n)}
		container.Resources.Limits = kube.Resources{nanogpu.Percent: kube.Quantity(amount)}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	return pod
}

// podOn is a running pod with one container on a node's GPU.
func podOn(node, name string, gpu int, amount int64) kube.Pod {
	pod := asking(name, amount)
	pod.Metadata.Annotations = map[string]string{nanogpu.Assume: "true", nanogpu.Container("main-0"): strconv.Itoa(gpu)}
	pod.Spec.NodeName, pod.Status.Phase = node, "Running"
	return pod
}

func TestPlace(t *testing.T) {
	ended := podOn("n", "a", 1, 60)
	ended.Status.Phase = "Succeeded"
	unplaced := podOn("n", "a", 1, 60)
	delete(unplaced.Metadata.Annotations, nanogpu.Assume)
	busy := []kube.Pod{podOn("n", "a", 1, 60), podOn("n", "b", 2, 20)}
	cases := map[string]struct {
		policy string
		pods   []kube.Pod
		asked  []int64
		want   []int // nil: it does not fit
		score  int64
	}{
		"the lowest of equals":             {binpack, nil, []int64{20}, []int{0}, 0},
		"the fullest that has enough":      {binpack, busy, []int64{40}, []int{1}, 4},
		"not one that is too full":         {binpack, busy, []int64{41}, []int{2}, 4},
		"the emptiest":                     {spread, busy, []int64{20}, []int{0}, 7},
		"all of one":                       {binpack, busy, []int64{100}, []int{0}, 6},
		"more than one":                    {binpack, nil, []int64{101}, nil, 0},
		"no one has it, together they do":  {binpack, []kube.Pod{podOn("n", "a", 0, 60), podOn("n", "b", 1, 60), podOn("n", "c", 2, 60)}, []int64{41}, nil, 0},
		"each container has its own":       {binpack, busy, []int64{40, 80}, []int{1, 2}, 6},
		"containers count among another":   {binpack, busy, []int64{40, 1}, []int{1, 2}, 4},
		"one of them does not fit":         {binpack, busy, []int64{1, 101}, nil, 0},
		"a container that asks for none":   {binpack, busy, []int64{0, 40}, []int{-1, 1}, 4},
		"pods of another node":             {binpack, []kube.Pod{podOn("other", "a", 1, 60)}, []int64{20}, []int{0}, 0},
		"a pod that ended":                 {binpack, []kube.Pod{ended}, []int64{20}, []int{0}, 0},
		"a pod that nobody placed":         {binpack, []kube.Pod{unplaced}, []int64{20}, []int{0}, 0},
		"a pod on a GPU that is not there": {binpack, []kube.Pod{podOn("n", "a", 3, 60), podOn("n", "b", -1, 60)}, []int64{20}, []int{0}, 0},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLedger(test.policy)
			l.NodeSink().Replace([]kube.Node{nodeOf("n", 3), nodeOf("other", 3)})
			l.PodSink().Replace(test.pods)
			found, fits, err := l.place("n", asking("new", test.asked...))
			want := map[string]int{}
			for n, gpu := range test.want {
				if gpu >= 0 {
					want[fmt.Sprintf("main-%d", n)] = gpu
				}
			}
			if err != nil || fits != (test.want != nil) || (fits && (!maps.Equal(found.gpus, want) || found.score != test.score)) {
				t.Errorf("got %+v, %t, %v; want %v with score %d", found, fits, err, want, test.score)
			}
		})
	}
}

// The trap of the original, because of which the role has it start anew.
func TestANodeIsLookedAtOnce(t *testing.T) {
	for name, step := range map[string]struct{ before, after int64 }{
		"a node that offers later": {0, 2}, "a node with more GPUs": {1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(spread)
			l.NodeSink().Put(nodeOf("n", step.before))
			_, _, _ = l.place("n", asking("first", 1))
			l.NodeSink().Put(nodeOf("n", step.after))
			if _, fits, _ := l.place("n", asking("two", 100, 100)); fits {
				t.Error("it has seen the change")
			}
			restarted := newLedger(spread)
			restarted.NodeSink().Put(nodeOf("n", step.after))
			if _, fits, err := restarted.place("n", asking("two", 100, 100)); !fits {
				t.Errorf("a restart does not help: %v", err)
			}
		})
	}
}

func TestAnUnknownNode(t *testing.T) {
	if _, fits, err := newLedger(binpack).place("n", asking("new", 1)); fits || err == nil || err.Error() != "node n is not in the cluster" {
		t.Errorf("%t, %v", fits, err)
	}
}
