// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package amd finds AMD's GPUs as AMD's device plugin and node labeller do.
package amd

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gpu.kubernetes.lab/fakes/internal/program"
	"gpu.kubernetes.lab/fakes/internal/sysfs"
)

// Strategies of naming resources.
const (
	Single = "single"
	Mixed  = "mixed"
)

const (
	module   = "sys/module/amdgpu"
	kfd      = "sys/class/kfd"
	topology = kfd + "/kfd/topology/nodes"
)

// Device is a GPU or a further partition of one.
type Device struct {
	// ID is the PCI address, or the name of the platform device of a partition.
	ID           string
	Card, Render string
	NUMA         int64
	// Style is "cpx_nps4", or empty where the GPU has no partitioning.
	Style string
}

// HasKFD tells whether the driver for computing is there.
func HasKFD(root string) bool { return sysfs.Exists(filepath.Join(root, kfd)) }

// Read finds GPUs and partitions below root. It fails with status 2, as the original, if the module amdgpu is not loaded.
func Read(root string, logger *log.Logger) ([]Device, error) {
	if !sysfs.Exists(filepath.Join(root, module)) {
		return nil, program.Failure{Status: 2, Reason: "amdgpu driver unavailable: there is no /" + module}
	}
	var gpus []Device
	for _, folder := range pciFolders(root) {
		address := filepath.Base(folder)
		numa, readable := sysfs.Number(filepath.Join(folder, "numa_node"))
		if !readable {
			logger.Printf("GPU %s is left out: its numa_node cannot be read", address)
			continue
		}
		card, render := sysfs.Nodes(folder)
		gpus = append(gpus, Device{ID: address, Card: card, Render: render, NUMA: numa, Style: style(folder)})
	}
	return append(gpus, partitions(root, gpus, logger)...), nil
}

func pciFolders(root string) []string {
	found, _ := filepath.Glob(filepath.Join(root, module, "drivers/pci:amdgpu", "????:??:??.?"))
	return found
}

func style(folder string) string {
	compute := sysfs.Line(filepath.Join(folder, "current_compute_partition"))
	memory := sysfs.Line(filepath.Join(folder, "current_memory_partition"))
	if compute == "" || memory == "" {
		return ""
	}
	return strings.ToLower(compute + "_" + memory)
}

// partitions are the further partitions that KFD knows, of GPUs whose NUMA node is known.
func partitions(root string, gpus []Device, logger *log.Logger) []Device {
	parents := map[string]string{}
	for _, node := range gpuNodes(root) {
		parents[fmt.Sprintf("renderD%d", node["drm_render_minor"])] = address(node)
	}
	var found []Device
	folders, _ := filepath.Glob(filepath.Join(root, "sys/devices/platform", "amdgpu_xcp_*"))
	for _, folder := range folders {
		name := filepath.Base(folder)
		card, render := sysfs.Nodes(folder)
		number := slices.IndexFunc(gpus, func(gpu Device) bool { return gpu.ID == parents[render] })
		if number < 0 || gpus[number].NUMA < 0 {
			logger.Printf("partition %s is left out: KFD does not know it, or the NUMA node of its GPU is unknown", name)
			continue
		}
		found = append(found, Device{ID: name, Card: card, Render: render, NUMA: gpus[number].NUMA, Style: gpus[number].Style})
	}
	return found
}

// gpuNodes are the properties of KFD's nodes that are GPUs or parts of them; "size_in_bytes" is that of their memory.
func gpuNodes(root string) []map[string]int64 {
	entries, _ := os.ReadDir(filepath.Join(root, topology))
	var found []map[string]int64
	for _, entry := range entries {
		folder := filepath.Join(root, topology, entry.Name())
		properties := sysfs.Properties(filepath.Join(folder, "properties"))
		if properties["simd_count"] > 0 {
			properties["size_in_bytes"] = sysfs.Properties(filepath.Join(folder, "mem_banks/0/properties"))["size_in_bytes"]
			found = append(found, properties)
		}
	}
	return found
}

func address(node map[string]int64) string {
	location := node["location_id"]
	return fmt.Sprintf("%04x:%02x:%02x.0", node["domain"], location>>8&0xff, location>>3&0x1f)
}

// Resources are the devices by the name of their resource. Different styles of partitions fail with the naming strategy single.
func Resources(devices []Device, naming string) (map[string][]Device, error) {
	found := map[string][]Device{}
	for _, device := range devices {
		name := "amd.com/gpu"
		if naming == Mixed && device.Style != "" {
			name = "amd.com/" + device.Style
		}
		if others := found[name]; len(others) > 0 && others[0].Style != device.Style {
			return nil, fmt.Errorf(
				"Partitions of different styles (%q and %q) need -resource_naming_strategy=mixed", others[0].Style, device.Style,
			)
		}
		found[name] = append(found[name], device)
	}
	return found, nil
}
