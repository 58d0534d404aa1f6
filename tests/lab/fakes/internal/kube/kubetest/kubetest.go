// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package kubetest is an API server with nodes, pods and ConfigMaps in memory, for tests.
package kubetest

import (
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"gpu.kubernetes.lab/fakes/internal/kube"
)

// Token is what a request has to carry.
const Token = "token-of-the-test"

// Object is what JSON makes of an API object.
type Object = map[string]any

// Server answers what the fakes ask: get, list, watch, update, strategic merge patch of maps, and binding.
type Server struct {
	*httptest.Server

	mutex    sync.Mutex
	objects  map[string]Object // by path
	history  []event
	watchers map[chan Object]string // the collection each one watches
	denied   []string
	refused  int
	calls    []string
}

// event is one change; its resource version is its place in the history, from 1 on.
type event struct {
	path    string
	content Object
}

// Start serves until the test ends.
func Start(t *testing.T) *Server {
	t.Helper()
	s := &Server{objects: map[string]Object{}, watchers: map[chan Object]string{}}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s
}

// Pod stores a pod with one container that has this limit of gpu-mem ("" is none), and tells those who watch.
func (s *Server) Pod(name, node, limit, phase string, annotations map[string]string) {
	limits := map[string]string{}
	if limit != "" {
		limits["aliyun.com/gpu-mem"] = limit
	}
	s.PodOf(name, node, []map[string]string{limits}, phase, annotations)
}

// PodOf stores a pod whose containers, main, main-1, main-2 and so on, have these limits, and tells those who watch.
func (s *Server) PodOf(name, node string, limits []map[string]string, phase string, annotations map[string]string) {
	containers := []any{}
	for n, given := range limits {
		asked := Object{"cpu": "250m"}
		for key, value := range given {
			asked[key] = value
		}
		called := "main"
		if n > 0 {
			called = fmt.Sprintf("main-%d", n)
		}
		containers = append(containers, Object{"name": called, "resources": Object{"limits": asked}})
	}
	noted := Object{}
	for key, value := range annotations {
		noted[key] = value
	}
	s.Put(kube.PodPath("default", name), Object{
		"metadata": Object{"name": name, "namespace": "default", "uid": "uid-of-" + name, "annotations": noted},
		"spec":     Object{"nodeName": node, "containers": containers},
		"status":   Object{"phase": phase},
	})
}

// Node stores a node with this capacity.
func (s *Server) Node(name string, capacity map[string]string) {
	amounts := Object{"memory": "131072Ki"}
	for key, value := range capacity {
		amounts[key] = value
	}
	s.Put(kube.NodePath(name), Object{
		"metadata": Object{"name": name, "uid": "uid-of-" + name, "labels": Object{}},
		"status":   Object{"capacity": amounts, "allocatable": maps.Clone(amounts)},
	})
}

// Put stores an object and tells those who watch.
func (s *Server) Put(path string, object Object) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	kind := "ADDED"
	if s.objects[path] != nil {
		kind = "MODIFIED"
	}
	s.put(kind, path, object)
}

func (s *Server) put(kind, path string, object Object) {
	object["metadata"].(Object)["resourceVersion"] = strconv.Itoa(len(s.history) + 1)
	s.objects[path] = object
	s.tell(kind, path, object)
}

// Delete removes an object and tells those who watch.
func (s *Server) Delete(path string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	object := s.objects[path]
	delete(s.objects, path)
	s.tell("DELETED", path, object)
}

func (s *Server) tell(kind, path string, object Object) {
	change := event{path, Object{"type": kind, "object": clone(object)}}
	s.history = append(s.history, change)
	for watcher, collection := range s.watchers {
		if belongs(path, collection) {
			watcher <- change.content
		}
	}
}

// Deny answers 403 to every call that starts with one of these ("PATCH /api/v1/nodes").
func (s *Server) Deny(calls ...string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.denied = calls
}

// Refused is how many calls were answered with 403.
func (s *Server) Refused() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.refused
}

// Calls are the methods and paths that were called, without watches.
func (s *Server) Calls() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return append([]string{}, s.calls...)
}

// Annotations are those of a pod in the namespace default.
func (s *Server) Annotations(pod string) map[string]string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found := map[string]string{}
	for key, value := range s.objects[kube.PodPath("default", pod)]["metadata"].(Object)["annotations"].(Object) {
		found[key] = fmt.Sprint(value)
	}
	return found
}

// At is a value inside an object, as At(path, "spec", "nodeName").
func (s *Server) At(path string, keys ...string) any {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	var value any = s.objects[path]
	for _, key := range keys {
		inside, _ := value.(Object)
		value = inside[key]
	}
	return value
}

// Account makes the folder of a service account that the server trusts, and the environment of a pod.
func (s *Server) Account(t *testing.T) (folder string, env map[string]string) {
	t.Helper()
	folder = t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, content := range map[string][]byte{"ca.crt": authority, "token": []byte(Token + "\n")} {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	return folder, map[string]string{
		"KUBERNETES_SERVICE_HOST": address.Hostname(), "KUBERNETES_SERVICE_PORT": address.Port(),
	}
}

// Client is a client of the server, by a service account.
func (s *Server) Client(t *testing.T) *kube.Client {
	t.Helper()
	folder, env := s.Account(t)
	client, err := kube.Connect(func(key string) string { return env[key] }, folder)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
