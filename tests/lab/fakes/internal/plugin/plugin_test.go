// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"gpu.kubernetes.lab/fakes/internal/config"
	"gpu.kubernetes.lab/fakes/internal/nvml"
)

func twoGPUs() []nvml.GPU {
	return []nvml.GPU{
		{Index: 0, Minor: 0, UUID: "GPU-aaaa", Name: "NVIDIA A"},
		{Index: 1, Minor: 3, UUID: "GPU-bbbb", Name: "NVIDIA B"},
	}
}

// inventoryOf is the inventory of the only resource of a node.
func inventoryOf(t *testing.T, settings config.Config, gpus []nvml.GPU) *Inventory {
	t.Helper()
	resources, err := Resources(settings, gpus)
	if err != nil || len(resources) != 1 {
		t.Fatalf("got %v, %v, want one resource", resources, err)
	}
	return NewInventory(NewHealth(gpus), resources[0])
}

// The scenarios have GPUs by their UUID in the environment; the other settings are tested here.
func TestAllocateGivesExactlyTheRequestedGPUs(t *testing.T) {
	byCDI := func(c *config.Config) { c.DeviceListStrategy = []string{config.ListCDICRI, config.ListCDIAnnotations} }
	byIndex := func(c *config.Config) { c.DeviceIDStrategy, c.PassDeviceSpecs = config.IDByIndex, true }
	shared := func(c *config.Config) {
		c.Sharing, c.Replicas = config.SharingTimeSlicing, map[string]int{config.Resource: 4}
	}
	cases := map[string]struct {
		change  func(*config.Config)
		ids     []string
		visible string // NVIDIA_VISIBLE_DEVICES
		cdi     string
		node    string // the last device node
		refused string
	}{
		"both in the order of the node": {change: func(*config.Config) {}, ids: []string{"GPU-bbbb", "GPU-aaaa"}, visible: "GPU-aaaa,GPU-bbbb"},
		"by index with device nodes":    {change: byIndex, ids: []string{"GPU-bbbb"}, visible: "1", node: "/dev/nvidia3"},
		"by CDI":                        {change: byCDI, ids: []string{"GPU-bbbb"}, cdi: "nvidia.com/gpu=GPU-bbbb"},
		"two replicas of one GPU":       {change: shared, ids: []string{"GPU-bbbb::0", "GPU-bbbb::3"}, visible: "GPU-bbbb"},
		"an unknown GPU":                {change: shared, ids: []string{"GPU-cccc::0"}, refused: "invalid request: unknown device: GPU-"},
		"a replica that does not exist": {change: shared, ids: []string{"GPU-bbbb::4"}, refused: "invalid request: unknown device: GPU-"},
		"a whole GPU where it is shared": {
			change: shared, ids: []string{"GPU-bbbb"}, refused: "invalid request: unknown device: GPU-",
		},
		"more than one replica where one is allowed": {
			change: func(c *config.Config) { shared(c); c.FailRequestsGreaterThanOne = true },
			ids:    []string{"GPU-aaaa::0", "GPU-bbbb::0"}, refused: "invalid request: maximum request size for shared resources is 1; found 2",
		},
		"several whole GPUs where only replicas are limited": {
			change: func(c *config.Config) { c.FailRequestsGreaterThanOne = true },
			ids:    []string{"GPU-aaaa", "GPU-bbbb"}, visible: "GPU-aaaa,GPU-bbbb",
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			chosen := config.Default()
			test.change(&chosen)
			response, err := allocate(chosen, config.Resource, inventoryOf(t, chosen, twoGPUs()), test.ids)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("got %v, want an error with %q", err, test.refused)
				}
				return
			}
			if err != nil || response.Envs[visibleDevices] != test.visible {
				t.Fatalf("got %v, %v", response, err)
			}
			cdi := ""
			for _, device := range response.CdiDevices {
				cdi += device.Name
			}
			annotation := ""
			for _, value := range response.Annotations {
				annotation += value
			}
			if cdi != test.cdi || annotation != test.cdi {
				t.Errorf("CDI devices %q and %q, want %q", cdi, annotation, test.cdi)
			}
			node := ""
			for _, device := range response.Devices {
				node = device.ContainerPath
			}
			if node != test.node {
				t.Errorf("device nodes %v", response.Devices)
			}
		})
	}
}

func TestLostGPUIsUnhealthyUntilItIsBack(t *testing.T) {
	lost := twoGPUs()
	lost[1].Fault = "GPU is lost"
	inventory := inventoryOf(t, config.Default(), append(twoGPUs(), nvml.GPU{Index: 2, Fault: "GPU is lost"}))
	steps := []struct {
		name          string
		read          []nvml.GPU
		failure       error
		first, second string
	}{
		{"all there", twoGPUs(), nil, "Healthy", "Healthy"},
		{"one lost", lost, nil, "Healthy", "Unhealthy"},
		{"still lost", lost, nil, "Healthy", "Unhealthy"},
		{"back", twoGPUs(), nil, "Healthy", "Healthy"},
		{"not listed", twoGPUs()[:1], nil, "Healthy", "Unhealthy"},
		{"driver gone", nil, errors.New("driver not loaded"), "Unhealthy", "Unhealthy"},
		{"driver back", twoGPUs(), nil, "Healthy", "Healthy"},
	}
	before := map[string]string{"GPU-aaaa": "Healthy", "GPU-bbbb": "Healthy"} // a GPU without a UUID is left out
	for _, step := range steps {
		_, changed := inventory.Devices()
		inventory.health.Update(step.read, step.failure)
		announced := false
		select {
		case <-changed:
			announced = true
		default:
		}
		got, want := map[string]string{}, map[string]string{"GPU-aaaa": step.first, "GPU-bbbb": step.second}
		devices, _ := inventory.Devices()
		for _, device := range devices {
			got[device.ID] = device.Health
		}
		if !reflect.DeepEqual(got, want) || announced == reflect.DeepEqual(want, before) {
			t.Errorf("%s: got %v, announced %t, want %v", step.name, got, announced, want)
		}
		before = want
	}
}
