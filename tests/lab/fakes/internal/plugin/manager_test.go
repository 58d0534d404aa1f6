// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"context"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/config"
	"gpu.kubernetes.lab/fakes/internal/extender/extendertest"
	"gpu.kubernetes.lab/fakes/internal/kubelet/kubelettest"
	"gpu.kubernetes.lab/fakes/internal/nvml"
)

// scripted is a Reader whose answer the test changes.
type scripted struct {
	mutex sync.Mutex
	gpus  []nvml.GPU
}

func (s *scripted) Read() (string, []nvml.GPU, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return "570.124.06", s.gpus, nil
}

func (s *scripted) set(gpus []nvml.GPU) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.gpus = gpus
}

type running struct {
	kubeletSocket string
	pluginSocket  string
	reader        *scripted
	output        *extendertest.Output
	stop          context.CancelFunc
	ended         chan error
}

func startPlugin(t *testing.T, change func(*config.Config)) *running {
	t.Helper()
	folder := kubelettest.Folder(t)
	chosen := settings(change)
	chosen.KubeletSocket = filepath.Join(folder, "kubelet.sock")
	output := &extendertest.Output{}
	manager := &Manager{
		Settings:  chosen,
		Inventory: NewInventory(twoGPUs(), chosen.Replicas),
		Log:       log.New(output, "", 0),
		Interval:  10 * time.Millisecond,
	}
	ctx, stop := context.WithCancel(context.Background())
	run := &running{
		kubeletSocket: chosen.KubeletSocket,
		pluginSocket:  filepath.Join(folder, SocketName),
		reader:        &scripted{gpus: twoGPUs()},
		output:        output,
		stop:          stop,
		ended:         make(chan error, 1),
	}
	go manager.Inventory.Watch(ctx, run.reader, 10*time.Millisecond, manager.Log)
	go func() { run.ended <- manager.Run(ctx) }()
	t.Cleanup(stop)
	return run
}

func TestRegistersAndServes(t *testing.T) {
	run := startPlugin(t, func(c *config.Config) { c.Replicas, c.RenameByDefault = 2, true })
	request := kubelettest.Start(t, run.kubeletSocket).Await(t)
	if request.Version != "v1beta1" || request.Endpoint != SocketName || request.ResourceName != "nvidia.com/gpu.shared" ||
		!request.Options.GetPreferredAllocationAvailable || request.Options.PreStartRequired {
		t.Errorf("registration %v", request)
	}
	client, ctx := kubelettest.Client(t, run.pluginSocket), kubelettest.Deadline(t)

	told, err := client.GetDevicePluginOptions(ctx, &pluginapi.Empty{})
	if err != nil || !told.GetPreferredAllocationAvailable {
		t.Errorf("options %v, %v", told, err)
	}
	preferred, err := client.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{
		ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
			AvailableDeviceIDs: []string{"GPU-bbbb::1", "GPU-bbbb::0", "GPU-aaaa::1"}, AllocationSize: 2,
		}},
	})
	if err != nil || !reflect.DeepEqual(preferred.ContainerResponses[0].DeviceIDs, []string{"GPU-bbbb::0", "GPU-aaaa::1"}) {
		t.Errorf("preferred allocation %v, %v", preferred, err)
	}
	allocated, err := client.Allocate(ctx, &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{
		{DevicesIds: []string{"GPU-aaaa::1"}}, {DevicesIds: []string{"GPU-bbbb::0"}},
	}})
	if err != nil || len(allocated.ContainerResponses) != 2 || allocated.ContainerResponses[1].Envs[visibleDevices] != "GPU-bbbb" {
		t.Errorf("allocation %v, %v", allocated, err)
	}
	_, err = client.Allocate(ctx, &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{
		{DevicesIds: []string{"GPU-cccc::0"}},
	}})
	if err == nil || !strings.Contains(err.Error(), "GPU-cccc") {
		t.Errorf("an unknown device gave %v", err)
	}
	if _, err := client.PreStartContainer(ctx, &pluginapi.PreStartContainerRequest{}); err != nil {
		t.Error(err)
	}
}

func TestTellsWhenAGPUIsLostAndBack(t *testing.T) {
	run := startPlugin(t, nil)
	kubelettest.Start(t, run.kubeletSocket).Await(t)
	stream, err := kubelettest.Client(t, run.pluginSocket).ListAndWatch(kubelettest.Deadline(t), &pluginapi.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	lost := twoGPUs()
	lost[1].Fault = "GPU is lost"
	for _, step := range []struct {
		read []nvml.GPU
		want string
	}{{twoGPUs(), "Healthy"}, {lost, "Unhealthy"}, {twoGPUs(), "Healthy"}} {
		run.reader.set(step.read)
		want := map[string]string{"GPU-aaaa": "Healthy", "GPU-bbbb": step.want}
		if got := kubelettest.Devices(t, stream); !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}

func TestRegistersAgain(t *testing.T) {
	cases := map[string]func(t *testing.T, run *running, first *kubelettest.Kubelet) *kubelettest.Kubelet{
		"after a kubelet that starts anew and empties its folder": func(t *testing.T, run *running, first *kubelettest.Kubelet) *kubelettest.Kubelet {
			first.Server.Stop()
			_ = os.Remove(run.pluginSocket)
			return kubelettest.Start(t, run.kubeletSocket)
		},
		"after a kubelet that was away for a while": func(t *testing.T, run *running, first *kubelettest.Kubelet) *kubelettest.Kubelet {
			first.Server.Stop()
			run.output.Await(t, "the kubelet's socket changed, registering again")
			return kubelettest.Start(t, run.kubeletSocket)
		},
		"after its own socket was removed": func(t *testing.T, run *running, first *kubelettest.Kubelet) *kubelettest.Kubelet {
			if err := os.Remove(run.pluginSocket); err != nil {
				t.Fatal(err)
			}
			return first
		},
	}
	for name, disturb := range cases {
		t.Run(name, func(t *testing.T) {
			run := startPlugin(t, nil)
			first := kubelettest.Start(t, run.kubeletSocket)
			first.Await(t)
			run.output.Await(t, "registered nvidia.com/gpu ") // the plugin has its answer
			disturb(t, run, first).Await(t)
			if _, err := kubelettest.Client(t, run.pluginSocket).GetDevicePluginOptions(kubelettest.Deadline(t), &pluginapi.Empty{}); err != nil {
				t.Errorf("the plugin does not answer after it registered again: %v", err)
			}
		})
	}
}

func TestStops(t *testing.T) {
	run := startPlugin(t, nil)
	kubelettest.Start(t, run.kubeletSocket).Await(t)
	run.stop()
	select {
	case err := <-run.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(kubelettest.Patience):
		t.Fatal("the plugin did not stop")
	}
	if _, err := os.Stat(run.pluginSocket); err == nil {
		t.Error("the plugin left its socket behind")
	}
}

func TestStopsWhileTheKubeletIsAway(t *testing.T) {
	run := startPlugin(t, nil)
	run.stop()
	select {
	case err := <-run.ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(kubelettest.Patience):
		t.Fatal("the plugin did not stop")
	}
}
