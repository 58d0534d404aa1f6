// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package kubelettest is the kubelet's half of the device plugin API, for tests.
package kubelettest

import (
	"context"
	"net"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Patience is how long a test waits for what should come at once.
const Patience = 60 * time.Second

// Kubelet is a Registration server that hands on what it was told.
type Kubelet struct {
	pluginapi.UnimplementedRegistrationServer

	Server     *grpc.Server
	registered chan *pluginapi.RegisterRequest
}

// Register is what a plugin calls.
func (k *Kubelet) Register(_ context.Context, request *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	k.registered <- request
	return &pluginapi.Empty{}, nil
}

// Start serves Registration at the socket until the test ends.
func Start(t *testing.T, socket string) *Kubelet {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	k := &Kubelet{Server: grpc.NewServer(), registered: make(chan *pluginapi.RegisterRequest, 8)}
	pluginapi.RegisterRegistrationServer(k.Server, k)
	go func() { _ = k.Server.Serve(listener) }()
	t.Cleanup(k.Server.Stop)
	return k
}

// Await is the next registration.
func (k *Kubelet) Await(t *testing.T) *pluginapi.RegisterRequest {
	t.Helper()
	select {
	case request := <-k.registered:
		return request
	case <-time.After(Patience):
		t.Fatal("the plugin did not register")
		return nil
	}
}

// Folder is a new folder for sockets, whose path must not be longer than 107 characters.
func Folder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "plugin")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// Client speaks to the plugin at the socket.
func Client(t *testing.T, socket string) pluginapi.DevicePluginClient {
	t.Helper()
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return pluginapi.NewDevicePluginClient(connection)
}

// Devices are the ids and the health that the plugin tells next.
func Devices(t *testing.T, stream grpc.ServerStreamingClient[pluginapi.ListAndWatchResponse]) map[string]string {
	t.Helper()
	response, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, device := range response.Devices {
		found[device.ID] = device.Health
	}
	return found
}

// Deadline is a context that outlives Patience no longer than the test.
func Deadline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}
