// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"errors"
	"io"
	"log"
	"testing"
)

func nodeWith(uid string, labels map[string]any) map[string]any {
	return map[string]any{"metadata": map[string]any{"name": "n", "uid": uid, "labels": labels}, "status": map[string]any{"phase": "kept"}}
}

func TestLabelsAreWrittenOnceForEachCreatedNode(t *testing.T) {
	var written []map[string]any
	failure := errors.New("conflict")
	labeller := &sink{
		labels: map[string]string{"amd.com/gpu.vram": "192G"},
		update: func(node map[string]any) error {
			written = append(written, node)
			return failure
		},
		log: log.New(io.Discard, "", 0),
	}
	labeller.Replace([]map[string]any{nodeWith("a", map[string]any{"other": "x"})})
	failure = nil
	for range 3 { // its label was removed, and it changes
		labeller.Put(nodeWith("a", map[string]any{"other": "x"}))
	}
	labeller.Delete(nil)
	labeller.Put(nodeWith("b", nil))
	if len(written) != 3 {
		t.Fatalf("wrote %d times: %v", len(written), written)
	}
	metadata := written[1]["metadata"].(map[string]any)
	labels := metadata["labels"].(map[string]string)
	if len(labels) != 2 || labels["other"] != "x" || labels["amd.com/gpu.vram"] != "192G" || written[1]["status"] == nil {
		t.Errorf("wrote %v", written[1])
	}
}
