// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package offer serves one extended resource, whose devices may change, by the kubelet's device plugin API v1beta1.
package offer

import (
	"context"
	"fmt"
	"log"
	"slices"
	"sync"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Offer answers the kubelet's calls for one resource.
type Offer struct {
	pluginapi.UnimplementedDevicePluginServer

	// Resource is its full name.
	Resource string
	// EmptyFirst sends an empty list before the first one with devices.
	EmptyFirst bool
	// Grant returns what a container with these devices gets; all of them are on the list.
	Grant func(ids []string) *pluginapi.ContainerAllocateResponse
	// Prefer sorts the available devices, the best first; nil means that the kubelet chooses.
	Prefer func(available []string) []string
	Log    *log.Logger

	mutex   sync.Mutex
	devices []*pluginapi.Device
	changed chan struct{}
}

// Set replaces the list of devices.
func (o *Offer) Set(devices []*pluginapi.Device) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.changed != nil {
		close(o.changed)
	}
	o.devices, o.changed = devices, make(chan struct{})
}

func (o *Offer) read() ([]*pluginapi.Device, <-chan struct{}) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.devices, o.changed
}

// Options are those of the registration.
func (o *Offer) Options() *pluginapi.DevicePluginOptions {
	return &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: o.Prefer != nil}
}

// GetDevicePluginOptions is a call of the kubelet.
func (o *Offer) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return o.Options(), nil
}

// ListAndWatch is a call of the kubelet.
func (o *Offer) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	if o.EmptyFirst {
		if err := stream.Send(&pluginapi.ListAndWatchResponse{}); err != nil {
			return err
		}
	}
	for {
		devices, changed := o.read()
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

// Allocate is a call of the kubelet.
func (o *Offer) Allocate(_ context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	devices, _ := o.read()
	response := &pluginapi.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		for _, id := range container.DevicesIds {
			if !slices.ContainsFunc(devices, func(device *pluginapi.Device) bool { return device.ID == id }) {
				return nil, fmt.Errorf("%s has no device %q", o.Resource, id)
			}
		}
		o.Log.Printf("allocated %v of %s", container.DevicesIds, o.Resource)
		response.ContainerResponses = append(response.ContainerResponses, o.Grant(container.DevicesIds))
	}
	return response, nil
}

// GetPreferredAllocation is a call of the kubelet.
func (o *Offer) GetPreferredAllocation(
	_ context.Context, request *pluginapi.PreferredAllocationRequest,
) (*pluginapi.PreferredAllocationResponse, error) {
	response := &pluginapi.PreferredAllocationResponse{}
	for _, container := range request.ContainerRequests {
		chosen := slices.Clone(container.MustIncludeDeviceIDs)
		for _, id := range o.Prefer(container.AvailableDeviceIDs) {
			if len(chosen) < int(container.AllocationSize) && !slices.Contains(chosen, id) {
				chosen = append(chosen, id)
			}
		}
		response.ContainerResponses = append(response.ContainerResponses, &pluginapi.ContainerPreferredAllocationResponse{DeviceIDs: chosen})
	}
	return response, nil
}

// PreStartContainer is a call of the kubelet.
func (o *Offer) PreStartContainer(context.Context, *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	return &pluginapi.PreStartContainerResponse{}, nil
}

// Node is a device node in the folder /dev that a container may read and write.
func Node(name string) *pluginapi.DeviceSpec {
	return &pluginapi.DeviceSpec{HostPath: "/dev/" + name, ContainerPath: "/dev/" + name, Permissions: "rw"}
}

// Device is a healthy device. A hint of its NUMA node is sent, also a negative one, if hint is true.
func Device(id string, numa int64, hint bool) *pluginapi.Device {
	device := &pluginapi.Device{ID: id, Health: pluginapi.Healthy}
	if hint {
		device.Topology = &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: numa}}}
	}
	return device
}
