// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"testing"

	"gpu.kubernetes.lab/fakes/internal/gpushare"
	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/nvml"
)

// A fault of the original: each GPU is reported with the memory of the first, in whole units.
func TestUnitsAreThoseOfTheFirstGPU(t *testing.T) {
	gpus := []nvml.GPU{{UUID: "GPU-a", MemoryBytes: 15109 << 20}, {UUID: "GPU-b", MemoryBytes: 40960 << 20}}
	for unit, want := range map[string]int{"GiB": 14, "MiB": 15109} {
		if got, err := unitsOf(gpus, unit); err != nil || got != want {
			t.Errorf("%s: got %d, %v", unit, got, err)
		}
	}
	if _, err := unitsOf([]nvml.GPU{{UUID: "GPU-a", MemoryBytes: 1023 << 20}}, "GiB"); err == nil {
		t.Error("a GPU with less than one unit is offered")
	}
}

func pendingPod(name, assumed, assigned string, limits ...int64) kube.Pod {
	pod := kube.Pod{Metadata: kube.Meta{Name: name, Annotations: map[string]string{
		gpushare.AssumeTime: assumed, gpushare.Assigned: assigned,
	}}}
	for _, limit := range limits {
		container := kube.Container{}
		container.Resources.Limits = kube.Resources{gpushare.Memory: kube.Quantity(limit)}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	return pod
}

// A pod that the extender has not placed gets no GPU, so that a scenario fails when the extender was not called.
func TestChooseTakesTheOldestPlacedPodOfThatAmount(t *testing.T) {
	const earlier, later = "999999999999999999", "1000000000000000000" // as texts the other way round
	cases := map[string]struct {
		pods []kube.Pod
		want string
	}{
		"the amount":             {[]kube.Pod{pendingPod("five", earlier, "false", 5), pendingPod("three", later, "false", 3)}, "three"},
		"the oldest":             {[]kube.Pod{pendingPod("later", later, "false", 3), pendingPod("earlier", earlier, "false", 3)}, "earlier"},
		"all containers":         {[]kube.Pod{pendingPod("half", earlier, "false", 3, 3), pendingPod("sum", later, "false", 2, 1)}, "sum"},
		"not one with a GPU":     {[]kube.Pod{pendingPod("assigned", earlier, "true", 3)}, ""},
		"not one without a time": {[]kube.Pod{pendingPod("bypassed", "", "", 3), pendingPod("half", "", "false", 3)}, ""},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got, found := choose(test.pods, 3)
			if got.Metadata.Name != test.want || found != (test.want != "") {
				t.Errorf("got %q, %t", got.Metadata.Name, found)
			}
		})
	}
	plugin := &service{gpus: []nvml.GPU{{Index: 0, UUID: "GPU-a"}}}
	elsewhere := pendingPod("elsewhere", earlier, "false", 3)
	elsewhere.Metadata.Annotations[gpushare.Index] = "1"
	if gpu, err := plugin.gpuOf(elsewhere); err == nil {
		t.Errorf("a pod on a GPU that does not exist gets %v", gpu)
	}
}
