// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1alpha1"

	"gpu.kubernetes.lab/fakes/internal/kube/kubetest"
	"gpu.kubernetes.lab/fakes/internal/kubelet/kubelettest"
	"gpu.kubernetes.lab/fakes/internal/nanogpu"
)

// lister is the kubelet's list of who has what: pod -> the devices of its container main.
type lister struct {
	podresources.UnimplementedPodResourcesListerServer

	held map[string][]string
}

func (l *lister) List(context.Context, *podresources.ListPodResourcesRequest) (*podresources.ListPodResourcesResponse, error) {
	answer := &podresources.ListPodResourcesResponse{}
	for pod, ids := range l.held {
		devices := []*podresources.ContainerDevices{{ResourceName: "other", DeviceIds: []string{"x"}}}
		for _, id := range ids { // the kubelet may tell of them by NUMA node
			devices = append(devices, &podresources.ContainerDevices{ResourceName: nanogpu.Percent, DeviceIds: []string{id}})
		}
		answer.PodResources = append(answer.PodResources, &podresources.PodResources{
			Name: pod, Namespace: "default", Containers: []*podresources.ContainerResources{{Name: "main", Devices: devices}},
		})
	}
	return answer, nil
}

func serveList(t *testing.T, socket string, held map[string][]string) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	podresources.RegisterPodResourcesListerServer(server, &lister{held: held})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
}

func devicesOf(t *testing.T, names ...string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func onGPU(index string) map[string]string {
	return map[string]string{nanogpu.Assume: "true", nanogpu.Container("main"): index}
}

// The whole program: it offers hundredths, and a container gets the GPU that its pod's annotation names.
func TestRun(t *testing.T) {
	folder, api := kubelettest.Folder(t), kubetest.Start(t)
	share := []map[string]string{{nanogpu.Percent: "2"}}
	api.PodOf("placed", "worker-1", share, "Pending", onGPU("1"))
	api.PodOf("bypassed", "worker-1", share, "Pending", nil)
	api.PodOf("beyond", "worker-1", share, "Pending", onGPU("2"))
	serveList(t, filepath.Join(folder, "resources.sock"), map[string][]string{
		"placed": {"0-01", "0-00"}, "bypassed": {"0-02", "0-03"}, "beyond": {"0-04", "0-05"}, "gone": {"0-06", "0-07"},
	})
	kubelet := kubelettest.Start(t, filepath.Join(folder, "kubelet.sock"))
	account, env := api.Account(t)
	on := place{
		devices:       devicesOf(t, "nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"),
		kubeletSocket: filepath.Join(folder, "kubelet.sock"), podResourcesSocket: filepath.Join(folder, "resources.sock"),
		account: account, socketInterval: 20 * time.Millisecond,
	}
	database := filepath.Join(t.TempDir(), "meta.db")
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var output bytes.Buffer
	ended := make(chan int, 1)
	arguments := []string{"--nodename=worker-1", "--dbfile=" + database}
	go func() { ended <- run(ctx, on, arguments, func(key string) string { return env[key] }, &output) }()

	registered := kubelet.Await(t)
	if registered.ResourceName != "nano-gpu/gpu-percent" || !registered.Options.PreStartRequired {
		t.Errorf("registration %v", registered)
	}
	client := kubelettest.Client(t, filepath.Join(folder, registered.Endpoint))
	stream, err := client.ListAndWatch(kubelettest.Deadline(t), &pluginapi.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	if found := kubelettest.Devices(t, stream); len(found) != 200 || found["0-00"] != pluginapi.Healthy || found["1-99"] != pluginapi.Healthy {
		t.Errorf("%d devices: %v", len(found), found)
	}
	allocated, err := client.Allocate(kubelettest.Deadline(t), &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{"0-00", "0-01"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer := allocated.ContainerResponses[0]
	hash := answer.Envs["GPU"]
	if len(hash) != 8 || answer.Envs["NVIDIA_VISIBLE_DEVICES"] != "none" {
		t.Errorf("variables %v", answer.Envs)
	}
	if given := answer.Devices[0]; given.HostPath != "/dev/nano-gpu-"+hash || given.ContainerPath != "/dev/nvidia0" {
		t.Errorf("device %v", given)
	}

	start := func(ids ...string) error {
		_, err := client.PreStartContainer(kubelettest.Deadline(t), &pluginapi.PreStartContainerRequest{DevicesIds: ids})
		return err
	}
	for range 2 { // a container that starts again
		if err := start("0-01", "0-00"); err != nil {
			t.Fatal(err)
		}
	}
	if target, err := os.Readlink(filepath.Join(on.devices, "nano-gpu-"+hash)); target != "/dev/nvidia1" {
		t.Errorf("the link is to %q, %v", target, err)
	}
	var noted map[string]holder
	content, _ := os.ReadFile(database)
	if err := json.Unmarshal(content, &noted); err != nil || noted[hash] != (holder{"default", "placed", "main", 1}) {
		t.Errorf("%v, noted %s", err, content)
	}
	for what, test := range map[string]struct{ first, second, want string }{
		"a pod that nobody placed":        {"0-02", "0-03", "gave container main of pod default/bypassed no GPU of this node"},
		"a pod on a GPU that is not here": {"0-04", "0-05", "gave container main of pod default/beyond no GPU"},
		"a pod that is gone":              {"0-06", "0-07", "not found"},
		"devices that nobody has":         {"1-00", "1-01", "knows no container that has these devices"},
	} {
		if err := start(test.first, test.second); status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	stop()
	if status := <-ended; status != 0 {
		t.Errorf("status %d", status)
	}
	for _, line := range strings.Split(strings.TrimSpace(output.String()), "\n") {
		if !strings.HasPrefix(line, "FAKE nano-gpu-agent: ") {
			t.Errorf("line %q does not say that this is a fake", line)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	named := "--nodename=worker-1"
	for name, test := range map[string]struct {
		devices   []string
		arguments []string
		want      string
	}{
		"no name":         {nil, nil, "--nodename is not given"},
		"another option":  {nil, []string{"--nodeName=worker-1"}, "not defined: -nodeName"},
		"a GPU is absent": {[]string{"nvidia0", "nvidia2"}, []string{named}, "has 2 device nodes of GPUs, the last of which is nvidia2"},
		"no API":          {[]string{"nvidia0"}, []string{named}, "the API server cannot be called"},
	} {
		t.Run(name, func(t *testing.T) {
			var output bytes.Buffer
			on := place{devices: devicesOf(t, test.devices...), account: t.TempDir()}
			got := run(context.Background(), on, test.arguments, func(string) string { return "" }, &output)
			if got != 1 || !strings.Contains(output.String(), test.want) {
				t.Errorf("status %d: %s", got, output.String())
			}
		})
	}
}

func TestCount(t *testing.T) {
	for want, names := range [][]string{{"null"}, {"nvidia0", "nvidiactl"}, {"nvidia1", "nvidia0", "nvidia-modeset"}} {
		if got, err := count(devicesOf(t, names...)); err != nil || got != want {
			t.Errorf("%v: %d, %v", names, got, err)
		}
	}
	if _, err := count("/nonexistent"); err == nil || !strings.Contains(fmt.Sprint(err), "nonexistent") {
		t.Errorf("%v", err)
	}
}
