// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package kubelet keeps a device plugin (API v1beta1) registered with the kubelet of this node.
package kubelet

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
)

const registrationTimeout = 5 * time.Second

// Endpoint serves a device plugin and keeps it registered while the kubelet comes and goes.
type Endpoint struct {
	// Resource is the name of the extended resource, Offer a text for the log ("with 2 GPUs").
	Resource, Offer string
	// KubeletSocket is the kubelet's socket, SocketName the plugin's own in the same folder.
	KubeletSocket, SocketName string
	Options                   *pluginapi.DevicePluginOptions
	Service                   pluginapi.DevicePluginServer
	Log                       *log.Logger
	// Interval is the time between two reads of the sockets.
	Interval time.Duration
}

// Run serves and registers until the context ends; it starts again when the kubelet created its socket again or removed
// that of the plugin (a kubelet that starts empties the folder). An error means that the plugin's socket cannot be created.
func (e *Endpoint) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := e.ServeOnce(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *Endpoint) socket() string {
	return filepath.Join(filepath.Dir(e.KubeletSocket), e.SocketName)
}

// ServeOnce is Run until the kubelet created its socket again, removed that of the plugin, or refused the registration.
func (e *Endpoint) ServeOnce(ctx context.Context) error {
	kubelet, ok := e.awaitKubelet(ctx)
	if !ok {
		return nil
	}
	if err := os.Remove(e.socket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the old socket cannot be removed: %w", err)
	}
	listener, err := net.Listen("unix", e.socket())
	if err != nil {
		return fmt.Errorf("the plugin's socket cannot be made: %w", err)
	}
	own := identify(e.socket())
	server := grpc.NewServer()
	pluginapi.RegisterDevicePluginServer(server, e.Service)
	go func() {
		if err := server.Serve(listener); err != nil {
			e.Log.Printf("serving ended: %v", err)
		}
	}()
	defer server.Stop()

	if err := e.register(ctx); err != nil {
		e.Log.Printf("registration failed, trying again: %v", err)
		e.pause(ctx)
		return nil
	}
	e.Log.Printf("registered %s %s at %s", e.Resource, e.Offer, e.KubeletSocket)
	for e.pause(ctx) {
		if identify(e.KubeletSocket) != kubelet {
			e.Log.Print("the kubelet's socket changed, starting again")
			return nil
		}
		if identify(e.socket()) != own {
			e.Log.Print("the plugin's socket was removed, starting again")
			return nil
		}
	}
	return nil
}

func (e *Endpoint) awaitKubelet(ctx context.Context) (identity, bool) {
	for logged := false; ctx.Err() == nil; e.pause(ctx) {
		if found := identify(e.KubeletSocket); found != (identity{}) {
			return found, true
		}
		if !logged {
			e.Log.Printf("waiting for the kubelet's socket %s", e.KubeletSocket)
			logged = true
		}
	}
	return identity{}, false
}

func (e *Endpoint) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, registrationTimeout)
	defer cancel()
	connection, err := grpc.NewClient(
		"unix://"+e.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()),
	)
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = pluginapi.NewRegistrationClient(connection).Register(ctx, &pluginapi.RegisterRequest{
		Version:      pluginapi.Version,
		Endpoint:     e.SocketName,
		ResourceName: e.Resource,
		Options:      e.Options,
	})
	return err
}

// pause waits one interval; false means that the context ended.
func (e *Endpoint) pause(ctx context.Context) bool {
	timer := time.NewTimer(e.Interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// identity distinguishes a file from a later one of the same name; zero means that there is no file.
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
