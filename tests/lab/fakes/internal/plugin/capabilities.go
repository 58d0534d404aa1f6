// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package plugin

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// migMinors is the driver's list of the minor numbers of capabilities of MIG.
const migMinors = "/proc/driver/nvidia-caps/mig-minors"

// capabilityFiles are the places of that list: of this container, whose /proc is its own in the lab, and of the driver's root.
func capabilityFiles(driverRoot string) []string {
	return []string{migMinors, filepath.Join(driverRoot, migMinors)}
}

// readCapabilities maps the lines of the first list that exists (gpu0/gi1/ci0/access) to device nodes below /dev; it is empty without one.
func readCapabilities(paths []string) map[string]string {
	nodes := map[string]string{}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if name, minor, found := strings.Cut(strings.TrimSpace(lines.Text()), " "); found {
				nodes[name] = "nvidia-caps/nvidia-cap" + minor
			}
		}
		break
	}
	return nodes
}

// capabilityLines are the lines of a MIG device in the driver's list: of its GPU instance, and of its compute instance.
func capabilityLines(device Device) []string {
	instance := fmt.Sprintf("gpu%d/gi%d", device.GPU.Minor, device.MIG.GPUInstance)
	return []string{instance + "/access", fmt.Sprintf("%s/ci%d/access", instance, device.MIG.ComputeInstance)}
}
