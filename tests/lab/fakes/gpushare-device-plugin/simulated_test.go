// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/extender/extendertest"
	"gpu.kubernetes.lab/fakes/internal/gpushare"
	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/kube/kubetest"
	"gpu.kubernetes.lab/fakes/internal/kubelet/kubelettest"
	"gpu.kubernetes.lab/fakes/internal/nvml"
	"gpu.kubernetes.lab/fakes/internal/nvml/nvmltest"
)

const node = "worker-1"

// world is one node of a cluster: an API server, a kubelet, and GPUs below the simulated NVML.
type world struct {
	test    *testing.T
	api     *kubetest.Server
	kubelet *kubelettest.Kubelet
	on      place
	env     map[string]string
	folder  string
	output  *extendertest.Output // of the program that was started last
}

func newWorld(t *testing.T, profile string) *world {
	t.Helper()
	folder := kubelettest.Folder(t)
	w := &world{test: t, api: kubetest.Start(t), folder: folder}
	w.setProfile(t, profile)
	w.on.driverRoot = nvmltest.DriverRoot(t)
	t.Setenv("NVML_PROFILE", filepath.Join(folder, "current.profile"))
	w.on.account, w.env = w.api.Account(t)
	w.env["NODE_NAME"] = node
	w.on.kubeletSocket = filepath.Join(folder, "kubelet.sock")
	w.on.healthInterval, w.on.socketInterval = 20*time.Millisecond, 20*time.Millisecond
	w.kubelet = kubelettest.Start(t, w.on.kubeletSocket)
	w.api.Node(node, nil)
	return w
}

func (w *world) setProfile(t *testing.T, text string) {
	t.Helper()
	path := filepath.Join(w.folder, "current.profile")
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// start runs the program; what it returns stops it and gives its exit status and output.
func (w *world) start(arguments ...string) func() (int, string) {
	ctx, cancel := context.WithCancel(context.Background())
	output := &extendertest.Output{}
	w.output = output
	var status int
	var ended sync.WaitGroup
	ended.Add(1)
	go func() {
		defer ended.Done()
		status = run(ctx, w.on, arguments, func(key string) string { return w.env[key] }, output)
	}()
	return func() (int, string) {
		cancel()
		ended.Wait()
		return status, output.String()
	}
}

func (w *world) awaitPlugin(t *testing.T) pluginapi.DevicePluginClient {
	t.Helper()
	request := w.kubelet.Await(t)
	if request.ResourceName != gpushare.Memory || request.Version != "v1beta1" || request.Options.GetPreferredAllocationAvailable {
		t.Errorf("registration %v", request)
	}
	return kubelettest.Client(t, filepath.Join(w.folder, request.Endpoint))
}

func devices(t *testing.T, client pluginapi.DevicePluginClient) map[string]string {
	t.Helper()
	stream, err := client.ListAndWatch(kubelettest.Deadline(t), &pluginapi.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	return kubelettest.Devices(t, stream)
}

// allocate asks for one container of `amount` devices, which the kubelet took from whatever GPU it liked.
func allocate(t *testing.T, client pluginapi.DevicePluginClient, amount int) map[string]string {
	t.Helper()
	ids := make([]string, amount)
	for n := range ids {
		ids[n] = "GPU-of-no-matter-_-" + strconv.Itoa(n)
	}
	response, err := client.Allocate(kubelettest.Deadline(t), &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}},
	})
	if err != nil || len(response.ContainerResponses) != 1 {
		t.Fatalf("%v, %v", response, err)
	}
	answer := response.ContainerResponses[0]
	if len(answer.Devices) != 0 || len(answer.Mounts) != 0 || len(answer.CdiDevices) != 0 || len(answer.Annotations) != 0 {
		t.Errorf("more than environment variables: %v", answer)
	}
	return answer.Envs
}

func placed(index, at string) map[string]string {
	return map[string]string{gpushare.Index: index, gpushare.Assigned: "false", gpushare.AssumeTime: at}
}

