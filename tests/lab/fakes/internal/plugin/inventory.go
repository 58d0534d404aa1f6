// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package plugin speaks the kubelet's device plugin API v1beta1 for a set of GPUs.
package plugin

import (
	"context"
	"fmt"
	"log"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/nvml"
)

// Separators of a GPU's UUID and the number of a device: a replica of it, or a unit of its memory.
const (
	replicaSeparator = "::"
	unitSeparator    = "-_-"
)

// Reader reads the GPUs as they are now.
type Reader interface {
	Read() (driver string, gpus []nvml.GPU, err error)
}

// Inventory is the fixed set of GPUs found at the start, with the health of each at the last read.
type Inventory struct {
	gpus []nvml.GPU
	// separator is empty where the one device of a GPU is called by its UUID.
	separator string
	devices   int

	mutex   sync.Mutex
	faults  map[string]string
	changed chan struct{}
}

// NewInventory takes the GPUs that have a UUID, each offered `replicas` times. A GPU without UUID cannot be named to
// the kubelet and is left out.
func NewInventory(gpus []nvml.GPU, replicas int) *Inventory {
	if replicas == 1 {
		return newInventory(gpus, "", 1)
	}
	return newInventory(gpus, replicaSeparator, replicas)
}

// NewUnitInventory takes the same GPUs, each as `units` devices, one for each unit of its memory.
func NewUnitInventory(gpus []nvml.GPU, units int) *Inventory {
	return newInventory(gpus, unitSeparator, units)
}

func newInventory(gpus []nvml.GPU, separator string, devices int) *Inventory {
	inventory := &Inventory{
		separator: separator, devices: devices, faults: map[string]string{}, changed: make(chan struct{}),
	}
	for _, gpu := range gpus {
		if gpu.UUID == "" {
			continue
		}
		inventory.gpus = append(inventory.gpus, gpu)
		if gpu.Fault != "" {
			inventory.faults[gpu.UUID] = gpu.Fault
		}
	}
	return inventory
}

// Len is the number of physical GPUs.
func (i *Inventory) Len() int { return len(i.gpus) }

// Watch reads NVML every interval until the context ends and reports to the kubelet GPUs that are lost or back.
func (i *Inventory) Watch(ctx context.Context, reader Reader, interval time.Duration, logger *log.Logger) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_, gpus, err := reader.Read()
		for _, sentence := range i.Update(gpus, err) {
			logger.Print(sentence)
		}
	}
}

// Update compares a new read of NVML with what was known and returns one sentence for each GPU whose health changed.
// A failed read makes every GPU unhealthy, a GPU that is missing from the read too.
func (i *Inventory) Update(read []nvml.GPU, failure error) []string {
	byUUID := map[string]nvml.GPU{}
	for _, gpu := range read {
		byUUID[gpu.UUID] = gpu
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	var messages []string
	for _, gpu := range i.gpus {
		before, after := i.faults[gpu.UUID], faultOf(gpu, byUUID, failure)
		if (before == "") == (after == "") {
			continue
		}
		i.faults[gpu.UUID] = after
		if after == "" {
			messages = append(messages, fmt.Sprintf("GPU %s is healthy again", gpu.UUID))
		} else {
			messages = append(messages, fmt.Sprintf("GPU %s is unhealthy: %s", gpu.UUID, after))
		}
	}
	if len(messages) > 0 {
		close(i.changed)
		i.changed = make(chan struct{})
	}
	return messages
}

func faultOf(gpu nvml.GPU, byUUID map[string]nvml.GPU, failure error) string {
	if failure != nil {
		return failure.Error()
	}
	now, found := byUUID[gpu.UUID]
	if !found {
		return "NVML does not list it any more"
	}
	return now.Fault
}

// Devices is the list for the kubelet, and a channel that is closed when the list is out of date.
func (i *Inventory) Devices() ([]*pluginapi.Device, <-chan struct{}) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	var devices []*pluginapi.Device
	for _, gpu := range i.gpus {
		health := pluginapi.Healthy
		if i.faults[gpu.UUID] != "" {
			health = pluginapi.Unhealthy
		}
		for _, id := range i.ids(gpu) {
			devices = append(devices, &pluginapi.Device{ID: id, Health: health})
		}
	}
	return devices, i.changed
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

func (i *Inventory) ids(gpu nvml.GPU) []string {
	if i.separator == "" {
		return []string{gpu.UUID}
	}
	ids := make([]string, i.devices)
	for n := range ids {
		ids[n] = gpu.UUID + i.separator + strconv.Itoa(n)
	}
	return ids
}

// Lookup finds the physical GPUs behind the ids of the kubelet, each once, in NVML's order.
func (i *Inventory) Lookup(ids []string) ([]nvml.GPU, error) {
	wanted := map[string]bool{}
	for _, id := range ids {
		if !i.offers(id) {
			return nil, fmt.Errorf("device %q is not one of this node's", id)
		}
		wanted[i.uuidOf(id)] = true
	}
	var found []nvml.GPU
	for _, gpu := range i.gpus {
		if wanted[gpu.UUID] {
			found = append(found, gpu)
		}
	}
	return found, nil
}

func (i *Inventory) offers(id string) bool {
	if i.separator == "" {
		return i.has(id)
	}
	uuid, number, _ := strings.Cut(id, i.separator)
	n, err := strconv.Atoi(number)
	return i.has(uuid) && err == nil && n >= 0 && n < i.devices
}

func (i *Inventory) has(uuid string) bool {
	return slices.ContainsFunc(i.gpus, func(gpu nvml.GPU) bool { return gpu.UUID == uuid })
}

func (i *Inventory) uuidOf(id string) string {
	if i.separator == "" {
		return id
	}
	uuid, _, _ := strings.Cut(id, i.separator)
	return uuid
}
