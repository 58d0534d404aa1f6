// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"strconv"
	"sync"
	"time"

	"gpu.kubernetes.lab/fakes/internal/extender"
	"gpu.kubernetes.lab/fakes/internal/gpushare"
	"gpu.kubernetes.lab/fakes/internal/kube"
)

const (
	// version is the answer of every build of the original, with "(fake)".
	version = "0.1.0 (fake)\n"
	// tooSmall is the original's reason; users and tests look for it in a pod's events.
	tooSmall = "Insufficient GPU Memory in one device"
)

// answers has the answers to kube-scheduler.
type answers struct {
	ledger *ledger
	client *kube.Client
	log    *log.Logger
	// debug enables a line for each call that is not an error.
	debug bool
	// binding is held from the choice of a GPU until the pod is bound.
	binding sync.Mutex
}

// Filter keeps the nodes that have one GPU with enough free memory. A pod without limits passes, as one does whose only
// limit is that of an init container.
func (a *answers) Filter(args extender.Args) extender.FilterResult {
	if args.Pod == nil || args.NodeNames == nil {
		a.log.Print("filter was called without a pod or without NodeNames; is nodeCacheCapable true in kube-scheduler's configuration?")
		panic(http.ErrAbortHandler) // the original crashes, so that the scheduler reads EOF
	}
	pod, names := *args.Pod, *args.NodeNames
	fitting, failed := []string{}, map[string]string{}
	for _, name := range names {
		switch _, _, ok, err := a.ledger.fit(name, gpushare.Request(pod)); {
		case err != nil:
			failed[name] = err.Error()
		case !ok:
			failed[name] = tooSmall
		default:
			fitting = append(fitting, name)
		}
	}
	if a.debug {
		a.log.Printf("filter: pod %s asks for %d, %d of %d nodes fit, refused: %v",
			pod, gpushare.Request(pod), len(fitting), len(names), failed)
	}
	return extender.FilterResult{NodeNames: &fitting, FailedNodes: failed}
}

// Bind chooses the GPU, writes the choice to the pod and binds the pod to the node.
func (a *answers) Bind(ctx context.Context, args extender.BindingArgs) error {
	a.binding.Lock()
	defer a.binding.Unlock()
	path := kube.PodPath(args.PodNamespace, args.PodName)
	var pod kube.Pod
	if err := a.client.Get(ctx, path, &pod); err != nil {
		return err
	}
	if pod.Metadata.UID != args.PodUID {
		return fmt.Errorf("pod %s has UID %s, and not %s", pod, pod.Metadata.UID, args.PodUID)
	}
	request := gpushare.Request(pod)
	if request <= 0 {
		return fmt.Errorf("pod %s has no limit of %s in a container", pod, gpushare.Memory)
	}
	index, total, ok, err := a.ledger.fit(args.Node, request)
	if err != nil {
		return err
	}
	if !ok {
		return errors.New(tooSmall)
	}
	annotations := map[string]string{
		gpushare.Index:      strconv.Itoa(index),
		gpushare.PodMemory:  strconv.FormatInt(request, 10),
		gpushare.GPUMemory:  strconv.FormatInt(total, 10),
		gpushare.Assigned:   "false",
		gpushare.AssumeTime: strconv.FormatInt(time.Now().UnixNano(), 10),
	}
	if err := a.client.Patch(ctx, path, gpushare.Annotate(annotations)); err != nil {
		return err
	}
	if err := extender.Bind(ctx, a.client, args); err != nil {
		return err
	}
	pod.Metadata.Annotations, pod.Spec.NodeName = annotations, args.Node
	a.ledger.Assume(pod)
	a.log.Printf("bound pod %s to GPU %d of node %s, %d of %d", pod, index, args.Node, request, total)
	return nil
}
