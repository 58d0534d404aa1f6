// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package mps

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"
)

// retryInterval is the original's time until it stops and starts all daemons again after one could not be started.
const retryInterval = 30 * time.Second

// Group is all control daemons of a node.
type Group struct {
	Root    string
	Daemons []*Daemon
	Log     *log.Logger
	// Retry is the time until a failed start ends; 0 means that of the original.
	Retry time.Duration
}

// Run starts the daemons and stops them when the context ends, or some time after one did not start. SIGKILL leaves the GPUs in
// EXCLUSIVE_PROCESS, the files of the pipes, .started and .ready.
func (g *Group) Run(ctx context.Context) error {
	for _, daemon := range g.Daemons {
		if err := daemon.Check(); err != nil {
			return fmt.Errorf("error getting daemons: %w", err)
		}
	}
	if len(g.Daemons) == 0 {
		g.Log.Print("No devices are configured for MPS sharing; Waiting indefinitely.")
	}
	retry, err := g.start()
	if err != nil {
		return err
	}
	select {
	case <-retry:
	case <-ctx.Done():
	}
	return g.stop()
}

// start returns a channel that has a value when it is time to try again; it never has one if all daemons run.
func (g *Group) start() (<-chan time.Time, error) {
	for _, daemon := range g.Daemons {
		if err := daemon.Start(); err != nil {
			interval := g.Retry
			if interval == 0 {
				interval = retryInterval
			}
			g.Log.Printf("Failed to start MPS daemon: %v", err)
			g.Log.Printf("Failed to start one or more MPS daemons. Retrying in %v...", interval)
			return time.After(interval), nil
		}
	}
	if err := touch(g.ready()); err != nil {
		return nil, errors.New("failed to create .ready file")
	}
	return nil, nil
}

func (g *Group) stop() error {
	if err := os.Remove(g.ready()); err != nil {
		g.Log.Printf("Failed to remove .ready file: %v", err)
	}
	g.Log.Print("Stopping MPS daemons.")
	var failures []error
	for _, daemon := range g.Daemons {
		failures = append(failures, daemon.Stop())
	}
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("error stopping daemons: %w", err)
	}
	return nil
}

func (g *Group) ready() string { return filepath.Join(g.Root, ".ready") }
