// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"strconv"
	"strings"
	"sync"

	"gpu.kubernetes.lab/standins/internal/kube"
)

// unhealthyPrefix starts the name of the ConfigMap in kube-system that lists a node's unhealthy GPUs under "gpus".
const unhealthyPrefix = "unhealthy-gpu-"

// podSink, nodeSink and healthSink are the faces of the ledger towards the API's watches.
type podSink struct{ *ledger }

func (s podSink) Replace(pods []kube.Pod) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.pods = map[string]kube.Pod{}
	for _, pod := range pods {
		s.pods[pod.Metadata.UID] = pod
	}
	for uid := range s.assumed {
		if pod, exists := s.pods[uid]; !exists || pod.Spec.NodeName != "" {
			delete(s.assumed, uid)
		}
	}
	s.lookAtPods(pods...)
}

func (s podSink) Put(pod kube.Pod) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.pods[pod.Metadata.UID] = pod
	if pod.Spec.NodeName != "" || pod.Metadata.DeletionTimestamp != "" {
		delete(s.assumed, pod.Metadata.UID)
	}
	s.lookAtPods(pod)
}

func (s podSink) Delete(pod kube.Pod) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.pods, pod.Metadata.UID)
	delete(s.assumed, pod.Metadata.UID)
}

type nodeSink struct{ *ledger }

func (s nodeSink) Replace(nodes []kube.Node) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.nodes = map[string]kube.Node{}
	for _, node := range nodes {
		s.nodes[node.Metadata.Name] = node
	}
	for _, pod := range s.pods {
		s.lookAtPods(pod)
	}
}

func (s nodeSink) Put(node kube.Node) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.nodes[node.Metadata.Name] = node
}

func (s nodeSink) Delete(node kube.Node) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.nodes, node.Metadata.Name)
}

type healthSink struct{ *ledger }

func (s healthSink) Replace(maps []kube.ConfigMap) {
	s.mutex.Lock()
	s.unhealthy = map[string]map[int]bool{}
	s.mutex.Unlock()
	for _, found := range maps {
		s.Put(found)
	}
}

func (s healthSink) Put(found kube.ConfigMap) {
	node, ours := strings.CutPrefix(found.Metadata.Name, unhealthyPrefix)
	if !ours || found.Metadata.Namespace != "kube-system" {
		return
	}
	indices := map[int]bool{}
	for _, word := range strings.Split(found.Data["gpus"], ",") {
		if index, err := strconv.Atoi(strings.TrimSpace(word)); err == nil {
			indices[index] = true
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.unhealthy[node] = indices
}

func (s healthSink) Delete(found kube.ConfigMap) {
	found.Data = nil
	s.Put(found)
}

// first closes its channel when the first list has been taken in.
type first[T any] struct {
	kube.Sink[T]

	known chan struct{}
	once  sync.Once
}

func newFirst[T any](sink kube.Sink[T]) *first[T] {
	return &first[T]{Sink: sink, known: make(chan struct{})}
}

// Replace takes in a whole list.
func (f *first[T]) Replace(items []T) {
	f.Sink.Replace(items)
	f.once.Do(func() { close(f.known) })
}
