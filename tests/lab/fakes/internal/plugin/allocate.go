// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/config"
	"gpu.kubernetes.lab/fakes/internal/nvml"
)

const (
	visibleDevices = "NVIDIA_VISIBLE_DEVICES"
	cdiKind        = "nvidia.com/gpu"
)

// controlNodes are the device nodes that every GPU container needs beside those of its GPUs.
var controlNodes = []string{"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}

// allocate answers for one container with the devices ids.
func allocate(settings config.Config, inventory *Inventory, ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	if len(ids) == 0 {
		return nil, errors.New("no device was asked for")
	}
	if settings.Shared() && settings.FailRequestsGreaterThanOne && len(ids) > 1 {
		return nil, fmt.Errorf("%d shared GPUs were asked for, and failRequestsGreaterThanOne allows one only", len(ids))
	}
	gpus, err := inventory.Lookup(ids)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(gpus))
	for n, gpu := range gpus {
		names[n] = gpu.UUID
		if settings.DeviceIDStrategy == config.IDByIndex {
			names[n] = strconv.Itoa(gpu.Index)
		}
	}
	response := &pluginapi.ContainerAllocateResponse{}
	addCDI(settings, response, names)
	if !settings.Lists(config.ListEnvVar) {
		return response, nil
	}
	response.Envs = map[string]string{visibleDevices: strings.Join(names, ",")}
	if settings.PassDeviceSpecs {
		response.Devices = deviceSpecs(settings.DeviceRoot(), gpus)
	}
	return response, nil
}

// addCDI names the devices as `nvidia-ctk cdi generate` does; that specification has to be on the node.
func addCDI(settings config.Config, response *pluginapi.ContainerAllocateResponse, names []string) {
	qualified := make([]string, len(names))
	for n, name := range names {
		qualified[n] = cdiKind + "=" + name
	}
	if settings.Lists(config.ListCDIAnnotations) {
		// The key's own part is unique for each container and shorter than the 63 characters that are allowed.
		key := settings.CDIAnnotationPrefix + "nvidia-device-plugin_" + rand.Text()
		response.Annotations = map[string]string{key: strings.Join(qualified, ",")}
	}
	if settings.Lists(config.ListCDICRI) {
		for _, name := range qualified {
			response.CdiDevices = append(response.CdiDevices, &pluginapi.CDIDevice{Name: name})
		}
	}
}

func deviceSpecs(root string, gpus []nvml.GPU) []*pluginapi.DeviceSpec {
	var specs []*pluginapi.DeviceSpec
	add := func(name string) {
		specs = append(specs, &pluginapi.DeviceSpec{
			ContainerPath: "/dev/" + name,
			HostPath:      filepath.Join(root, "dev", name),
			Permissions:   "rw",
		})
	}
	for _, name := range controlNodes {
		if _, err := os.Stat(filepath.Join("/dev", name)); err == nil {
			add(name)
		}
	}
	for _, gpu := range gpus {
		if gpu.Minor >= 0 {
			add("nvidia" + strconv.Itoa(gpu.Minor))
		}
	}
	return specs
}

// prefer chooses size of the available devices, those in required first. GPUs that are not shared are taken in the
// order of the node; replicas are taken from the GPU with the most free ones (distributed) or the fewest (packed).
func prefer(policy string, available, required []string, size int) ([]string, error) {
	if size < len(required) || size > len(available) {
		return nil, fmt.Errorf("%d devices cannot be chosen of %d with %d required", size, len(available), len(required))
	}
	for _, id := range required {
		if !slices.Contains(available, id) {
			return nil, fmt.Errorf("required device %q is not available", id)
		}
	}
	chosen := slices.Clone(required)
	free := map[string][]string{}
	for _, id := range available {
		if !slices.Contains(required, id) {
			free[uuidOf(id)] = append(free[uuidOf(id)], id)
		}
	}
	for len(chosen) < size {
		uuid := next(policy, available, free)
		chosen = append(chosen, free[uuid][0])
		free[uuid] = free[uuid][1:]
	}
	return chosen, nil
}

// next is the GPU to take from: among those with free devices the best by policy, the first of the list among equals.
func next(policy string, available []string, free map[string][]string) string {
	best := ""
	for _, id := range available {
		uuid := uuidOf(id)
		count, bestCount := len(free[uuid]), len(free[best])
		if count == 0 {
			continue
		}
		better := count > bestCount
		if policy == config.PolicyPacked {
			better = count < bestCount
		}
		if best == "" || better {
			best = uuid
		}
	}
	return best
}

func uuidOf(id string) string {
	uuid, _, _ := strings.Cut(id, replicaSeparator)
	return uuid
}
