// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command amd-node-labeller is a fake of AMD's node labeller, where its image cannot be pulled. It is not AMD's, and each line that it
// writes says so.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/url"
	"os"

	"gpu.kubernetes.lab/fakes/internal/amd"
	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/program"
)

func main() {
	program.Main("k8s-node-labeller", "AMD's node labeller", run)
}

func run(ctx context.Context, arguments []string, logger *log.Logger) error {
	var kinds []string
	err := program.Parse(arguments, func(set *flag.FlagSet) {
		for _, kind := range amd.Kinds {
			set.BoolFunc(kind, "write this label", func(value string) error {
				if value == "true" {
					kinds = append(kinds, kind)
				}
				return nil
			})
		}
		set.String("stderrthreshold", "", "without effect")
	})
	if err != nil {
		return err
	}
	// Once, as the original: what changes later needs a restart.
	labels, err := amd.Labels("/", kinds)
	if err != nil {
		return err
	}
	node := os.Getenv("DS_NODE_NAME")
	if node == "" {
		return errors.New("DS_NODE_NAME is not set; it has to be the name of this node")
	}
	client, err := kube.Connect()
	if err != nil {
		return fmt.Errorf("the API server cannot be called: %w", err)
	}
	update := func(node map[string]any) error { return client.Update(ctx, kube.NodePath(name(node)), node) }
	selector := url.QueryEscape("metadata.name=" + node)
	kube.Follow[map[string]any](ctx, client, "/api/v1/nodes?fieldSelector="+selector, &sink{labels: labels, update: update, log: logger}, logger)
	return nil
}

// sink writes the labels when it first sees a node, and not after later changes of it.
type sink struct {
	labels map[string]string
	update func(node map[string]any) error
	log    *log.Logger
	done   string
}

// Replace is called with each list.
func (s *sink) Replace(nodes []map[string]any) {
	for _, node := range nodes {
		s.Put(node)
	}
}

// Put is called with each node that was created or changed.
func (s *sink) Put(node map[string]any) {
	metadata, _ := node["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	if uid == s.done {
		return
	}
	former := map[string]string{}
	present, _ := metadata["labels"].(map[string]any)
	for key, value := range present {
		former[key], _ = value.(string)
	}
	metadata["labels"] = amd.Replace(former, s.labels)
	if err := s.update(node); err != nil {
		s.log.Printf("the labels of node %s were not written, trying again after its next change: %v", name(node), err)
		return
	}
	s.done = uid
	s.log.Printf("wrote %d labels to node %s", len(s.labels), name(node))
}

// Delete is called with a node that is gone.
func (s *sink) Delete(map[string]any) { s.done = "" }

func name(node map[string]any) string {
	metadata, _ := node["metadata"].(map[string]any)
	text, _ := metadata["name"].(string)
	return text
}
