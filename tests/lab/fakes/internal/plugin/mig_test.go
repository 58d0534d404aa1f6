// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"gpu.kubernetes.lab/fakes/internal/config"
	"gpu.kubernetes.lab/fakes/internal/nvml"
)

// partitioned is a GPU in MIG mode with devices of these profiles.
func partitioned(index int, profiles ...string) nvml.GPU {
	gpu := nvml.GPU{Index: index, Minor: index, UUID: fmt.Sprintf("GPU-%d", index), MIGEnabled: true}
	for n, profile := range profiles {
		mig := nvml.MIG{Index: n, UUID: fmt.Sprintf("MIG-%d-%d", index, n), GPUInstance: n + 7, Profile: profile}
		fmt.Sscanf(strings.TrimPrefix(profile, "1c."), "%dg.%dgb", &mig.Attributes.Counts[6], &mig.Attributes.MemoryMiB)
		mig.Attributes.Counts[7] = mig.Attributes.Counts[6]
		if strings.HasPrefix(profile, "1c.") {
			mig.Attributes.Counts[7] = 1
		}
		gpu.MIGs = append(gpu.MIGs, mig)
	}
	return gpu
}

// texts are resources as "NAME*REPLICAS: UUID@INDEX …".
func texts(resources []Resource) []string {
	var found []string
	for _, resource := range resources {
		text := fmt.Sprintf("%s*%d:", resource.Name, resource.Replicas)
		for _, device := range resource.Devices {
			text += " " + device.UUID + "@" + device.Index
		}
		found = append(found, text)
	}
	return found
}

func TestResourcesFollowTheMIGStrategy(t *testing.T) {
	whole := nvml.GPU{Index: 1, UUID: "GPU-1"}
	two := partitioned(0, "1g.10gb", "1g.10gb")
	cases := map[string]struct {
		strategy string
		gpus     []nvml.GPU
		want     []string
		refused  string
	}{
		"none offers the whole GPU":     {"none", []nvml.GPU{two}, []string{"nvidia.com/gpu*1: GPU-0@0"}, ""},
		"single":                        {"single", []nvml.GPU{two}, []string{"nvidia.com/gpu*1: MIG-0-0@0:0 MIG-0-1@0:1"}, ""},
		"single without MIG":            {"single", []nvml.GPU{whole}, []string{"nvidia.com/gpu*1: GPU-1@1"}, ""},
		"single with part of instances": {"single", []nvml.GPU{partitioned(0, "1c.3g.40gb")}, []string{"nvidia.com/gpu*1: MIG-0-0@0:0"}, ""},
		"single without devices": {
			"single", []nvml.GPU{two, partitioned(1)}, nil,
			"at least one device with migEnabled=true was not configured correctly: device 1 has no MIG devices configured",
		},
		"single beside a whole GPU": {"single", []nvml.GPU{two, whole}, nil, "all devices on the node must be configured with the same migEnabled value"},
		"single with two types": {
			"single", []nvml.GPU{two, partitioned(1, "2g.20gb")}, nil, "more than one MIG device type present on node",
		},
		"mixed": {
			"mixed", []nvml.GPU{partitioned(0, "1g.10gb", "1g.10gb+me", "2g.20gb-me"), whole},
			[]string{"nvidia.com/gpu*1: GPU-1@1", "nvidia.com/mig-1g.10gb*1: MIG-0-0@0:0", "nvidia.com/mig-1g.10gb.me*1: MIG-0-1@0:1", "nvidia.com/mig-2g.20gb-me*1: MIG-0-2@0:2"}, "",
		},
		"mixed without devices":        {"mixed", []nvml.GPU{partitioned(0)}, nil, ""},
		"mixed with part of instances": {"mixed", []nvml.GPU{partitioned(0, "1c.3g.20gb")}, nil, "MIG profile '1c.3g.20gb' does not match any resource patterns"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			settings := config.Default()
			settings.MIGStrategy = test.strategy
			resources, err := Resources(settings, test.gpus)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("got %v, %v, want an error with %q", resources, err, test.refused)
				}
				return
			}
			if err != nil || !reflect.DeepEqual(texts(resources), test.want) {
				t.Errorf("got %q, %v, want %q", texts(resources), err, test.want)
			}
		})
	}
}

