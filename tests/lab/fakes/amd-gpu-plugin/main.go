// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command amd-gpu-plugin is a fake of AMD's Kubernetes device plugin, where its image cannot be pulled. It is not AMD's, and each line
// that it writes says so.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"strings"
	"sync"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/amd"
	"gpu.kubernetes.lab/fakes/internal/kubelet"
	"gpu.kubernetes.lab/fakes/internal/offer"
	"gpu.kubernetes.lab/fakes/internal/program"
)

func main() {
	program.Main("k8s-device-plugin", "AMD's device plugin", func(ctx context.Context, arguments []string, logger *log.Logger) error {
		naming := amd.Single
		err := program.Parse(arguments, func(set *flag.FlagSet) {
			program.Choice(set, "resource_naming_strategy", &naming, amd.Single, amd.Mixed)
			set.Int("pulse", 0, "seconds between checks of health, without effect")
			set.String("stderrthreshold", "", "without effect")
		})
		if err != nil {
			return err
		}
		return serve(ctx, "/", naming, pluginapi.KubeletSocket, logger)
	})
}

// serve offers what is below root at the start, until the context ends.
func serve(ctx context.Context, root, naming, socket string, logger *log.Logger) error {
	resources, err := find(root, naming, logger)
	if err != nil {
		return err
	}
	if len(resources) == 0 {
		// A fault of the original: the pod is Running and Ready, and the node reports nothing.
		logger.Print("there is no /sys/class/kfd, or no GPU of the module amdgpu; waiting")
		<-ctx.Done()
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	failures := make(chan error, len(resources))
	for name, devices := range resources {
		endpoint := endpoint(name, devices, socket, logger)
		running.Add(1)
		go func() {
			defer running.Done()
			defer cancel()
			failures <- endpoint.Run(ctx)
		}()
	}
	running.Wait()
	close(failures)
	var all []error
	for failure := range failures {
		all = append(all, failure)
	}
	return errors.Join(all...)
}

// find returns the devices by the name of their resource.
func find(root, naming string, logger *log.Logger) (map[string][]amd.Device, error) {
	if !amd.HasKFD(root) {
		return nil, nil
	}
	devices, err := amd.Read(root, logger)
	if err != nil {
		return nil, err
	}
	return amd.Resources(devices, naming)
}

func endpoint(resource string, devices []amd.Device, socket string, logger *log.Logger) *kubelet.Endpoint {
	service := &offer.Offer{
		Resource: resource,
		Grant:    func(ids []string) *pluginapi.ContainerAllocateResponse { return grant(devices, ids) },
		Log:      logger,
	}
	var listed []*pluginapi.Device
	for _, device := range devices {
		listed = append(listed, offer.Device(device.ID, device.NUMA, true))
	}
	service.Set(listed)
	return &kubelet.Endpoint{
		Resource:      resource,
		Offer:         fmt.Sprintf("with %d devices", len(devices)),
		KubeletSocket: socket,
		SocketName:    strings.ReplaceAll(resource, "/", "_"),
		Options:       service.Options(),
		Service:       service,
		Log:           logger,
		Interval:      time.Second,
	}
}

// grant has device nodes only: neither environment, mounts, annotations nor CDI.
func grant(devices []amd.Device, ids []string) *pluginapi.ContainerAllocateResponse {
	response := &pluginapi.ContainerAllocateResponse{Devices: []*pluginapi.DeviceSpec{offer.Node("kfd")}}
	for _, id := range ids {
		for _, device := range devices {
			if device.ID == id {
				response.Devices = append(response.Devices, offer.Node("dri/"+device.Card), offer.Node("dri/"+device.Render))
			}
		}
	}
	return response
}
