// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"sync"
	"time"

	"gpu.kubernetes.lab/standins/internal/gpushare"
	"gpu.kubernetes.lab/standins/internal/kube"
)

const (
	// version is what every build of the original answers; the rest says what this is.
	version = "0.1.0 (stand-in)\n"
	// tooSmall is the original's reason; users and tests look for it in a pod's events.
	tooSmall = "Insufficient GPU Memory in one device"
)

// The types of k8s.io/kube-scheduler/extender/v1, which have no JSON tags, as far as they are used here.
type (
	filterArgs struct {
		Pod       *kube.Pod
		NodeNames *[]string
	}
	filterResult struct {
		Nodes                      *struct{}
		NodeNames                  *[]string
		FailedNodes                map[string]string
		FailedAndUnresolvableNodes map[string]string
		Error                      string
	}
	bindingArgs struct {
		PodName, PodNamespace, PodUID, Node string
	}
	bindingResult struct {
		Error string
	}
)

// extender answers kube-scheduler.
type extender struct {
	ledger *ledger
	client *kube.Client
	log    *log.Logger
	// debug asks for a line for each call that is not an error.
	debug bool
	// binding is held from the choice of a GPU until the pod is bound.
	binding sync.Mutex
}

func (e *extender) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /version", func(response http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(response, version)
	})
	mux.HandleFunc("POST /gpushare-scheduler/filter", e.serveFilter)
	mux.HandleFunc("POST /gpushare-scheduler/bind", e.serveBind)
	mux.HandleFunc("GET /gpushare-scheduler/inspect", e.serveInspect)
	mux.HandleFunc("GET /gpushare-scheduler/inspect/{node}", e.serveInspect)
	return mux
}

func (e *extender) serveFilter(response http.ResponseWriter, request *http.Request) {
	var args filterArgs
	if err := json.NewDecoder(request.Body).Decode(&args); err != nil {
		e.answer(response, http.StatusOK, filterResult{Error: fmt.Sprintf("the arguments cannot be read: %v", err)})
		return
	}
	if args.Pod == nil || args.NodeNames == nil {
		e.log.Print("filter was called without a pod or without NodeNames; is nodeCacheCapable true in kube-scheduler's configuration?")
		panic(http.ErrAbortHandler) // the original dies of it, so that the scheduler reads EOF
	}
	e.answer(response, http.StatusOK, e.filter(*args.Pod, *args.NodeNames))
}

// filter keeps the nodes that have one GPU with enough free memory. A pod without limits passes, as one does whose only
// limit is that of an init container.
func (e *extender) filter(pod kube.Pod, names []string) filterResult {
	fitting, failed := []string{}, map[string]string{}
	for _, name := range names {
		switch _, _, ok, err := e.ledger.fit(name, gpushare.Request(pod)); {
		case err != nil:
			failed[name] = err.Error()
		case !ok:
			failed[name] = tooSmall
		default:
			fitting = append(fitting, name)
		}
	}
	if e.debug {
		e.log.Printf("filter: pod %s asks for %d, %d of %d nodes fit, refused: %v",
			pod, gpushare.Request(pod), len(fitting), len(names), failed)
	}
	return filterResult{NodeNames: &fitting, FailedNodes: failed}
}

func (e *extender) serveBind(response http.ResponseWriter, request *http.Request) {
	var args bindingArgs
	err := json.NewDecoder(request.Body).Decode(&args)
	if err == nil {
		err = e.bind(request.Context(), args)
	}
	if err != nil {
		e.log.Printf("bind of pod %s/%s to node %s failed: %v", args.PodNamespace, args.PodName, args.Node, err)
		e.answer(response, http.StatusInternalServerError, bindingResult{Error: err.Error()})
		return
	}
	e.answer(response, http.StatusOK, bindingResult{})
}

// bind chooses the GPU, writes the choice to the pod and binds the pod to the node.
func (e *extender) bind(ctx context.Context, args bindingArgs) error {
	e.binding.Lock()
	defer e.binding.Unlock()
	path := kube.PodPath(args.PodNamespace, args.PodName)
	var pod kube.Pod
	if err := e.client.Get(ctx, path, &pod); err != nil {
		return err
	}
	if pod.Metadata.UID != args.PodUID {
		return fmt.Errorf("pod %s has UID %s, and not %s", pod, pod.Metadata.UID, args.PodUID)
	}
	request := gpushare.Request(pod)
	if request <= 0 {
		return fmt.Errorf("pod %s has no limit of %s in a container", pod, gpushare.Memory)
	}
	index, total, ok, err := e.ledger.fit(args.Node, request)
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
	if err := e.client.Patch(ctx, path, gpushare.Annotate(annotations)); err != nil {
		return err
	}
	if err := e.client.Create(ctx, path+"/binding", bindingOf(args)); err != nil {
		return err
	}
	pod.Metadata.Annotations, pod.Spec.NodeName = annotations, args.Node
	e.ledger.assume(pod)
	e.log.Printf("bound pod %s to GPU %d of node %s, %d of %d", pod, index, args.Node, request, total)
	return nil
}

func bindingOf(args bindingArgs) map[string]any {
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "Binding",
		"metadata":   map[string]string{"name": args.PodName, "namespace": args.PodNamespace, "uid": args.PodUID},
		"target":     map[string]string{"apiVersion": "v1", "kind": "Node", "name": args.Node},
	}
}

func (e *extender) serveInspect(response http.ResponseWriter, request *http.Request) {
	nodes, err := e.ledger.inspect(request.PathValue("node"))
	if err != nil {
		e.log.Printf("inspect: %v", err)
		panic(http.ErrAbortHandler) // the original dies of a name that it does not know
	}
	e.answer(response, http.StatusOK, map[string]any{"nodes": nodes})
}

func (e *extender) answer(response http.ResponseWriter, status int, content any) {
	response.Header().Set("Content-Type", "application/json")
	response.WriteHeader(status)
	if err := json.NewEncoder(response).Encode(content); err != nil {
		e.log.Printf("an answer was not sent: %v", err)
	}
}
