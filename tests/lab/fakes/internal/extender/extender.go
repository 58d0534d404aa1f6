// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package extender is what the fakes of kube-scheduler's extenders have in common.
package extender

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"gpu.kubernetes.lab/fakes/internal/kube"
)

// DefaultPort is the one of both originals.
const DefaultPort = "39999"

// The types of k8s.io/kube-scheduler/extender/v1, which have no JSON tags, as far as they are used here.
type (
	// Args is what filter and prioritize get; NodeNames is nil where nodeCacheCapable is false.
	Args struct {
		Pod       *kube.Pod
		NodeNames *[]string
	}
	// FilterResult has the nodes on which a pod fits, and the reasons of the others.
	FilterResult struct {
		Nodes                      *struct{}
		NodeNames                  *[]string
		FailedNodes                map[string]string
		FailedAndUnresolvableNodes map[string]string
		Error                      string
	}
	// HostPriority is the score of a node, from 0 to 10.
	HostPriority struct {
		Host  string
		Score int64
	}
	// BindingArgs names a pod and the node that was chosen for it.
	BindingArgs struct {
		PodName, PodNamespace, PodUID, Node string
	}
	// BindingResult has an empty error where the pod is bound.
	BindingResult struct {
		Error string
	}
)

// Engine decides.
type Engine interface {
	Filter(args Args) FilterResult
	Bind(ctx context.Context, args BindingArgs) error
}

// Routes serve the calls of all extenders, under the prefix of their URL.
func Routes(prefix, version string, engine Engine, logger *log.Logger) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /version", func(response http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(response, version)
	})
	mux.HandleFunc("POST "+prefix+"/filter", func(response http.ResponseWriter, request *http.Request) {
		var args Args
		if err := json.NewDecoder(request.Body).Decode(&args); err != nil {
			Answer(response, http.StatusOK, FilterResult{Error: fmt.Sprintf("the arguments cannot be read: %v", err)}, logger)
			return
		}
		Answer(response, http.StatusOK, engine.Filter(args), logger)
	})
	mux.HandleFunc("POST "+prefix+"/bind", func(response http.ResponseWriter, request *http.Request) {
		var args BindingArgs
		err := json.NewDecoder(request.Body).Decode(&args)
		if err == nil {
			err = engine.Bind(request.Context(), args)
		}
		if err != nil {
			logger.Printf("bind of pod %s/%s to node %s failed: %v", args.PodNamespace, args.PodName, args.Node, err)
			Answer(response, http.StatusInternalServerError, BindingResult{Error: err.Error()}, logger)
			return
		}
		Answer(response, http.StatusOK, BindingResult{}, logger)
	})
	return mux
}

// Answer writes JSON.
func Answer(response http.ResponseWriter, status int, content any, logger *log.Logger) {
	response.Header().Set("Content-Type", "application/json")
	response.WriteHeader(status)
	if err := json.NewEncoder(response).Encode(content); err != nil {
		logger.Printf("an answer was not sent: %v", err)
	}
}

// Bind posts the binding of a pod to its node.
func Bind(ctx context.Context, client *kube.Client, args BindingArgs) error {
	return client.Create(ctx, kube.PodPath(args.PodNamespace, args.PodName)+"/binding", map[string]any{
		"apiVersion": "v1",
		"kind":       "Binding",
		"metadata":   map[string]string{"name": args.PodName, "namespace": args.PodNamespace, "uid": args.PodUID},
		"target":     map[string]string{"apiVersion": "v1", "kind": "Node", "name": args.Node},
	})
}

// Serve listens at a port (DefaultPort where it is empty) until the context ends.
func Serve(ctx context.Context, port string, handler http.Handler, logger *log.Logger) error {
	if port == "" {
		port = DefaultPort
	}
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return fmt.Errorf("PORT: %w", err)
	}
	logger.Printf("nodes and pods are known, listening at port %s", port)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ErrorLog: logger}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); ctx.Err() == nil {
		return err
	}
	return nil
}
