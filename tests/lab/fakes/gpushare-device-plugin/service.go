// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/gpushare"
	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/nvml"
	"gpu.kubernetes.lab/fakes/internal/plugin"
)

const (
	visibleDevices   = "NVIDIA_VISIBLE_DEVICES"
	isolationDisable = "CGPU_DISABLE"
)

// service answers the kubelet's calls.
type service struct {
	pluginapi.UnimplementedDevicePluginServer

	client    *kube.Client
	inventory *plugin.Inventory
	gpus      []nvml.GPU
	log       *log.Logger
	node      string
	// units is the memory of each GPU, in unit.
	units       int
	unit        string
	noIsolation bool
	// allocating is held by one allocation, so that no two take the same pod.
	allocating sync.Mutex
}

func (s *service) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

func (s *service) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	return s.inventory.Announce(stream)
}

// Allocate ignores which devices the kubelet chose: their number selects the pod, and the pod's annotation the GPU. If no
// pod fits, the container gets a GPU that does not exist, so that it cannot start.
func (s *service) Allocate(ctx context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	s.allocating.Lock()
	defer s.allocating.Unlock()
	total := 0
	for _, container := range request.ContainerRequests {
		total += len(container.DevicesIds)
	}
	index, visible, err := s.assign(ctx, total)
	if err != nil {
		index, visible = -1, fmt.Sprintf("no-gpu-has-%d%s-to-run", total, s.unit)
		s.log.Printf("allocation of %d %s failed, the container gets %s=%s: %v", total, s.unit, visibleDevices, visible, err)
	}
	response := &pluginapi.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		env := map[string]string{
			visibleDevices:     visible,
			gpushare.Index:     strconv.Itoa(index),
			gpushare.PodMemory: strconv.Itoa(total),
			gpushare.Container: strconv.Itoa(len(container.DevicesIds)),
			gpushare.GPUMemory: strconv.Itoa(s.units),
		}
		if s.noIsolation {
			env[isolationDisable] = "true"
		}
		response.ContainerResponses = append(response.ContainerResponses, &pluginapi.ContainerAllocateResponse{Envs: env})
	}
	return response, nil
}

// assign finds the pending pod with this request, marks it as assigned, and returns the index and UUID of its GPU.
func (s *service) assign(ctx context.Context, total int) (int, string, error) {
	var pods struct {
		Items []kube.Pod `json:"items"`
	}
	selector := url.QueryEscape("spec.nodeName=" + s.node + ",status.phase=Pending")
	if err := s.client.Get(ctx, "/api/v1/pods?fieldSelector="+selector, &pods); err != nil {
		return 0, "", err
	}
	pod, found := choose(pods.Items, int64(total))
	if !found {
		return 0, "", fmt.Errorf("no pod that the extender placed on this node waits for that much")
	}
	gpu, err := s.gpuOf(pod)
	if err != nil {
		return 0, "", err
	}
	change := gpushare.Annotate(map[string]string{
		gpushare.Assigned: "true", gpushare.AssumeTime: strconv.FormatInt(time.Now().UnixNano(), 10),
	})
	if err := s.client.Patch(ctx, kube.PodPath(pod.Metadata.Namespace, pod.Metadata.Name), change); err != nil {
		return 0, "", err
	}
	s.log.Printf("allocated %d %s of GPU %d %s to pod %s", total, s.unit, gpu.Index, gpu.UUID, pod)
	return gpu.Index, gpu.UUID, nil
}

func (s *service) gpuOf(pod kube.Pod) (nvml.GPU, error) {
	index, isNumber := gpushare.Number(pod, gpushare.Index)
	for _, gpu := range s.gpus {
		if isNumber && int64(gpu.Index) == index {
			return gpu, nil
		}
	}
	return nvml.GPU{}, fmt.Errorf("%s of pod %s is %q, which is not a GPU of this node", gpushare.Index, pod, pod.Metadata.Annotations[gpushare.Index])
}

// choose returns the pod that was placed first among the pending ones whose containers request exactly this amount.
func choose(pods []kube.Pod, total int64) (kube.Pod, bool) {
	waiting := slices.DeleteFunc(slices.Clone(pods), func(pod kube.Pod) bool {
		_, placed := gpushare.Number(pod, gpushare.AssumeTime)
		return !placed || pod.Metadata.Annotations[gpushare.Assigned] != "false" || gpushare.Request(pod) != total
	})
	if len(waiting) == 0 {
		return kube.Pod{}, false
	}
	return slices.MinFunc(waiting, func(a, b kube.Pod) int {
		first, _ := gpushare.Number(a, gpushare.AssumeTime)
		second, _ := gpushare.Number(b, gpushare.AssumeTime)
		return cmp.Compare(first, second)
	}), true
}
