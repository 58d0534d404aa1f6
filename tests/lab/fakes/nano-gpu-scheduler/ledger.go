// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"

	"gpu.kubernetes.lab/fakes/internal/extender"
	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/nanogpu"
)

// The policies: GPUs are filled one after the other, or evenly.
const (
	binpack = "binpack"
	spread  = "spread"
)

// mostWanted is the highest score of a node.
const mostWanted = 10

// ledger is the state of the extender: the cluster, and the number of GPUs of a node when it was first read. It is never
// read again, as by the original: a change, or a later resource, requires a restart.
type ledger struct {
	*extender.Mirror

	policy string
	gpus   map[string]int
}

func newLedger(policy string) *ledger {
	l := &ledger{Mirror: extender.NewMirror(), policy: policy, gpus: map[string]int{}}
	l.OnPod = func(pod kube.Pod) {
		if occupies(pod) {
			_, _ = l.countGPUs(pod.Spec.NodeName)
		}
	}
	return l
}

// countGPUs returns the number of a node's GPUs. The mutex is held.
func (l *ledger) countGPUs(name string) (int, error) {
	if gpus, known := l.gpus[name]; known {
		return gpus, nil
	}
	shown, exists := l.Node(name)
	if !exists {
		return 0, fmt.Errorf("node %s is not in the cluster", name)
	}
	l.gpus[name] = int(shown.Status.Capacity[nanogpu.Percent]) / nanogpu.Whole
	return l.gpus[name], nil
}

// occupies tells whether a pod counts: placed on a node, and not ended.
func occupies(pod kube.Pod) bool {
	ended := pod.Status.Phase == "Succeeded" || pod.Status.Phase == "Failed"
	return pod.Spec.NodeName != "" && !ended && pod.Metadata.Annotations[nanogpu.Assume] == "true"
}

// used are the hundredths of each GPU that pods have, by its index. The mutex is held.
func (l *ledger) used(name string, gpus int) []int64 {
	amounts := make([]int64, gpus)
	for _, pod := range l.Pods() {
		if pod.Spec.NodeName != name || !occupies(pod) {
			continue
		}
		for _, container := range pod.Spec.Containers {
			if index, placed := nanogpu.GPU(pod, container.Name); placed && index >= 0 && index < gpus {
				amounts[index] += nanogpu.Request(container)
			}
		}
	}
	return amounts
}

// plan has the GPU of each container of a pod on a node, by name, and the score of that node.
type plan struct {
	gpus  map[string]int
	score int64
}

// place finds a GPU for each container that asks for hundredths; false: one does not fit on any.
func (l *ledger) place(name string, pod kube.Pod) (plan, bool, error) {
	l.Lock()
	defer l.Unlock()
	gpus, err := l.countGPUs(name)
	if err != nil {
		return plan{}, false, err
	}
	used, found := l.used(name, gpus), plan{gpus: map[string]int{}}
	for _, container := range pod.Spec.Containers {
		request := nanogpu.Request(container)
		if request <= 0 {
			continue
		}
		chosen := l.choose(used, request)
		if chosen < 0 {
			return plan{}, false, nil
		}
		used[chosen] += request
		found.gpus[container.Name] = chosen
	}
	found.score = l.score(used)
	return found, true, nil
}

// choose is the GPU that the policy takes, the lowest index among equals; -1: none has as much free.
func (l *ledger) choose(used []int64, request int64) int {
	chosen := -1
	for index, amount := range used {
		better := chosen < 0 || (l.policy == binpack && amount > used[chosen]) || (l.policy == spread && amount < used[chosen])
		if amount+request <= nanogpu.Whole && better {
			chosen = index
		}
	}
	return chosen
}

// score is from 0 to mostWanted: the fuller a node, the better or the worse.
func (l *ledger) score(used []int64) int64 {
	if len(used) == 0 {
		return 0
	}
	var sum int64
	for _, amount := range used {
		sum += amount
	}
	full := mostWanted * sum / int64(len(used)*nanogpu.Whole)
	if l.policy == spread {
		return mostWanted - full
	}
	return full
}
