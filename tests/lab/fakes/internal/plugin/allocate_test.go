// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/config"
	"gpu.kubernetes.lab/fakes/internal/nvml"
)

func twoGPUs() []nvml.GPU {
	return []nvml.GPU{
		{Index: 0, Minor: 0, UUID: "GPU-aaaa", Name: "NVIDIA A"},
		{Index: 1, Minor: 3, UUID: "GPU-bbbb", Name: "NVIDIA B"},
	}
}

func settings(change func(*config.Config)) config.Config {
	c := config.Default()
	if change != nil {
		change(&c)
	}
	return c
}

func cdiNames(response *pluginapi.ContainerAllocateResponse) []string {
	var names []string
	for _, device := range response.CdiDevices {
		names = append(names, device.Name)
	}
	return names
}

func TestAllocate(t *testing.T) {
	cases := map[string]struct {
		change      func(*config.Config)
		ids         []string
		env         map[string]string
		cdi         []string
		annotation  string
		deviceNodes []string
	}{
		"one by environment": {ids: []string{"GPU-bbbb"}, env: map[string]string{visibleDevices: "GPU-bbbb"}},
		"two in the order of the node": {
			ids: []string{"GPU-bbbb", "GPU-aaaa"}, env: map[string]string{visibleDevices: "GPU-aaaa,GPU-bbbb"},
		},
		"by index": {
			change: func(c *config.Config) { c.DeviceIDStrategy = config.IDByIndex },
			ids:    []string{"GPU-bbbb"}, env: map[string]string{visibleDevices: "1"},
		},
		"device specs": {
			change: func(c *config.Config) { c.PassDeviceSpecs, c.DevRoot = true, "/opt/root" },
			ids:    []string{"GPU-bbbb"}, env: map[string]string{visibleDevices: "GPU-bbbb"},
			deviceNodes: []string{"/opt/root/dev/nvidia3"},
		},
		"only CDI by the CRI field": {
			change: func(c *config.Config) {
				c.DeviceListStrategy = []string{config.ListCDICRI}
				c.PassDeviceSpecs = true
			},
			ids: []string{"GPU-aaaa", "GPU-bbbb"}, cdi: []string{"nvidia.com/gpu=GPU-aaaa", "nvidia.com/gpu=GPU-bbbb"},
		},
		"only CDI by annotation": {
			change: func(c *config.Config) { c.DeviceListStrategy = []string{config.ListCDIAnnotations} },
			ids:    []string{"GPU-aaaa", "GPU-bbbb"}, annotation: "nvidia.com/gpu=GPU-aaaa,nvidia.com/gpu=GPU-bbbb",
		},
		"environment and CDI by index": {
			change: func(c *config.Config) {
				c.DeviceListStrategy = []string{config.ListEnvVar, config.ListCDICRI}
				c.DeviceIDStrategy = config.IDByIndex
			},
			ids: []string{"GPU-bbbb"}, env: map[string]string{visibleDevices: "1"}, cdi: []string{"nvidia.com/gpu=1"},
		},
		"replicas of one GPU": {
			change: func(c *config.Config) { c.Replicas = 4 },
			ids:    []string{"GPU-bbbb::0", "GPU-bbbb::3"}, env: map[string]string{visibleDevices: "GPU-bbbb"},
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			chosen := settings(test.change)
			response, err := allocate(chosen, NewInventory(twoGPUs(), chosen.Replicas), test.ids)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(response.Envs, test.env) {
				t.Errorf("environment: got %v, want %v", response.Envs, test.env)
			}
			if got := cdiNames(response); !reflect.DeepEqual(got, test.cdi) {
				t.Errorf("CDI devices: got %v, want %v", got, test.cdi)
			}
			checkAnnotation(t, response.Annotations, test.annotation)
			var nodes []string
			for _, device := range response.Devices {
				if strings.HasPrefix(device.ContainerPath, "/dev/nvidia3") {
					nodes = append(nodes, device.HostPath)
				}
			}
			if !reflect.DeepEqual(nodes, test.deviceNodes) {
				t.Errorf("device specs: got %v, want %v", nodes, test.deviceNodes)
			}
		})
	}
}

func checkAnnotation(t *testing.T, annotations map[string]string, want string) {
	t.Helper()
	if want == "" {
		if len(annotations) != 0 {
			t.Errorf("annotations: got %v, want none", annotations)
		}
		return
	}
	if len(annotations) != 1 {
		t.Fatalf("annotations: got %v, want one", annotations)
	}
	for key, value := range annotations {
		name, found := strings.CutPrefix(key, "cdi.k8s.io/")
		if !found || len(name) > 63 || value != want {
			t.Errorf("annotation %s=%s, want %s under a CDI key", key, value, want)
		}
	}
}

