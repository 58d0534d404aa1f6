// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"fmt"
	"slices"

	"gpu.kubernetes.lab/fakes/internal/extender"
	"gpu.kubernetes.lab/fakes/internal/gpushare"
	"gpu.kubernetes.lab/fakes/internal/kube"
)

// ledger is the state of the extender: the cluster, and each GPU node as it was first read.
type ledger struct {
	*extender.Mirror

	cached map[string]*gpuNode
}

// gpuNode is a node in the cache. It is read again only while it has no GPUs or its capacity is not above zero, and its
// GPUs keep their size: a change of the unit or of the number of GPUs requires a restart, and so does a first read between
// the plugin's count and its memory. The original does the same, and the role has to handle it.
type gpuNode struct {
	memory, count int64
	totals        []int64 // of each GPU
}

func newLedger() *ledger {
	l := &ledger{Mirror: extender.NewMirror(), cached: map[string]*gpuNode{}}
	l.OnPod = l.loadNodeOfPod
	return l
}

// loadNode returns a node of the cache, and adds it if it is missing. The mutex is held.
func (l *ledger) loadNode(name string) (*gpuNode, error) {
	shown, exists := l.Node(name)
	if !exists {
		return nil, fmt.Errorf("node %s is not in the cluster", name)
	}
	node, known := l.cached[name]
	if !known {
		node = &gpuNode{}
		l.cached[name] = node
	}
	if len(node.totals) > 0 && node.memory > 0 && node.count > 0 {
		return node, nil
	}
	node.memory, node.count = int64(shown.Status.Capacity[gpushare.Memory]), int64(shown.Status.Capacity[gpushare.Count])
	if len(node.totals) == 0 && node.count > 0 && (!known || node.memory > 0) {
		node.totals = slices.Repeat([]int64{node.memory / node.count}, int(node.count))
	}
	return node, nil
}

// loadNodeOfPod adds the node of a pod that has a GPU. The mutex is held.
func (l *ledger) loadNodeOfPod(pod kube.Pod) {
	if _, placed := gpushare.Number(pod, gpushare.Index); placed && occupies(pod) {
		_, _ = l.loadNode(pod.Spec.NodeName)
	}
}

// occupies tells whether a pod counts: on a node, not ended, not being deleted, with a limit of memory.
func occupies(pod kube.Pod) bool {
	ended := pod.Status.Phase == "Succeeded" || pod.Status.Phase == "Failed"
	return pod.Spec.NodeName != "" && !ended && pod.Metadata.DeletionTimestamp == "" && gpushare.Request(pod) > 0
}

// onNode are the pods that count on the GPUs of a node, by the GPU. The mutex is held.
func (l *ledger) onNode(name string) map[int][]kube.Pod {
	found := map[int][]kube.Pod{}
	for _, pod := range l.Pods() {
		if index, placed := gpushare.Number(pod, gpushare.Index); placed && pod.Spec.NodeName == name && occupies(pod) {
			found[int(index)] = append(found[int(index)], pod)
		}
	}
	return found
}

func used(pods []kube.Pod) int64 {
	var sum int64
	for _, pod := range pods {
		amount, _ := gpushare.Number(pod, gpushare.PodMemory)
		sum += amount
	}
	return sum
}

// fit is the GPU with the smallest free memory that is enough, the lowest index among equals; false: none is enough.
func (l *ledger) fit(name string, request int64) (index int, total int64, ok bool, err error) {
	l.Lock()
	defer l.Unlock()
	node, err := l.loadNode(name)
	if err != nil {
		return 0, 0, false, err
	}
	if node.memory <= 0 {
		return 0, 0, false, fmt.Errorf("node %s has no %s", name, gpushare.Memory)
	}
	var least int64
	pods := l.onNode(name)
	for n, size := range node.totals {
		free := size - used(pods[n])
		if free >= request && (!ok || free < least) {
			index, total, least, ok = n, size, free, true
		}
	}
	return index, total, ok, nil
}
