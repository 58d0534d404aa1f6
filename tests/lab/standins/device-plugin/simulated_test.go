// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/standins/internal/nvml"
)

const (
	simulatedNVML = "../../../fakes/nvml"
	patience      = 10 * time.Second
)

// driverRoot compiles the simulated NVML into a folder that looks like a driver's root.
func driverRoot(t *testing.T) string {
	t.Helper()
	if library, err := nvml.Open(""); err == nil {
		t.Skipf("%s is on this machine or was loaded by an earlier test", library.Path)
	}
	root := t.TempDir()
	output, err := exec.Command("make", "-C", simulatedNVML, "OUT="+filepath.Join(root, "usr", "lib")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return root
}

func profile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(simulatedNVML, "profiles", name+".profile"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

type registration struct {
	pluginapi.UnimplementedRegistrationServer

	requests chan *pluginapi.RegisterRequest
}

func (r *registration) Register(_ context.Context, request *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	r.requests <- request
	return &pluginapi.Empty{}, nil
}

// startKubelet serves Registration at the socket and returns what is registered.
func startKubelet(t *testing.T, socket string) chan *pluginapi.RegisterRequest {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	service := &registration{requests: make(chan *pluginapi.RegisterRequest, 8)}
	server := grpc.NewServer()
	pluginapi.RegisterRegistrationServer(server, service)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return service.requests
}

func watch(t *testing.T, socket string) (pluginapi.DevicePluginClient, grpc.ServerStreamingClient[pluginapi.ListAndWatchResponse]) {
	t.Helper()
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(func() {
		cancel()
		_ = connection.Close()
	})
	client := pluginapi.NewDevicePluginClient(connection)
	stream, err := client.ListAndWatch(ctx, &pluginapi.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	return client, stream
}

func count(t *testing.T, stream grpc.ServerStreamingClient[pluginapi.ListAndWatchResponse]) (healthy, unhealthy int, first string) {
	t.Helper()
	response, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	for _, device := range response.Devices {
		if device.Health == pluginapi.Healthy {
			healthy++
		} else {
			unhealthy++
		}
	}
	return healthy, unhealthy, response.Devices[0].ID
}

// The whole program over the simulated NVML: eight GPUs, one of them lost and back.
func TestRunOverSimulatedNVML(t *testing.T) {
	root := driverRoot(t)
	folder, err := os.MkdirTemp("", "plugin") // short: a socket's path has at most 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	current := filepath.Join(folder, "current.profile")
	set := func(text string) {
		t.Helper()
		if err := os.WriteFile(current+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(current+".new", current); err != nil {
			t.Fatal(err)
		}
	}
	whole := profile(t, "a100-40g")
	set(whole)
	t.Setenv("NVML_PROFILE", current)
	healthInterval, socketInterval = 20*time.Millisecond, 20*time.Millisecond

	registered := startKubelet(t, filepath.Join(folder, "kubelet.sock"))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	arguments := []string{"--driver-root-ctr-path=" + root, "--kubelet-socket=" + filepath.Join(folder, "kubelet.sock")}
	go func() { ended <- run(ctx, arguments, func(string) string { return "" }, io.Discard) }()
	t.Cleanup(stop)
	var endpoint string
	select {
	case request := <-registered:
		endpoint = request.Endpoint
	case <-time.After(patience):
		t.Fatal("the plugin did not register")
	}

	client, stream := watch(t, filepath.Join(folder, endpoint))
	healthy, unhealthy, first := count(t, stream)
	if healthy != 8 || unhealthy != 0 || !strings.HasPrefix(first, "GPU-") {
		t.Fatalf("%d healthy and %d unhealthy GPUs, the first is %s", healthy, unhealthy, first)
	}
	response, err := client.Allocate(context.Background(), &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{first}}},
	})
	if err != nil || response.ContainerResponses[0].Envs["NVIDIA_VISIBLE_DEVICES"] != first {
		t.Errorf("allocation %v, %v", response, err)
	}

	for _, step := range []struct {
		name, profile      string
		healthy, unhealthy int
	}{
		{"every GPU lost", whole + "fault = lost\n", 0, 8},
		{"back", whole, 8, 0},
		{"driver and library do not match", profile(t, "version-mismatch"), 0, 8},
		{"repaired", whole, 8, 0},
	} {
		set(step.profile)
		if healthy, unhealthy, _ := count(t, stream); healthy != step.healthy || unhealthy != step.unhealthy {
			t.Errorf("%s: %d healthy and %d unhealthy GPUs", step.name, healthy, unhealthy)
		}
	}
	stop()
	select {
	case status := <-ended:
		if status != 0 {
			t.Errorf("exit status %d", status)
		}
	case <-time.After(patience):
		t.Error("the program did not stop")
	}
}
