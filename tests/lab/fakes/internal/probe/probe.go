// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package probe has what tests of device plugins need: fake trees of sysfs, and the kubelet's side of the device plugin API.
package probe

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Tree writes a case of tests/fakes/gpu_sysfs.py and returns its root.
func Tree(t *testing.T, name string) string {
	t.Helper()
	root := t.TempDir()
	Change(t, root, name)
	return root
}

// Change replaces the tree below root by another case.
func Change(t *testing.T, root, name string) {
	t.Helper()
	_, source, _, _ := runtime.Caller(0)
	program := filepath.Join(filepath.Dir(source), "../../../../fakes/gpu_sysfs.py")
	if output, err := exec.Command("python3", program, root, name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// Kubelet accepts registrations on its socket.
type Kubelet struct {
	pluginapi.UnimplementedRegistrationServer

	Socket     string
	Registered chan *pluginapi.RegisterRequest
}

// NewKubelet starts one, which ends with the test.
func NewKubelet(t *testing.T) *Kubelet {
	t.Helper()
	folder, err := os.MkdirTemp("", "kubelet") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	kubelet := &Kubelet{Socket: filepath.Join(folder, "kubelet.sock"), Registered: make(chan *pluginapi.RegisterRequest, 10)}
	listener, err := net.Listen("unix", kubelet.Socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	pluginapi.RegisterRegistrationServer(server, kubelet)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		os.RemoveAll(folder)
	})
	return kubelet
}

// Register is a call of a plugin.
func (k *Kubelet) Register(_ context.Context, request *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	k.Registered <- request
	return &pluginapi.Empty{}, nil
}

// Dial connects to a plugin, and starts to list its devices.
func (k *Kubelet) Dial(t *testing.T, endpoint string) (pluginapi.DevicePluginClient, grpc.ServerStreamingClient[pluginapi.ListAndWatchResponse]) {
	t.Helper()
	address := "unix://" + filepath.Join(filepath.Dir(k.Socket), endpoint)
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	client := pluginapi.NewDevicePluginClient(connection)
	stream, err := client.ListAndWatch(context.Background(), &pluginapi.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	return client, stream
}

// Next is the next list of devices.
func Next(t *testing.T, stream grpc.ServerStreamingClient[pluginapi.ListAndWatchResponse]) []*pluginapi.Device {
	t.Helper()
	list, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return list.Devices
}

// IDs are the names of devices.
func IDs(devices []*pluginapi.Device) []string {
	var found []string
	for _, device := range devices {
		found = append(found, device.ID)
	}
	return found
}
