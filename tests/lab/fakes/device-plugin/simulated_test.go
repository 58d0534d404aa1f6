// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/kubelet/kubelettest"
	"gpu.kubernetes.lab/fakes/internal/nvml/nvmltest"
)

func count(t *testing.T, stream grpc.ServerStreamingClient[pluginapi.ListAndWatchResponse]) (healthy, unhealthy int, first string) {
	t.Helper()
	for id, health := range kubelettest.Devices(t, stream) {
		if health == pluginapi.Healthy {
			healthy++
		} else {
			unhealthy++
		}
		if first == "" || id < first {
			first = id
		}
	}
	return healthy, unhealthy, first
}

// The whole program over the simulated NVML: eight GPUs, one of them lost and back.
func TestRunOverSimulatedNVML(t *testing.T) {
	root := nvmltest.DriverRoot(t)
	folder := kubelettest.Folder(t)
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
	whole := nvmltest.Profile(t, "a100-40g")
	set(whole)
	t.Setenv("NVML_PROFILE", current)
	healthInterval, socketInterval = 20*time.Millisecond, 20*time.Millisecond

	kubelet := kubelettest.Start(t, filepath.Join(folder, "kubelet.sock"))
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan int, 1)
	arguments := []string{"--driver-root-ctr-path=" + root, "--kubelet-socket=" + filepath.Join(folder, "kubelet.sock")}
	go func() { ended <- run(ctx, arguments, func(string) string { return "" }, io.Discard) }()
	t.Cleanup(stop)
	client := kubelettest.Client(t, filepath.Join(folder, kubelet.Await(t).Endpoint))
	stream, err := client.ListAndWatch(kubelettest.Deadline(t), &pluginapi.Empty{})
	if err != nil {
		t.Fatal(err)
	}
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
		{"driver and library do not match", nvmltest.Profile(t, "version-mismatch"), 0, 8},
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
	case <-time.After(kubelettest.Patience):
		t.Error("the program did not stop")
	}
}
