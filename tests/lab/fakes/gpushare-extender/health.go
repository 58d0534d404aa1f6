// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"strconv"
	"strings"

	"gpu.kubernetes.lab/fakes/internal/kube"
)

// unhealthyPrefix starts the name of the ConfigMap in kube-system that lists a node's unhealthy GPUs under "gpus".
const unhealthyPrefix = "unhealthy-gpu-"

// healthSink is the face of the ledger towards a watch of ConfigMaps.
type healthSink struct{ *ledger }

func (s healthSink) Replace(maps []kube.ConfigMap) {
	s.Lock()
	s.unhealthy = map[string]map[int]bool{}
	s.Unlock()
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
	s.Lock()
	defer s.Unlock()
	s.unhealthy[node] = indices
}

func (s healthSink) Delete(found kube.ConfigMap) {
	found.Data = nil
	s.Put(found)
}
