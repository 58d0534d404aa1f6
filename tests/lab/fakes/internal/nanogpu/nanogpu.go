// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package nanogpu has the names that the scheduler extender and the agent of nano-gpu 0.3.0 share.
package nanogpu

import (
	"strconv"

	"gpu.kubernetes.lab/fakes/internal/kube"
)

const (
	// Percent is the resource of a node; a GPU has Whole of it.
	Percent = "nano-gpu/gpu-percent"
	Whole   = 100
	// Assume is a label and an annotation of a pod that the extender has placed.
	Assume = "nano-gpu/assume"
	// containerPrefix starts the annotation that says which GPU a container has.
	containerPrefix = "nano-gpu/container-"
)

// Request is the request of a container.
func Request(container kube.Container) int64 { return int64(container.Resources.Limits[Percent]) }

// Container is the annotation of a container's GPU.
func Container(name string) string { return containerPrefix + name }

// GPU is the index of the GPU that a container of a pod was given.
func GPU(pod kube.Pod, container string) (int, bool) {
	index, err := strconv.Atoi(pod.Metadata.Annotations[Container(container)])
	return index, err == nil && pod.Metadata.Annotations[Assume] == "true"
}
