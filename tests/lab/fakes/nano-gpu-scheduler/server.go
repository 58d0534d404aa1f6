// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"net/http"
	"strconv"
	"sync"

	"gpu.kubernetes.lab/fakes/internal/extender"
	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/nanogpu"
)

const (
	version  = "0.3.0 (fake)\n"
	tooSmall = "no GPU has as much " + nanogpu.Percent + " free"
)

// answers has the answers to kube-scheduler.
type answers struct {
	ledger *ledger
	client *kube.Client
	log    *log.Logger
	// binding is held from the choice of the GPUs until the pod is bound.
	binding sync.Mutex
}

func (a *answers) handler() http.Handler {
	mux := extender.Routes("/scheduler", version, a, a.log)
	mux.HandleFunc("POST /scheduler/priorities", func(response http.ResponseWriter, request *http.Request) {
		var args extender.Args
		if err := json.NewDecoder(request.Body).Decode(&args); err != nil {
			http.Error(response, fmt.Sprintf("the arguments cannot be read: %v", err), http.StatusBadRequest)
			return
		}
		extender.Answer(response, http.StatusOK, a.prioritize(args), a.log)
	})
	return mux
}

// Filter keeps the nodes on which each container fits on one GPU. Without names of nodes it refuses, as the original.
func (a *answers) Filter(args extender.Args) extender.FilterResult {
	if args.Pod == nil || args.NodeNames == nil {
		return extender.FilterResult{Error: "there is no pod or there are no NodeNames; nodeCacheCapable has to be true"}
	}
	fitting, failed := []string{}, map[string]string{}
	for _, name := range *args.NodeNames {
		switch _, fits, err := a.ledger.place(name, *args.Pod); {
		case err != nil:
			failed[name] = err.Error()
		case !fits:
			failed[name] = tooSmall
		default:
			fitting = append(fitting, name)
		}
	}
	return extender.FilterResult{NodeNames: &fitting, FailedNodes: failed}
}

// prioritize scores the nodes that passed the filter.
func (a *answers) prioritize(args extender.Args) []extender.HostPriority {
	scores := []extender.HostPriority{}
	if args.Pod == nil || args.NodeNames == nil {
		return scores
	}
	for _, name := range *args.NodeNames {
		found, _, _ := a.ledger.place(name, *args.Pod)
		scores = append(scores, extender.HostPriority{Host: name, Score: found.score})
	}
	return scores
}

// Bind chooses the GPUs, writes the choice to the pod and binds the pod to the node.
func (a *answers) Bind(ctx context.Context, args extender.BindingArgs) error {
	a.binding.Lock()
	defer a.binding.Unlock()
	path := kube.PodPath(args.PodNamespace, args.PodName)
	var whole json.RawMessage
	if err := a.client.Get(ctx, path, &whole); err != nil {
		return err
	}
	var pod kube.Pod
	if err := json.Unmarshal(whole, &pod); err != nil {
		return err
	}
	if pod.Metadata.UID != args.PodUID {
		return fmt.Errorf("pod %s has UID %s, and not %s", pod, pod.Metadata.UID, args.PodUID)
	}
	found, fits, err := a.ledger.place(args.Node, pod)
	if err != nil {
		return err
	}
	if !fits {
		return errors.New(tooSmall)
	}
	if len(found.gpus) == 0 {
		return fmt.Errorf("pod %s has no limit of %s in a container", pod, nanogpu.Percent)
	}
	annotations := map[string]string{nanogpu.Assume: "true"}
	for container, index := range found.gpus {
		annotations[nanogpu.Container(container)] = strconv.Itoa(index)
	}
	if err := a.write(ctx, path, whole, annotations); err != nil {
		return err
	}
	if err := extender.Bind(ctx, a.client, args); err != nil {
		return err
	}
	pod.Metadata.Annotations, pod.Spec.NodeName = annotations, args.Node
	a.ledger.Assume(pod)
	a.log.Printf("bound pod %s to node %s, GPU of each container: %v", pod, args.Node, found.gpus)
	return nil
}

// write gives a pod the annotations and the label of one that is placed. It writes all of the pod, as the original; the
// role gives it no right to patch.
func (a *answers) write(ctx context.Context, path string, whole json.RawMessage, annotations map[string]string) error {
	var object map[string]any
	if err := json.Unmarshal(whole, &object); err != nil {
		return err
	}
	metadata, isMap := object["metadata"].(map[string]any)
	if !isMap {
		return errors.New("the pod has no metadata")
	}
	add := func(key string, values map[string]string) {
		known, _ := metadata[key].(map[string]any)
		merged := maps.Clone(known)
		if merged == nil {
			merged = map[string]any{}
		}
		for name, value := range values {
			merged[name] = value
		}
		metadata[key] = merged
	}
	add("annotations", annotations)
	add("labels", map[string]string{nanogpu.Assume: "true"})
	return a.client.Update(ctx, path, object)
}