// restartKubelet does what a kubelet does that starts anew; it lives as long as the whole test.
func (w *world) restartKubelet() {
	w.kubelet.Server.Stop()
	w.kubelet = kubelettest.Start(w.test, w.on.kubeletSocket)
}

// The whole program over the simulated NVML, in the order of a node's life; a process loads NVML once.
func TestRunOverSimulatedNVML(t *testing.T) {
	w := newWorld(t, nvmltest.Profile(t, "mixed"))
	nodePath := kube.NodePath(node)

	stop := w.start("-logtostderr", "--v=5", "--memory-unit=GiB", "--health-check")
	client := w.awaitPlugin(t)
	found := devices(t, client)
	_, gpus, err := (&nvml.Library{}).Read()
	if err != nil {
		t.Fatal(err)
	}
	// The second GPU has 15 GiB, and is offered with the 40 of the first.
	want := map[string]string{}
	for _, gpu := range gpus {
		for n := range 40 {
			want[gpu.UUID+"-_-"+strconv.Itoa(n)] = pluginapi.Healthy
		}
	}
	if len(gpus) != 2 || !maps.Equal(found, want) {
		t.Errorf("devices %v", found)
	}
	for _, list := range []string{"capacity", "allocatable"} {
		if got := w.api.At(nodePath, "status", list, gpushare.Count); got != "2" {
			t.Errorf("%s of the node is %v in %s", gpushare.Count, got, list)
		}
		if got := w.api.At(nodePath, "status", list, "memory"); got != "131072Ki" {
			t.Errorf("memory of the node is now %v in %s", got, list)
		}
	}

	t.Run("a pod that was placed gets its GPU", func(t *testing.T) {
		w.api.Pod("elsewhere", "worker-2", "3", "Pending", placed("0", "1"))
		w.api.Pod("running", node, "3", "Running", placed("0", "2"))
		w.api.Pod("placed", node, "3", "Pending", placed("1", "3"))
		env := allocate(t, client, 3)
		if want := map[string]string{
			visibleDevices: gpus[1].UUID, gpushare.Index: "1", gpushare.PodMemory: "3", gpushare.Container: "3", gpushare.GPUMemory: "40",
		}; !maps.Equal(env, want) {
			t.Errorf("environment %v", env)
		}
		annotations := w.api.Annotations("placed")
		if annotations[gpushare.Assigned] != "true" || len(annotations[gpushare.AssumeTime]) != 19 || annotations[gpushare.Index] != "1" {
			t.Errorf("annotations %v", annotations)
		}
		for _, other := range []string{"elsewhere", "running"} {
			if w.api.Annotations(other)[gpushare.Assigned] != "false" {
				t.Errorf("pod %s was assigned", other)
			}
		}
	})
	none := func(amount string) map[string]string {
		return map[string]string{
			visibleDevices: "no-gpu-has-" + amount + "GiB-to-run", gpushare.Index: "-1", gpushare.PodMemory: amount,
			gpushare.Container: amount, gpushare.GPUMemory: "40",
		}
	}
	t.Run("a pod that nobody placed gets a GPU that is not there", func(t *testing.T) {
		w.api.Pod("bypassed", node, "4", "Pending", nil)
		if env := allocate(t, client, 4); !maps.Equal(env, none("4")) {
			t.Errorf("environment %v", env)
		}
	})
	t.Run("a pod on a GPU that is not here does too", func(t *testing.T) {
		w.api.Pod("beyond", node, "5", "Pending", placed("2", "1"))
		if env := allocate(t, client, 5); !maps.Equal(env, none("5")) || w.api.Annotations("beyond")[gpushare.Assigned] != "false" {
			t.Errorf("environment %v", env)
		}
	})
	t.Run("a pod that must not be patched does too", func(t *testing.T) {
		w.api.Pod("denied", node, "6", "Pending", placed("0", "1"))
		w.api.Deny("PATCH /api/v1/namespaces")
		defer w.api.Deny()
		if env := allocate(t, client, 6); !maps.Equal(env, none("6")) {
			t.Errorf("environment %v", env)
		}
	})
	t.Run("a GPU that is lost is told, and one that is back", func(t *testing.T) {
		stream, err := client.ListAndWatch(kubelettest.Deadline(t), &pluginapi.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			profile   string
			unhealthy int
		}{{"", 0}, {"fault = lost\n", 40}, {"", 0}} {
			w.setProfile(t, nvmltest.Profile(t, "mixed")+step.profile)
			lost := 0
			for id, health := range kubelettest.Devices(t, stream) {
				if health == pluginapi.Unhealthy && strings.HasPrefix(id, gpus[1].UUID) {
					lost++
				}
			}
			if lost != step.unhealthy {
				t.Errorf("%d devices of GPU 1 are unhealthy, want %d", lost, step.unhealthy)
			}
		}
	})
	t.Run("it registers again when the kubelet restarts, and leaves the count alone", func(t *testing.T) {
		w.api.Node(node, nil)
		w.restartKubelet()
		if found := devices(t, w.awaitPlugin(t)); len(found) != 80 {
			t.Errorf("%d devices", len(found))
		}
		if got := w.api.At(nodePath, "status", "capacity", gpushare.Count); got != nil {
			t.Errorf("%s is back: %v", gpushare.Count, got)
		}
	})
	if status, output := stop(); status != 0 || !strings.Contains(output, "registered aliyun.com/gpu-mem of 2 GPUs with 40 GiB each") {
		t.Errorf("status %d, output:\n%s", status, output)
	}

	t.Run("a count that is right is not written, the label is read, and MiB are too many", func(t *testing.T) {
		w.api.Put(nodePath, kubetest.Object{
			"metadata": kubetest.Object{"name": node, "labels": kubetest.Object{noIsolation: "true"}},
			"status": kubetest.Object{
				"capacity": kubetest.Object{gpushare.Count: "2"}, "allocatable": kubetest.Object{gpushare.Count: "2"},
			},
		})
		w.api.Deny("PATCH /api/v1/nodes")
		defer w.api.Deny()
		stop := w.start("--memory-unit=MiB", "--mps=true")
		client := w.awaitPlugin(t)
		// The trap of MiB: a gRPC client, as the kubelet is one, takes no message above 4 MiB.
		stream, err := client.ListAndWatch(kubelettest.Deadline(t), &pluginapi.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("a list of 81920 devices gave %v", err)
		}
		env := allocate(t, client, 7)
		if env[visibleDevices] != "no-gpu-has-7MiB-to-run" || env[isolationDisable] != "true" || env[gpushare.GPUMemory] != "40960" {
			t.Errorf("environment %v", env)
		}
		if status, output := stop(); status != 0 {
			t.Errorf("status %d, output:\n%s", status, output)
		}
	})
	t.Run("it ends where the count cannot be written", func(t *testing.T) {
		w.api.Node(node, map[string]string{gpushare.Count: "8"})
		w.api.Deny("PATCH /api/v1/nodes/" + node + "/status")
		defer w.api.Deny()
		var output bytes.Buffer
		status := run(context.Background(), w.on, nil, func(key string) string { return w.env[key] }, &output)
		if status != 1 || !strings.Contains(output.String(), "aliyun.com/gpu-count cannot be written to the node") {
			t.Errorf("status %d, output:\n%s", status, output.String())
		}
	})
	t.Run("it waits where NVML does not answer", func(t *testing.T) {
		w.setProfile(t, nvmltest.Profile(t, "no-driver"))
		stop := w.start()
		w.output.Await(t, "no GPU can be offered, waiting: nvmlInit failed")
		if status, output := stop(); status != 0 {
			t.Errorf("status %d, output:\n%s", status, output)
		}
	})
}
