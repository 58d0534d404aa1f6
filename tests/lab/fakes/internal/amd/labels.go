// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package amd

import (
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gpu.kubernetes.lab/fakes/internal/program"
	"gpu.kubernetes.lab/fakes/internal/sysfs"
)

// Prefixes of labels.
const (
	labelPrefix = "amd.com/gpu."
	betaPrefix  = "beta.amd.com/gpu."
)

// Kinds are the labels that the node labeller can write, and its options.
var Kinds = []string{
	"firmware", "family", "driver-version", "driver-src-version", "device-id", "product-name", "vram", "simd-count", "cu-count",
	"compute-memory-partition", "compute-partitioning-supported", "memory-partitioning-supported",
}

// Labels are those of the chosen kinds. It fails with status 2, as the original, without the driver.
func Labels(root string, kinds []string) (map[string]string, error) {
	if !sysfs.Exists(filepath.Join(root, module)) || !HasKFD(root) {
		return nil, program.Failure{Status: 2, Reason: "amdgpu driver unavailable"}
	}
	labels := map[string]string{}
	for kind, counts := range values(root) {
		if !slices.Contains(kinds, kind) {
			continue
		}
		for value, count := range counts {
			labels[betaPrefix+kind+"."+value] = strconv.Itoa(count)
			if len(counts) == 1 {
				labels[labelPrefix+kind] = value
				labels[betaPrefix+kind] = value
			} else {
				labels[labelPrefix+kind+"."+value] = strconv.Itoa(count)
			}
		}
	}
	return labels, nil
}

// Replace returns the labels of a node with those of the labeller. It removes only keys without a value, as the original: counted ones stay.
func Replace(former, labels map[string]string) map[string]string {
	result := maps.Clone(former)
	for _, kind := range Kinds[1:] { // not firmware
		delete(result, labelPrefix+kind)
		delete(result, betaPrefix+kind)
	}
	maps.Copy(result, labels)
	return result
}

var families = map[int64]string{9: "AI", 10: "NV", 11: "GC_11_0_0", 12: "GC_12_0_0"}

// values counts the values of each kind. Firmware is not implemented.
func values(root string) map[string]map[string]int {
	found := map[string]map[string]int{}
	count := func(kind, value string) {
		if value == "" {
			return
		}
		if found[kind] == nil {
			found[kind] = map[string]int{}
		}
		found[kind][strings.ReplaceAll(value, " ", "_")]++
	}
	for _, node := range gpuNodes(root) {
		count("vram", fmt.Sprintf("%.0fG", math.Round(float64(node["size_in_bytes"])/(1<<30))))
		count("simd-count", strconv.FormatInt(node["simd_count"], 10))
		count("cu-count", strconv.FormatInt(node["simd_count"]/max(node["simd_per_cu"], 1), 10))
		count("family", families[node["gfx_target_version"]/10000])
	}
	for _, folder := range pciFolders(root) {
		count("device-id", strings.TrimPrefix(sysfs.Line(filepath.Join(folder, "device")), "0x"))
		count("product-name", sysfs.Line(filepath.Join(folder, "product_name")))
		count("driver-version", sysfs.Line(filepath.Join(root, module, "version")))
		count("driver-src-version", sysfs.Line(filepath.Join(root, module, "srcversion")))
		count("compute-memory-partition", style(folder))
		count("compute-partitioning-supported", strconv.FormatBool(sysfs.Exists(filepath.Join(folder, "current_compute_partition"))))
		count("memory-partitioning-supported", strconv.FormatBool(sysfs.Exists(filepath.Join(folder, "current_memory_partition"))))
	}
	return found
}
