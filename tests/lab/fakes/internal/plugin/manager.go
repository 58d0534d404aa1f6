// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"sync"
	"time"

	"gpu.kubernetes.lab/fakes/internal/config"
	"gpu.kubernetes.lab/fakes/internal/kubelet"
	"gpu.kubernetes.lab/fakes/internal/mps"
)

// retryInterval is the original's time between two starts while a control daemon of MPS does not answer.
const retryInterval = 30 * time.Second

// Manager offers the resources of a node, each by a socket of its own.
type Manager struct {
	Settings  config.Config
	Resources []Resource
	Health    *Health
	Log       *log.Logger
	// Interval is the time between two reads of the sockets.
	Interval time.Duration
}

// Run serves and registers until the context ends, or until the kubelet starts again, or until the control daemon of MPS should be asked
// again: then the plugin has to find its GPUs again. Errors as of kubelet.Endpoint.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.checkMPS(); err != nil {
		m.Log.Printf("Failed to start plugin: error waiting for MPS daemon: %v", err)
		m.Log.Printf("Failed to start one or more plugins. Retrying in %v...", retryInterval)
		select {
		case <-ctx.Done():
		case <-time.After(retryInterval):
		}
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failures := make([]error, len(m.Resources))
	var running sync.WaitGroup
	for number, resource := range m.Resources {
		running.Add(1)
		go func() {
			defer running.Done()
			defer cancel() // one that ends ends all
			endpoint := m.endpoint(resource)
			failures[number] = endpoint.ServeOnce(ctx)
		}()
	}
	running.Wait()
	return errors.Join(failures...)
}

// checkMPS asks the control daemon of each resource; the kubelet gets none of them before all answer.
func (m *Manager) checkMPS() error {
	if m.Settings.Sharing != config.SharingMPS {
		return nil
	}
	for _, resource := range m.Resources {
		control := mps.Control{Root: mps.ContainerRoot, Resource: resource.Name}
		if err := control.CheckHealth(); err != nil {
			return err
		}
		m.Log.Printf("MPS daemon is healthy, resource %s", resource.Name)
	}
	return nil
}

func (m *Manager) endpoint(resource Resource) kubelet.Endpoint {
	return kubelet.Endpoint{
		Resource:      resource.Name,
		Offer:         fmt.Sprintf("with %d devices, %d times each", len(resource.Devices), resource.Replicas),
		KubeletSocket: m.Settings.KubeletSocket,
		SocketName:    socketName(resource.Name),
		Options:       options(),
		Service: &service{
			settings: m.Settings, resource: resource.Name, inventory: NewInventory(m.Health, resource), log: m.Log,
		},
		Log:      m.Log,
		Interval: m.Interval,
	}
}

// socketName is the plugin's own socket for a resource, in the folder of the kubelet's.
func socketName(resource string) string {
	return "fake-nvidia-" + strings.TrimPrefix(resource, "nvidia.com/") + ".sock"
}
