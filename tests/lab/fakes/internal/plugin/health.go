// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"context"
	"fmt"
	"log"
	"sync"
	"time"

	"gpu.kubernetes.lab/fakes/internal/nvml"
)

// Reader reads the GPUs as they are now.
type Reader interface {
	Read() (driver string, gpus []nvml.GPU, err error)
}

// Health is that of the GPUs found at the start, at the last read. A MIG device is as healthy as its GPU: the original does not see that
// one was destroyed or made.
type Health struct {
	uuids []string

	mutex   sync.Mutex
	faults  map[string]string
	changed chan struct{}
}

// NewHealth takes the GPUs that have a UUID.
func NewHealth(gpus []nvml.GPU) *Health {
	health := &Health{faults: map[string]string{}, changed: make(chan struct{})}
	for _, gpu := range gpus {
		if gpu.UUID == "" {
			continue
		}
		health.uuids = append(health.uuids, gpu.UUID)
		if gpu.Fault != "" {
			health.faults[gpu.UUID] = gpu.Fault
		}
	}
	return health
}

// Watch reads NVML every interval until the context ends and reports to the kubelet GPUs that are lost or back.
func (h *Health) Watch(ctx context.Context, reader Reader, interval time.Duration, logger *log.Logger) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		_, gpus, err := reader.Read()
		for _, sentence := range h.Update(gpus, err) {
			logger.Print(sentence)
		}
	}
}

// Update compares a new read of NVML with what was known and returns one sentence for each GPU whose health changed.
// A failed read makes every GPU unhealthy, a GPU that is missing from the read too.
func (h *Health) Update(read []nvml.GPU, failure error) []string {
	byUUID := map[string]nvml.GPU{}
	for _, gpu := range read {
		byUUID[gpu.UUID] = gpu
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	var messages []string
	for _, uuid := range h.uuids {
		before, after := h.faults[uuid], faultOf(uuid, byUUID, failure)
		if (before == "") == (after == "") {
			continue
		}
		h.faults[uuid] = after
		if after == "" {
			messages = append(messages, fmt.Sprintf("GPU %s is healthy again", uuid))
		} else {
			messages = append(messages, fmt.Sprintf("GPU %s is unhealthy: %s", uuid, after))
		}
	}
	if len(messages) > 0 {
		close(h.changed)
		h.changed = make(chan struct{})
	}
	return messages
}

func faultOf(uuid string, byUUID map[string]nvml.GPU, failure error) string {
	if failure != nil {
		return failure.Error()
	}
	now, found := byUUID[uuid]
	if !found {
		return "NVML does not list it any more"
	}
	return now.Fault
}
