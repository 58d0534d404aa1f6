// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"context"
	"io"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/config"
	"gpu.kubernetes.lab/fakes/internal/nvml"
)

// registry is the part of the kubelet that plugins call.
type registry struct {
	pluginapi.UnimplementedRegistrationServer
	registered chan string
}

func (r registry) Register(_ context.Context, request *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	r.registered <- request.ResourceName + " " + request.Endpoint
	return &pluginapi.Empty{}, nil
}

// listen makes a kubelet's socket.
func listen(t *testing.T, socket string) (*grpc.Server, chan string) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server, registered := grpc.NewServer(), make(chan string, 10)
	pluginapi.RegisterRegistrationServer(server, registry{registered: registered})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return server, registered
}

func TestManagerRegistersEachResourceUntilTheKubeletStartsAgain(t *testing.T) {
	folder, err := os.MkdirTemp("", "kubelet") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(folder)
	settings := config.Default()
	settings.MIGStrategy, settings.KubeletSocket = config.MIGMixed, filepath.Join(folder, "kubelet.sock")
	kubelet, registered := listen(t, settings.KubeletSocket)
	gpus := []nvml.GPU{partitioned(0, "1g.10gb"), {Index: 1, UUID: "GPU-1"}}
	resources, err := Resources(settings, gpus)
	if err != nil {
		t.Fatal(err)
	}
	manager := Manager{
		Settings: settings, Resources: resources, Health: NewHealth(gpus), Log: log.New(io.Discard, "", 0), Interval: 10 * time.Millisecond,
	}
	ended := make(chan error)
	go func() { ended <- manager.Run(context.Background()) }()
	found := map[string]bool{<-registered: true, <-registered: true}
	if !found["nvidia.com/gpu fake-nvidia-gpu.sock"] || !found["nvidia.com/mig-1g.10gb fake-nvidia-mig-1g.10gb.sock"] {
		t.Errorf("registered %v", found)
	}
	kubelet.Stop() // removes its socket
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestManagerOffersNothingWithoutTheDaemonOfMPS(t *testing.T) {
	var output strings.Builder
	settings := config.Default()
	settings.Sharing, settings.Replicas = config.SharingMPS, map[string]int{config.Resource: 2}
	resources, err := Resources(settings, twoGPUs())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "/nonexistent")
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // the end of the wait
	manager := Manager{Settings: settings, Resources: resources, Health: NewHealth(twoGPUs()), Log: log.New(&output, "", 0)}
	if err := manager.Run(ctx); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"error waiting for MPS daemon: error checking MPS daemon health: failed to start NVIDIA MPS command", "Retrying in 30s..."} {
		if !strings.Contains(output.String(), want) {
			t.Errorf("output without %q:\n%s", want, output.String())
		}
	}
}
