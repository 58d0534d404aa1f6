// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"context"
	"fmt"
	"log"
	"time"

	"gpu.kubernetes.lab/fakes/internal/config"
	"gpu.kubernetes.lab/fakes/internal/kubelet"
)

// SocketName is the plugin's own socket, in the folder of the kubelet's.
const SocketName = "fake-nvidia-gpu.sock"

// Manager offers whole GPUs, or replicas of them, as NVIDIA's plugin does.
type Manager struct {
	Settings  config.Config
	Inventory *Inventory
	Log       *log.Logger
	// Interval is the time between two reads of the sockets.
	Interval time.Duration
}

// Run serves and registers until the context ends; errors as of kubelet.Endpoint.
func (m *Manager) Run(ctx context.Context) error {
	endpoint := kubelet.Endpoint{
		Resource:      m.Settings.ResourceName(),
		Offer:         fmt.Sprintf("with %d GPUs", m.Inventory.Len()),
		KubeletSocket: m.Settings.KubeletSocket,
		SocketName:    SocketName,
		Options:       options(),
		Service:       &service{settings: m.Settings, inventory: m.Inventory, log: m.Log},
		Log:           m.Log,
		Interval:      m.Interval,
	}
	return endpoint.Run(ctx)
}
