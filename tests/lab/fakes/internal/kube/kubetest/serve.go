// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package kubetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

func (s *Server) serve(response http.ResponseWriter, request *http.Request) {
	call := request.Method + " " + request.URL.Path
	if code, message := s.check(request, call); code != 0 {
		fail(response, code, message)
		return
	}
	if request.URL.Query().Get("watch") != "" {
		s.watch(response, request)
		return
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.calls = append(s.calls, call)
	object, exists := s.objects[request.URL.Path]
	target, subresource := strings.CutSuffix(request.URL.Path, "/status")
	switch {
	case request.Method == http.MethodGet && exists:
		write(response, object)
	case request.Method == http.MethodGet && isCollection(request.URL.Path):
		write(response, s.list(request))
	case request.Method == http.MethodPatch && (exists || subresource) && s.objects[target] != nil:
		s.patch(response, request, target)
	case request.Method == http.MethodPut && exists:
		s.replace(response, request)
	case request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/binding"):
		s.bind(response, request)
	default:
		fail(response, http.StatusNotFound, request.URL.Path+" not found")
	}
}

func (s *Server) check(request *http.Request, call string) (int, string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if request.Header.Get("Authorization") != "Bearer "+Token {
		return http.StatusUnauthorized, "Unauthorized"
	}
	for _, denied := range s.denied {
		if strings.HasPrefix(call, denied) {
			s.refused++
			return http.StatusForbidden, call + " is forbidden"
		}
	}
	return 0, ""
}

func isCollection(path string) bool {
	return path == "/api/v1/pods" || path == "/api/v1/nodes" || path == "/api/v1/configmaps"
}

// belongs tells whether the object at path is of the collection of all namespaces.
func belongs(path, collection string) bool {
	kind := collection[strings.LastIndex(collection, "/"):]
	return strings.Contains(path, kind+"/")
}

func (s *Server) list(request *http.Request) Object {
	items := []any{}
	selector := request.URL.Query().Get("fieldSelector")
	for path, object := range s.objects {
		if belongs(path, request.URL.Path) && selects(selector, object) {
			items = append(items, object)
		}
	}
	return Object{"metadata": Object{"resourceVersion": strconv.Itoa(len(s.history))}, "items": items}
}

func selects(selector string, object Object) bool {
	for _, term := range strings.Split(selector, ",") {
		if term == "" {
			continue
		}
		field, wanted, _ := strings.Cut(term, "=")
		var value any = object
		for _, key := range strings.Split(field, ".") {
			value = value.(Object)[key]
		}
		if value != wanted {
			return false
		}
	}
	return true
}

// watch sends what changed since the list that the request names, and what changes from now on.
func (s *Server) watch(response http.ResponseWriter, request *http.Request) {
	since, _ := strconv.Atoi(request.URL.Query().Get("resourceVersion"))
	events := make(chan Object, 64)
	s.mutex.Lock()
	for _, change := range s.history[since:] {
		if belongs(change.path, request.URL.Path) {
			events <- change.content
		}
	}
	s.watchers[events] = request.URL.Path
	s.mutex.Unlock()
	defer func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		delete(s.watchers, events)
	}()
	response.WriteHeader(http.StatusOK)
	for {
		response.(http.Flusher).Flush()
		select {
		case event := <-events:
			if json.NewEncoder(response).Encode(event) != nil {
				return
			}
		case <-request.Context().Done():
			return
		}
	}
}

// replace takes an object that was read in its latest version.
func (s *Server) replace(response http.ResponseWriter, request *http.Request) {
	var object Object
	err := json.NewDecoder(request.Body).Decode(&object)
	metadata, isMap := object["metadata"].(Object)
	if err != nil || !isMap {
		fail(response, http.StatusBadRequest, fmt.Sprintf("an object without metadata: %v", err))
		return
	}
	if metadata["resourceVersion"] != s.objects[request.URL.Path]["metadata"].(Object)["resourceVersion"] {
		fail(response, http.StatusConflict, "the object has been modified")
		return
	}
	s.put("MODIFIED", request.URL.Path, object)
	write(response, object)
}

func (s *Server) patch(response http.ResponseWriter, request *http.Request, target string) {
	var change Object
	kind := request.Header.Get("Content-Type")
	if err := json.NewDecoder(request.Body).Decode(&change); err != nil || kind != "application/strategic-merge-patch+json" {
		fail(response, http.StatusBadRequest, fmt.Sprintf("patch of type %s: %v", kind, err))
		return
	}
	object := clone(s.objects[target])
	merge(object, change)
	s.put("MODIFIED", target, object)
	write(response, object)
}

func merge(into, change Object) {
	for key, value := range change {
		deeper, isMap := value.(Object)
		if existing, both := into[key].(Object); isMap && both {
			merge(existing, deeper)
		} else {
			into[key] = value
		}
	}
}

func (s *Server) bind(response http.ResponseWriter, request *http.Request) {
	path := strings.TrimSuffix(request.URL.Path, "/binding")
	var binding struct {
		Kind     string
		Metadata struct{ Name, UID string }
		Target   struct{ Kind, Name string }
	}
	err := json.NewDecoder(request.Body).Decode(&binding)
	if err != nil || binding.Kind != "Binding" || binding.Target.Kind != "Node" || !strings.HasSuffix(path, "/"+binding.Metadata.Name) {
		fail(response, http.StatusBadRequest, fmt.Sprintf("binding %+v: %v", binding, err))
		return
	}
	pod := clone(s.objects[path])
	if node := pod["spec"].(Object)["nodeName"]; node != nil && node != "" {
		fail(response, http.StatusConflict, "pod is already assigned to a node")
		return
	}
	pod["spec"].(Object)["nodeName"] = binding.Target.Name
	s.put("MODIFIED", path, pod)
	response.WriteHeader(http.StatusCreated)
	write(response, Object{"kind": "Status", "status": "Success"})
}

func clone(object Object) Object {
	content, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	var copied Object
	if err := json.Unmarshal(content, &copied); err != nil {
		panic(err)
	}
	return copied
}

func write(response http.ResponseWriter, object Object) {
	_ = json.NewEncoder(response).Encode(object)
}

func fail(response http.ResponseWriter, code int, message string) {
	response.WriteHeader(code)
	write(response, Object{"kind": "Status", "status": "Failure", "message": message})
}
