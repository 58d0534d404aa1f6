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

// unplaced is a pod with a container for each amount: main-0, main-1 and so on.
func unplaced(name string, amounts ...int64) kube.Pod {
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
	pod := unplaced(name, amount)
	pod.Metadata.Annotations = map[string]string{nanogpu.Assume: "true", nanogpu.Container("main-0"): strconv.Itoa(gpu)}
	pod.Spec.NodeName, pod.Status.Phase = node, "Running"
	return pod
}

func TestPlaceFindsAGPUForEachContainer(t *testing.T) {
	ended, bypassed := podOn("n", "a", 1, 60), podOn("n", "a", 1, 60)
	ended.Status.Phase = "Succeeded"
	delete(bypassed.Metadata.Annotations, nanogpu.Assume)
	busy := []kube.Pod{podOn("n", "a", 1, 60), podOn("n", "b", 2, 20)}
	cases := map[string]struct {
		policy    string
		pods      []kube.Pod
		requested []int64
		want      []int // nil: it does not fit
		score     int64
	}{
		"the lowest of equals":       {binpack, nil, []int64{20}, []int{0}, 0},
		"the fullest that is enough": {binpack, busy, []int64{40}, []int{1}, 4},
		"not one that is too full":   {binpack, busy, []int64{41}, []int{2}, 4},
		"the emptiest":               {spread, busy, []int64{20}, []int{0}, 7},
		"more than one GPU":          {binpack, nil, []int64{101}, nil, 0},
		"only all together":          {binpack, []kube.Pod{podOn("n", "a", 0, 60), podOn("n", "b", 1, 60), podOn("n", "c", 2, 60)}, []int64{41}, nil, 0},
		"two containers":             {binpack, busy, []int64{50, 50}, []int{2, 0}, 6},
		"a pod of another node":      {binpack, []kube.Pod{podOn("other", "a", 1, 60)}, []int64{20}, []int{0}, 0},
		"a pod that has ended":       {binpack, []kube.Pod{ended}, []int64{20}, []int{0}, 0},
		"a pod that was not placed":  {binpack, []kube.Pod{bypassed}, []int64{20}, []int{0}, 0},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			l := newLedger(test.policy)
			l.NodeSink().Replace([]kube.Node{nodeOf("n", 3), nodeOf("other", 3)})
			l.PodSink().Replace(test.pods)
			found, fits, err := l.place("n", unplaced("new", test.requested...))
			want := map[string]int{}
			for n, gpu := range test.want {
				want[fmt.Sprintf("main-%d", n)] = gpu
			}
			if err != nil || fits != (test.want != nil) || (fits && (!maps.Equal(found.gpus, want) || found.score != test.score)) {
				t.Errorf("got %+v, %t, %v; want %v with score %d", found, fits, err, want, test.score)
			}
		})
	}
}

// A fault of the original, because of which the role restarts the extender.
func TestNodeIsReadOnce(t *testing.T) {
	for before, after := range map[int64]int64{0: 2, 1: 2} {
		l, restarted := newLedger(spread), newLedger(spread)
		l.NodeSink().Put(nodeOf("n", before))
		_, _, _ = l.place("n", unplaced("first", 1))
		l.NodeSink().Put(nodeOf("n", after))
		restarted.NodeSink().Put(nodeOf("n", after))
		_, fits, _ := l.place("n", unplaced("two", 100, 100))
		_, fitsRestarted, err := restarted.place("n", unplaced("two", 100, 100))
		if fits || !fitsRestarted || err != nil {
			t.Errorf("%d GPUs, then %d: fits %t, after a restart %t, %v", before, after, fits, fitsRestarted, err)
		}
	}
}

// A pod that the extender has not placed gets no GPU from the agent, so that a scenario fails when the extender was not called.
func TestOnlyAPlacedPodHasAGPU(t *testing.T) {
	pod := podOn("n", "a", 1, 60)
	if gpu, placed := nanogpu.GPU(pod, "main-0"); gpu != 1 || !placed {
		t.Errorf("got GPU %d, %t", gpu, placed)
	}
	if gpu, placed := nanogpu.GPU(pod, "other"); placed {
		t.Errorf("another container has GPU %d", gpu)
	}
	delete(pod.Metadata.Annotations, nanogpu.Assume)
	if gpu, placed := nanogpu.GPU(pod, "main-0"); placed {
		t.Errorf("a pod that was not placed has GPU %d", gpu)
	}
}
