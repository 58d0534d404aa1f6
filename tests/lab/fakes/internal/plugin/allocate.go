// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/config"
	"gpu.kubernetes.lab/fakes/internal/mps"
)

const (
	visibleDevices = "NVIDIA_VISIBLE_DEVICES"
	cdiKind        = "nvidia.com/gpu"
)

// controlNodes are the device nodes that every GPU container needs beside those of its GPUs.
var controlNodes = []string{"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"}

// allocate answers for one container with the devices ids.
func allocate(settings config.Config, resource string, inventory *Inventory, ids []string) (*pluginapi.ContainerAllocateResponse, error) {
	devices, err := inventory.Lookup(ids)
	if err != nil {
		return nil, err
	}
	if inventory.separator != "" && settings.FailRequestsGreaterThanOne && len(ids) > 1 {
		return nil, fmt.Errorf("invalid request: maximum request size for shared resources is 1; found %d", len(ids))
	}
	names := make([]string, len(devices))
	for n, device := range devices {
		names[n] = device.UUID
		if settings.DeviceIDStrategy == config.IDByIndex {
			names[n] = device.Index
		}
	}
	response := &pluginapi.ContainerAllocateResponse{Envs: map[string]string{}}
	addCDI(settings, response, names)
	if settings.Sharing == config.SharingMPS {
		addMPS(settings.MPSRoot, resource, response)
	}
	if !settings.Lists(config.ListEnvVar) {
		return response, nil
	}
	response.Envs[visibleDevices] = strings.Join(names, ",")
	if settings.PassDeviceSpecs {
		capabilities := readCapabilities(capabilityFiles(settings.ContainerDriverRoot))
		response.Devices, err = deviceSpecs(settings.DeviceRoot(), devices, capabilities)
	}
	return response, err
}

// addMPS lets the container use the control daemon of its resource, which runs on the host's folder root.
func addMPS(root, resource string, response *pluginapi.ContainerAllocateResponse) {
	pipe := mps.PipeDir(mps.ContainerRoot, resource)
	response.Envs["CUDA_MPS_PIPE_DIRECTORY"] = pipe
	response.Mounts = []*pluginapi.Mount{
		{ContainerPath: pipe, HostPath: mps.PipeDir(root, resource)},
		{ContainerPath: "/dev/shm", HostPath: mps.ShmDir(root)},
	}
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

// deviceSpecs lists the device nodes of devices below root. Of a MIG device these are its GPU's and those of its capabilities.
func deviceSpecs(root string, devices []Device, capabilities map[string]string) ([]*pluginapi.DeviceSpec, error) {
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
	for _, device := range devices {
		if device.GPU.Minor >= 0 {
			add("nvidia" + strconv.Itoa(device.GPU.Minor))
		}
		if device.MIG == nil {
			continue
		}
		for _, line := range capabilityLines(device) {
			node, found := capabilities[line]
			if !found {
				return nil, fmt.Errorf("missing MIG GPU instance capability path: %s", line)
			}
			add(node)
		}
	}
	return specs, nil
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
