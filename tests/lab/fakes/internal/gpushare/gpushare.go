// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package gpushare has the names that the gpushare scheduler extender and the gpushare device plugin share.
package gpushare

import (
	"math"
	"strconv"

	"gpu.kubernetes.lab/fakes/internal/kube"
)

// Resources of a node.
const (
	Memory = "aliyun.com/gpu-mem"
	Count  = "aliyun.com/gpu-count"
)

// Annotations of a pod; the first three, and Container, are also variables in its containers.
const (
	Index      = "ALIYUN_COM_GPU_MEM_IDX"
	PodMemory  = "ALIYUN_COM_GPU_MEM_POD"
	GPUMemory  = "ALIYUN_COM_GPU_MEM_DEV"
	Container  = "ALIYUN_COM_GPU_MEM_CONTAINER"
	Assigned   = "ALIYUN_COM_GPU_MEM_ASSIGNED"
	AssumeTime = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
)

// Request is the sum of the limits of a pod's containers, in the unit of the device plugin.
func Request(pod kube.Pod) int64 {
	var sum int64
	for _, container := range pod.Spec.Containers {
		amount := int64(container.Resources.Limits[Memory])
		if amount > math.MaxInt64-sum {
			return math.MaxInt64
		}
		sum += amount
	}
	return sum
}

// Number reads an annotation that is a whole number.
func Number(pod kube.Pod, annotation string) (int64, bool) {
	number, err := strconv.ParseInt(pod.Metadata.Annotations[annotation], 10, 64)
	return number, err == nil
}

// Annotate is the patch that sets annotations.
func Annotate(annotations map[string]string) map[string]any {
	return map[string]any{"metadata": map[string]any{"annotations": annotations}}
}
