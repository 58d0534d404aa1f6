// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package plugin speaks the kubelet's device plugin API v1beta1 for a set of GPUs.
package plugin

import (
	"fmt"
	"slices"
	"strconv"

	"google.golang.org/grpc"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/nvml"
)

// Separators of a GPU's UUID and the number of a device: a replica of it, or a unit of its memory.
const (
	replicaSeparator = "::"
	unitSeparator    = "-_-"
)

// Inventory is the fixed set of devices of one resource.
type Inventory struct {
	health  *Health
	devices []Device
	// separator is empty where a device is called by its UUID.
	separator string
	count     int
}

// NewInventory takes the devices of a resource, each offered as many times as it has replicas.
func NewInventory(health *Health, resource Resource) *Inventory {
	if resource.Replicas == 1 {
		return &Inventory{health: health, devices: resource.Devices, count: 1}
	}
	return &Inventory{health: health, devices: resource.Devices, separator: replicaSeparator, count: resource.Replicas}
}

// NewUnitInventory takes the GPUs that have a UUID, each as `units` devices, one for each unit of its memory.
func NewUnitInventory(health *Health, gpus []nvml.GPU, units int) *Inventory {
	inventory := &Inventory{health: health, separator: unitSeparator, count: units}
	for _, gpu := range gpus {
		if gpu.UUID != "" {
			inventory.devices = append(inventory.devices, Device{UUID: gpu.UUID, Index: strconv.Itoa(gpu.Index), GPU: gpu})
		}
	}
	return inventory
}

// Devices is the list for the kubelet, and a channel that is closed when the list is out of date.
func (i *Inventory) Devices() ([]*pluginapi.Device, <-chan struct{}) {
	i.health.mutex.Lock()
	defer i.health.mutex.Unlock()
	var devices []*pluginapi.Device
	for _, device := range i.devices {
		health := pluginapi.Healthy
		if i.health.faults[device.GPU.UUID] != "" {
			health = pluginapi.Unhealthy
		}
		for _, id := range i.ids(device.UUID) {
			devices = append(devices, &pluginapi.Device{ID: id, Health: health})
		}
	}
	return devices, i.health.changed
}

// Announce sends the devices at once and again whenever the health of one changes, until the stream ends.
func (i *Inventory) Announce(stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	for {
		devices, changed := i.Devices()
		if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: devices}); err != nil {
			return err
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func (i *Inventory) ids(uuid string) []string {
	if i.separator == "" {
		return []string{uuid}
	}
	ids := make([]string, i.count)
	for n := range ids {
		ids[n] = uuid + i.separator + strconv.Itoa(n)
	}
	return ids
}

// Lookup finds the physical devices behind the ids of the kubelet, each once, in NVML's order.
func (i *Inventory) Lookup(ids []string) ([]Device, error) {
	wanted := map[string]bool{}
	for _, id := range ids {
		uuid, offered := i.find(id)
		if !offered {
			return nil, fmt.Errorf("invalid request: unknown device: %s", id)
		}
		wanted[uuid] = true
	}
	var found []Device
	for _, device := range i.devices {
		if wanted[device.UUID] {
			found = append(found, device)
		}
	}
	return found, nil
}

// find returns the UUID in an id of the kubelet, and whether the id is one of this resource.
func (i *Inventory) find(id string) (uuid string, offered bool) {
	for _, device := range i.devices {
		if slices.Contains(i.ids(device.UUID), id) {
			return device.UUID, true
		}
	}
	return "", false
}