func TestResourcesAreShared(t *testing.T) {
	settings := config.Default()
	settings.MIGStrategy, settings.Sharing, settings.RenameByDefault = config.MIGMixed, config.SharingTimeSlicing, true
	settings.Replicas = map[string]int{"nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-7g.80gb": 2}
	gpus := []nvml.GPU{partitioned(0, "1g.10gb"), {Index: 1, UUID: "GPU-1"}}
	resources, err := Resources(settings, gpus)
	want := []string{"nvidia.com/gpu*1: GPU-1@1", "nvidia.com/mig-1g.10gb.shared*2: MIG-0-0@0:0"}
	if err != nil || !reflect.DeepEqual(texts(resources), want) {
		t.Errorf("got %q, %v, want %q", texts(resources), err, want)
	}
	settings.Sharing = config.SharingMPS
	if _, err := Resources(settings, gpus); err == nil || err.Error() != "sharing using MPS is not supported for MIG devices" {
		t.Errorf("MPS: got %v", err)
	}
}

func TestAllocateGivesMIGDevices(t *testing.T) {
	settings := config.Default()
	settings.MIGStrategy, settings.PassDeviceSpecs = config.MIGSingle, true
	settings.ContainerDriverRoot = t.TempDir()
	inventory := inventoryOf(t, settings, []nvml.GPU{partitioned(0, "1g.10gb", "1g.10gb")})
	if _, err := allocate(settings, config.Resource, inventory, []string{"MIG-0-1"}); err == nil || !strings.Contains(err.Error(), "missing MIG GPU instance capability path") {
		t.Errorf("without capabilities: got %v", err)
	}
	minors := filepath.Join(settings.ContainerDriverRoot, migMinors)
	if err := os.MkdirAll(filepath.Dir(minors), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(minors, []byte("config 1\ngpu0/gi8/access 75\ngpu0/gi8/ci0/access 76\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	settings.DeviceListStrategy = []string{config.ListEnvVar, config.ListCDICRI}
	settings.DeviceIDStrategy = config.IDByIndex
	response, err := allocate(settings, config.Resource, inventory, []string{"MIG-0-1"})
	if err != nil || response.Envs[visibleDevices] != "0:1" || response.CdiDevices[0].Name != "nvidia.com/gpu=0:1" {
		t.Fatalf("got %v, %v", response, err)
	}
	var nodes []string
	for _, device := range response.Devices {
		nodes = append(nodes, device.HostPath)
	}
	want := []string{"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap75", "/dev/nvidia-caps/nvidia-cap76"}
	if !reflect.DeepEqual(nodes[len(nodes)-3:], want) {
		t.Errorf("device nodes %v, want %v", nodes, want)
	}
}

func TestMIGDeviceIsAsHealthyAsItsGPU(t *testing.T) {
	settings := config.Default()
	settings.MIGStrategy = config.MIGSingle
	gpus := []nvml.GPU{partitioned(0, "1g.10gb")}
	inventory := inventoryOf(t, settings, gpus)
	for _, test := range []struct {
		read []nvml.GPU
		want string
	}{
		{[]nvml.GPU{partitioned(0)}, "Healthy"}, // the device was destroyed: the original does not see it
		{nil, "Unhealthy"},
	} {
		inventory.health.Update(test.read, nil)
		if devices, _ := inventory.Devices(); len(devices) != 1 || devices[0].ID != "MIG-0-0" || devices[0].Health != test.want {
			t.Errorf("got %v, want %s", devices, test.want)
		}
	}
}

func TestAllocateAddsTheFoldersOfMPS(t *testing.T) {
	settings := config.Default()
	settings.Sharing, settings.MPSRoot = config.SharingMPS, "/run/nvidia/mps"
	settings.Replicas, settings.RenameByDefault = map[string]int{config.Resource: 4}, true
	response, err := allocate(settings, "nvidia.com/gpu.shared", inventoryOf(t, settings, twoGPUs()), []string{"GPU-bbbb::3"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{visibleDevices: "GPU-bbbb", "CUDA_MPS_PIPE_DIRECTORY": "/mps/nvidia.com/gpu.shared/pipe"}
	if !reflect.DeepEqual(response.Envs, want) {
		t.Errorf("got %v, want %v", response.Envs, want)
	}
	mounts := map[string]string{}
	for _, mount := range response.Mounts {
		mounts[mount.ContainerPath] = mount.HostPath
	}
	want = map[string]string{"/mps/nvidia.com/gpu.shared/pipe": "/run/nvidia/mps/nvidia.com/gpu.shared/pipe", "/dev/shm": "/run/nvidia/mps/shm"}
	if !reflect.DeepEqual(mounts, want) {
		t.Errorf("got %v, want %v", mounts, want)
	}
}

func TestSocketOfEachResource(t *testing.T) {
	for resource, want := range map[string]string{
		"nvidia.com/gpu": "fake-nvidia-gpu.sock", "nvidia.com/mig-1g.10gb.me": "fake-nvidia-mig-1g.10gb.me.sock",
	} {
		if got := socketName(resource); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
