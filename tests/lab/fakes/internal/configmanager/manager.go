// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package configmanager

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"gpu.kubernetes.lab/fakes/internal/kube"
)

// Manager applies the values of the node's label.
type Manager struct {
	Settings Settings
	// Proc is /proc; its processes are those of the pod with shareProcessNamespace, those of the node with hostPID.
	Proc string
	Log  *log.Logger
}

// Run applies each value of the label that comes from labels, until the context ends. It returns after the first one if the settings say
// so. A fault of the original since v0.18.2: the first value is always that of a node without the label, because the API server has not
// answered yet.
func (m *Manager) Run(ctx context.Context, labels <-chan string) error {
	label := ""
	for {
		m.Log.Printf("Label change detected: %s=%s", m.Settings.Label, label)
		if err := m.update(label); err != nil || m.Settings.Oneshot {
			return err
		}
		for previous := label; label == previous; {
			m.Log.Printf("Waiting for change to '%s' label", m.Settings.Label)
			select {
			case <-ctx.Done():
				return nil
			case label = <-labels:
			}
		}
	}
}

func (m *Manager) update(label string) error {
	names, err := listNames(m.Settings.Source)
	if err != nil {
		return err
	}
	name, err := m.Settings.Choose(label, names)
	if err != nil {
		return err
	}
	m.Log.Printf("Updating to config: %s", name)
	updated, err := m.Settings.link(name)
	if err != nil {
		return err
	}
	if !updated {
		m.Log.Print("Already configured. Skipping update...")
		return nil
	}
	m.Log.Printf("Successfully updated to config: %s", name)
	if !m.Settings.SendSignal {
		return nil
	}
	return m.signal()
}

func (m *Manager) signal() error {
	m.Log.Printf("Sending signal '%s' to '%s'", m.Settings.Signal, m.Settings.Process)
	pid, err := findProcess(m.Proc, m.Settings.Process)
	if err != nil {
		return fmt.Errorf("error finding pid: %w", err)
	}
	if err := syscall.Kill(pid, m.Settings.Signal); err != nil {
		return fmt.Errorf("error sending signal: %w", err)
	}
	m.Log.Print("Successfully sent signal")
	return nil
}

// findProcess is the first process whose first word is exactly name: a path in one and no path in the other do not match.
func findProcess(proc, name string) (int, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		words, err := os.ReadFile(filepath.Join(proc, entry.Name(), "cmdline"))
		if err != nil {
			continue // it ended meanwhile
		}
		if first, _, _ := bytes.Cut(words, []byte{0}); string(first) == name {
			return pid, nil
		}
	}
	return 0, errors.New("no process found")
}

// Follow sends the label of a node, "" without one, when it changes, until the context ends.
func Follow(ctx context.Context, client *kube.Client, node, label string, logger *log.Logger) <-chan string {
	values := make(chan string)
	path := "/api/v1/nodes?fieldSelector=metadata.name%3D" + node
	go kube.Follow(ctx, client, path, follower{ctx: ctx, label: label, values: values}, logger)
	return values
}

// follower is the sink of the watch on one node.
type follower struct {
	ctx    context.Context
	label  string
	values chan<- string
}

func (f follower) Replace(nodes []kube.Node) {
	for _, node := range nodes {
		f.Put(node)
	}
}

func (f follower) Put(node kube.Node) { f.send(node.Metadata.Labels[f.label]) }

func (f follower) Delete(kube.Node) { f.send("") }

func (f follower) send(value string) {
	select {
	case f.values <- value:
	case <-f.ctx.Done():
	}
}
