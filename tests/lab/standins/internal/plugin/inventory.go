// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package plugin speaks the kubelet's device plugin API v1beta1 for a set of GPUs.
package plugin

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/standins/internal/nvml"
)

const replicaSeparator = "::"

// Inventory is the fixed set of GPUs found at the start, with the health of each as last seen.
type Inventory struct {
	gpus     []nvml.GPU
	replicas int

	mutex   sync.Mutex
	faults  map[string]string
	changed chan struct{}
}

// NewInventory takes the GPUs that have a UUID, each offered `replicas` times. A GPU without UUID cannot be named to
// the kubelet and is left out.
func NewInventory(gpus []nvml.GPU, replicas int) *Inventory {
	inventory := &Inventory{replicas: replicas, faults: map[string]string{}, changed: make(chan struct{})}
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

// Update compares a new read of NVML with what was known and returns one sentence for each GPU whose health changed.
// A failed read makes every GPU unhealthy, a GPU that is missing from the read too.
func (i *Inventory) Update(read []nvml.GPU, failure error) []string {
	seen := map[string]nvml.GPU{}
	for _, gpu := range read {
		seen[gpu.UUID] = gpu
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	var news []string
	for _, gpu := range i.gpus {
		before, after := i.faults[gpu.UUID], faultOf(gpu, seen, failure)
		if (before == "") == (after == "") {
			continue
		}
		i.faults[gpu.UUID] = after
		if after == "" {
			news = append(news, fmt.Sprintf("GPU %s is healthy again", gpu.UUID))
		} else {
			news = append(news, fmt.Sprintf("GPU %s is unhealthy: %s", gpu.UUID, after))
		}
	}
	if len(news) > 0 {
		close(i.changed)
		i.changed = make(chan struct{})
	}
	return news
}

func faultOf(gpu nvml.GPU, seen map[string]nvml.GPU, failure error) string {
	if failure != nil {
		return failure.Error()
	}
	now, found := seen[gpu.UUID]
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

func (i *Inventory) ids(gpu nvml.GPU) []string {
	if i.replicas == 1 {
		return []string{gpu.UUID}
	}
	ids := make([]string, i.replicas)
	for n := range ids {
		ids[n] = gpu.UUID + replicaSeparator + strconv.Itoa(n)
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
		wanted[uuidOf(id)] = true
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
	uuid, number, isReplica := strings.Cut(id, replicaSeparator)
	n, err := strconv.Atoi(number)
	for _, gpu := range i.gpus {
		if gpu.UUID != uuid {
			continue
		}
		if i.replicas == 1 {
			return !isReplica
		}
		return isReplica && err == nil && n >= 0 && n < i.replicas
	}
	return false
}

func uuidOf(id string) string {
	uuid, _, _ := strings.Cut(id, replicaSeparator)
	return uuid
}
