// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package extender

import (
	"context"
	"log"
	"sync"

	"gpu.kubernetes.lab/fakes/internal/kube"
)

// Mirror is an extender's copy of the cluster: nodes and pods as the API shows them, and the pods that it has bound
// and that the API does not show as bound yet. Callers of Node and Pods hold its mutex.
type Mirror struct {
	sync.Mutex
	// OnPod is called, with the mutex held, for each new or changed pod, and for all pods when the nodes are listed again.
	OnPod func(kube.Pod)

	nodes   map[string]kube.Node
	pods    map[string]kube.Pod // by UID
	assumed map[string]kube.Pod
}

// NewMirror returns an empty mirror.
func NewMirror() *Mirror {
	return &Mirror{
		OnPod: func(kube.Pod) {},
		nodes: map[string]kube.Node{}, pods: map[string]kube.Pod{}, assumed: map[string]kube.Pod{},
	}
}

// Follow starts to watch nodes and pods and waits until both are known; false means that the context ended.
func (m *Mirror) Follow(ctx context.Context, client *kube.Client, logger *log.Logger) bool {
	nodes, pods := newFirst(m.NodeSink()), newFirst(m.PodSink())
	go kube.Follow(ctx, client, "/api/v1/nodes", nodes, logger)
	go kube.Follow(ctx, client, "/api/v1/pods", pods, logger)
	for _, known := range []<-chan struct{}{nodes.known, pods.known} {
		select {
		case <-known:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// Node is a node by its name.
func (m *Mirror) Node(name string) (kube.Node, bool) {
	node, exists := m.nodes[name]
	return node, exists
}

// Pods are all pods, those that are assumed as they were assumed.
func (m *Mirror) Pods() []kube.Pod {
	var found []kube.Pod
	for uid, pod := range m.pods {
		if _, isAssumed := m.assumed[uid]; !isAssumed {
			found = append(found, pod)
		}
	}
	for _, pod := range m.assumed {
		found = append(found, pod)
	}
	return found
}

// Assume counts a pod as bound before the API shows it.
func (m *Mirror) Assume(pod kube.Pod) {
	m.Lock()
	defer m.Unlock()
	m.assumed[pod.Metadata.UID] = pod
}

// NodeSink receives the nodes of a watch.
func (m *Mirror) NodeSink() kube.Sink[kube.Node] { return nodeSink{m} }

// PodSink receives the pods of a watch.
func (m *Mirror) PodSink() kube.Sink[kube.Pod] { return podSink{m} }

type nodeSink struct{ *Mirror }

func (s nodeSink) Replace(nodes []kube.Node) {
	s.Lock()
	defer s.Unlock()
	s.nodes = map[string]kube.Node{}
	for _, node := range nodes {
		s.nodes[node.Metadata.Name] = node
	}
	for _, pod := range s.pods {
		s.OnPod(pod)
	}
}

func (s nodeSink) Put(node kube.Node) {
	s.Lock()
	defer s.Unlock()
	s.nodes[node.Metadata.Name] = node
}

func (s nodeSink) Delete(node kube.Node) {
	s.Lock()
	defer s.Unlock()
	delete(s.nodes, node.Metadata.Name)
}

type podSink struct{ *Mirror }

func (s podSink) Replace(pods []kube.Pod) {
	s.Lock()
	defer s.Unlock()
	s.pods = map[string]kube.Pod{}
	for _, pod := range pods {
		s.pods[pod.Metadata.UID] = pod
	}
	for uid := range s.assumed {
		if pod, exists := s.pods[uid]; !exists || pod.Spec.NodeName != "" {
			delete(s.assumed, uid)
		}
	}
	for _, pod := range pods {
		s.OnPod(pod)
	}
}

func (s podSink) Put(pod kube.Pod) {
	s.Lock()
	defer s.Unlock()
	s.pods[pod.Metadata.UID] = pod
	if pod.Spec.NodeName != "" || pod.Metadata.DeletionTimestamp != "" {
		delete(s.assumed, pod.Metadata.UID)
	}
	s.OnPod(pod)
}

func (s podSink) Delete(pod kube.Pod) {
	s.Lock()
	defer s.Unlock()
	delete(s.pods, pod.Metadata.UID)
	delete(s.assumed, pod.Metadata.UID)
}

// first closes its channel after the first list.
type first[T any] struct {
	kube.Sink[T]

	known chan struct{}
	once  sync.Once
}

func newFirst[T any](sink kube.Sink[T]) *first[T] {
	return &first[T]{Sink: sink, known: make(chan struct{})}
}

// Replace stores a whole list.
func (f *first[T]) Replace(items []T) {
	f.Sink.Replace(items)
	f.once.Do(func() { close(f.known) })
}
