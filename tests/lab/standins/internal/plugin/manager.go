// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/standins/internal/config"
	"gpu.kubernetes.lab/standins/internal/nvml"
)

// SocketName is the plugin's own socket, in the folder of the kubelet's.
const SocketName = "stand-in-nvidia-gpu.sock"

const registrationTimeout = 5 * time.Second

// Reader reads the GPUs as they are now.
type Reader interface {
	Read() (driver string, gpus []nvml.GPU, err error)
}

// Manager serves the device plugin API and keeps it registered while the kubelet comes and goes.
type Manager struct {
	Settings  config.Config
	Inventory *Inventory
	Log       *log.Logger
	// Interval is the time between two looks at the sockets.
	Interval time.Duration
}

// Watch reads NVML every interval until the context ends and tells the kubelet about GPUs that are lost or back.
func (m *Manager) Watch(ctx context.Context, reader Reader, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_, gpus, err := reader.Read()
		for _, sentence := range m.Inventory.Update(gpus, err) {
			m.Log.Print(sentence)
		}
	}
}

// Run serves and registers until the context ends; it starts over when the kubelet made its socket anew or removed the
// plugin's (a kubelet that starts empties the folder). An error means that the plugin's socket cannot be made.
func (m *Manager) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := m.serveOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) socket() string {
	return filepath.Join(filepath.Dir(m.Settings.KubeletSocket), SocketName)
}

func (m *Manager) serveOnce(ctx context.Context) error {
	kubelet, ok := m.awaitKubelet(ctx)
	if !ok {
		return nil
	}
	if err := os.Remove(m.socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the old socket cannot be removed: %w", err)
	}
	listener, err := net.Listen("unix", m.socket())
	if err != nil {
		return fmt.Errorf("the plugin's socket cannot be made: %w", err)
	}
	own := identify(m.socket())
	server := grpc.NewServer()
	pluginapi.RegisterDevicePluginServer(server, &service{settings: m.Settings, inventory: m.Inventory, log: m.Log})
	go func() {
		if err := server.Serve(listener); err != nil {
			m.Log.Printf("serving ended: %v", err)
		}
	}()
	defer server.Stop()

	if err := m.register(ctx); err != nil {
		m.Log.Printf("registration failed, trying again: %v", err)
		m.pause(ctx)
		return nil
	}
	m.Log.Printf("registered %s with %d GPUs at %s", m.Settings.ResourceName(), m.Inventory.Len(), m.Settings.KubeletSocket)
	for m.pause(ctx) {
		if identify(m.Settings.KubeletSocket) != kubelet {
			m.Log.Print("the kubelet's socket changed, registering again")
			return nil
		}
		if identify(m.socket()) != own {
			m.Log.Print("the plugin's socket was removed, registering again")
			return nil
		}
	}
	return nil
}

func (m *Manager) awaitKubelet(ctx context.Context) (identity, bool) {
	for told := false; ctx.Err() == nil; m.pause(ctx) {
		if found := identify(m.Settings.KubeletSocket); found != (identity{}) {
			return found, true
		}
		if !told {
			m.Log.Printf("waiting for the kubelet's socket %s", m.Settings.KubeletSocket)
			told = true
		}
	}
	return identity{}, false
}

func (m *Manager) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, registrationTimeout)
	defer cancel()
	connection, err := grpc.NewClient(
		"unix://"+m.Settings.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()),
	)
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = pluginapi.NewRegistrationClient(connection).Register(ctx, &pluginapi.RegisterRequest{
		Version:      pluginapi.Version,
		Endpoint:     SocketName,
		ResourceName: m.Settings.ResourceName(),
		Options:      options(),
	})
	return err
}

// pause waits one interval; false means that the context ended.
func (m *Manager) pause(ctx context.Context) bool {
	timer := time.NewTimer(m.Interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// identity tells a file from one that took its place under the same name; zero means that there is none.
type identity struct {
	device, inode uint64
	created       syscall.Timespec
}

func identify(path string) identity {
	var found syscall.Stat_t
	if err := syscall.Stat(path, &found); err != nil {
		return identity{}
	}
	return identity{device: uint64(found.Dev), inode: found.Ino, created: found.Mtim}
}
