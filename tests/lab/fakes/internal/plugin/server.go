// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"context"
	"fmt"
	"log"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/config"
)

// service answers the kubelet's calls.
type service struct {
	pluginapi.UnimplementedDevicePluginServer

	settings  config.Config
	resource  string
	inventory *Inventory
	log       *log.Logger
}

func options() *pluginapi.DevicePluginOptions {
	return &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true}
}

func (s *service) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return options(), nil
}

func (s *service) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	return s.inventory.Announce(stream)
}

func (s *service) Allocate(_ context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	response := &pluginapi.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		answer, err := allocate(s.settings, s.resource, s.inventory, container.DevicesIds)
		if err != nil {
			s.log.Printf("allocation of %v refused: %v", container.DevicesIds, err)
			return nil, fmt.Errorf("invalid allocation request for %q: %w", s.resource, err)
		}
		s.log.Printf("allocated %v", container.DevicesIds)
		response.ContainerResponses = append(response.ContainerResponses, answer)
	}
	return response, nil
}

func (s *service) GetPreferredAllocation(
	_ context.Context, request *pluginapi.PreferredAllocationRequest,
) (*pluginapi.PreferredAllocationResponse, error) {
	response := &pluginapi.PreferredAllocationResponse{}
	for _, container := range request.ContainerRequests {
		chosen, err := prefer(
			s.settings.AllocationPolicy, s.inOrder(container.AvailableDeviceIDs), container.MustIncludeDeviceIDs,
			int(container.AllocationSize),
		)
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
		response.ContainerResponses = append(
			response.ContainerResponses, &pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: chosen},
		)
	}
	return response, nil
}

// inOrder sorts ids as this node lists them; the kubelet keeps them as a set.
func (s *service) inOrder(ids []string) []string {
	devices, _ := s.inventory.Devices()
	sorted := make([]string, 0, len(ids))
	for _, device := range devices {
		if slices.Contains(ids, device.ID) {
			sorted = append(sorted, device.ID)
		}
	}
	return sorted
}

func (s *service) PreStartContainer(context.Context, *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	return &pluginapi.PreStartContainerResponse{}, nil
}