func TestAllocateRefuses(t *testing.T) {
	shared := func(c *config.Config) { c.Replicas, c.FailRequestsGreaterThanOne = 2, true }
	cases := map[string]struct {
		change func(*config.Config)
		ids    []string
		want   string
	}{
		"none":                    {ids: nil, want: "no device was asked for"},
		"unknown":                 {ids: []string{"GPU-cccc"}, want: `"GPU-cccc" is not one of this node's`},
		"replica where unshared":  {ids: []string{"GPU-aaaa::0"}, want: "is not one of"},
		"GPU where shared":        {change: shared, ids: []string{"GPU-aaaa"}, want: "is not one of"},
		"replica out of range":    {change: shared, ids: []string{"GPU-aaaa::2"}, want: "is not one of"},
		"replica not a number":    {change: shared, ids: []string{"GPU-aaaa::x"}, want: "is not one of"},
		"more than one if shared": {change: shared, ids: []string{"GPU-aaaa::0", "GPU-bbbb::0"}, want: "failRequestsGreaterThanOne"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			chosen := settings(test.change)
			_, err := allocate(chosen, NewInventory(twoGPUs(), chosen.Replicas), test.ids)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestPrefer(t *testing.T) {
	plain := []string{"a", "b", "c"}
	mixed := []string{"a::1", "b::0", "b::1", "b::2", "c::0", "c::1"}
	cases := map[string]struct {
		policy    string
		available []string
		required  []string
		size      int
		want      []string
	}{
		"first of the node":   {config.PolicyDistributed, plain, nil, 2, []string{"a", "b"}},
		"required first":      {config.PolicyDistributed, plain, []string{"c"}, 2, []string{"c", "a"}},
		"nothing":             {config.PolicyDistributed, plain, nil, 0, nil},
		"distributed replica": {config.PolicyDistributed, mixed, nil, 3, []string{"b::0", "b::1", "c::0"}},
		"packed replica":      {config.PolicyPacked, mixed, nil, 3, []string{"a::1", "c::0", "c::1"}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := prefer(test.policy, test.available, test.required, test.size)
			if err != nil || !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, %v, want %v", got, err, test.want)
			}
		})
	}
	for name, size := range map[string]int{"too many": 4, "fewer than required": 0} {
		if _, err := prefer(config.PolicyPacked, plain, []string{"a"}, size); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := prefer(config.PolicyPacked, plain, []string{"z"}, 1); err == nil {
		t.Error("a required device that is not available gave no error")
	}
}

func health(inventory *Inventory) map[string]string {
	devices, _ := inventory.Devices()
	found := map[string]string{}
	for _, device := range devices {
		found[device.ID] = device.Health
	}
	return found
}

func TestInventoryHealth(t *testing.T) {
	lost := twoGPUs()
	lost[1].Fault = "GPU is lost"
	inventory := NewInventory(append(twoGPUs(), nvml.GPU{Index: 2, Fault: "GPU is lost"}), 1)
	if inventory.Len() != 2 {
		t.Fatalf("%d GPUs, a GPU without UUID has to be left out", inventory.Len())
	}
	steps := []struct {
		name    string
		read    []nvml.GPU
		failure error
		news    int
		want    map[string]string
	}{
		{"nothing new", twoGPUs(), nil, 0, map[string]string{"GPU-aaaa": "Healthy", "GPU-bbbb": "Healthy"}},
		{"one lost", lost, nil, 1, map[string]string{"GPU-aaaa": "Healthy", "GPU-bbbb": "Unhealthy"}},
		{"still lost", lost, nil, 0, map[string]string{"GPU-aaaa": "Healthy", "GPU-bbbb": "Unhealthy"}},
		{"not listed is lost too", twoGPUs()[:1], nil, 0, map[string]string{"GPU-aaaa": "Healthy", "GPU-bbbb": "Unhealthy"}},
		{"back", twoGPUs(), nil, 1, map[string]string{"GPU-aaaa": "Healthy", "GPU-bbbb": "Healthy"}},
		{"driver gone", nil, errors.New("driver not loaded"), 2, map[string]string{"GPU-aaaa": "Unhealthy", "GPU-bbbb": "Unhealthy"}},
		{"driver back", twoGPUs(), nil, 2, map[string]string{"GPU-aaaa": "Healthy", "GPU-bbbb": "Healthy"}},
	}
	for _, step := range steps {
		_, changed := inventory.Devices()
		news := inventory.Update(step.read, step.failure)
		if len(news) != step.news {
			t.Errorf("%s: news %v, want %d", step.name, news, step.news)
		}
		select {
		case <-changed:
			if step.news == 0 {
				t.Errorf("%s: a change was announced", step.name)
			}
		default:
			if step.news > 0 {
				t.Errorf("%s: the change was not announced", step.name)
			}
		}
		if got := health(inventory); !reflect.DeepEqual(got, step.want) {
			t.Errorf("%s: got %v, want %v", step.name, got, step.want)
		}
	}
}

func TestInventoryStartsWithALostGPU(t *testing.T) {
	gpus := twoGPUs()
	gpus[0].Fault = "GPU is lost"
	want := map[string]string{
		"GPU-aaaa::0": "Unhealthy", "GPU-aaaa::1": "Unhealthy", "GPU-bbbb::0": "Healthy", "GPU-bbbb::1": "Healthy",
	}
	if got := health(NewInventory(gpus, 2)); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
