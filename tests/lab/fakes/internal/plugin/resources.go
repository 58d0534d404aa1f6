// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gpu.kubernetes.lab/fakes/internal/config"
	"gpu.kubernetes.lab/fakes/internal/nvml"
)

// Device is what one UUID names: a GPU, or a MIG device.
type Device struct {
	UUID string
	// Index is that of NVML, 0, or 0:1 for a MIG device of GPU 0.
	Index string
	GPU   nvml.GPU
	// MIG is nil for a whole GPU.
	MIG *nvml.MIG
}

// Resource is one extended resource of the node.
type Resource struct {
	Name     string
	Replicas int
	Devices  []Device
}

// Resources sorts the GPUs and MIG devices of a node into resources, sorted by name, as the MIG strategy says, with the errors of the
// original. A GPU without UUID cannot be named to the kubelet and is left out.
func Resources(settings config.Config, gpus []nvml.GPU) ([]Resource, error) {
	byName := map[string][]Device{}
	for _, gpu := range gpus {
		if gpu.UUID != "" && (!gpu.MIGEnabled || settings.MIGStrategy == config.MIGNone) {
			device := Device{UUID: gpu.UUID, Index: strconv.Itoa(gpu.Index), GPU: gpu}
			byName[config.Resource] = append(byName[config.Resource], device)
		}
	}
	whole := len(byName) > 0
	partitions, err := partitionsOf(settings.MIGStrategy, gpus)
	if err != nil {
		return nil, err
	}
	if settings.MIGStrategy == config.MIGSingle && whole && len(partitions) > 0 {
		return nil, errors.New("all devices on the node must be configured with the same migEnabled value")
	}
	if settings.Sharing == config.SharingMPS && len(partitions) > 0 {
		return nil, errors.New("sharing using MPS is not supported for MIG devices")
	}
	for _, device := range partitions {
		name := config.Resource
		if settings.MIGStrategy == config.MIGMixed {
			name = config.MIGResource + strings.ReplaceAll(device.MIG.Profile, "+", ".")
		}
		byName[name] = append(byName[name], device)
	}
	var resources []Resource
	for name, devices := range byName {
		offered, replicas := settings.Offer(name)
		resources = append(resources, Resource{Name: offered, Replicas: replicas, Devices: devices})
	}
	slices.SortFunc(resources, func(a, b Resource) int { return strings.Compare(a.Name, b.Name) })
	return resources, nil
}

// partitionsOf lists the MIG devices of the node. It checks them in the order of the original.
func partitionsOf(strategy string, gpus []nvml.GPU) ([]Device, error) {
	if strategy == config.MIGNone {
		return nil, nil
	}
	var found []Device
	for _, gpu := range gpus {
		for _, mig := range gpu.MIGs {
			if strategy == config.MIGMixed && !mig.FillsInstance() {
				return nil, fmt.Errorf("error building MIG device map: MIG profile '%s' does not match any resource patterns", mig.Profile)
			}
			index := fmt.Sprintf("%d:%d", gpu.Index, mig.Index)
			found = append(found, Device{UUID: mig.UUID, Index: index, GPU: gpu, MIG: &mig})
		}
	}
	if strategy != config.MIGSingle {
		return found, nil
	}
	for _, gpu := range gpus {
		if gpu.MIGEnabled && len(gpu.MIGs) == 0 {
			return nil, fmt.Errorf(
				"invalid MIG configuration: at least one device with migEnabled=true was not configured correctly: "+
					"device %d has no MIG devices configured", gpu.Index,
			)
		}
	}
	for _, device := range found {
		if device.MIG.Attributes != found[0].MIG.Attributes {
			return nil, errors.New("invalid MIG configuration: more than one MIG device type present on node")
		}
	}
	return found, nil
}
