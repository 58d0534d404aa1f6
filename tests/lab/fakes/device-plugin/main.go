// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command device-plugin is a fake of the three programs in the image of NVIDIA's Kubernetes device plugin, where that image cannot be
// pulled. They are not NVIDIA's, and each line that they write says so.
package main

import (
	"gpu.kubernetes.lab/fakes/internal/program"
)

// Names of the programs, as in the original's image.
const (
	devicePlugin     = "nvidia-device-plugin"
	configManager    = "config-manager"
	mpsControlDaemon = "mps-control-daemon"
)

func main() {
	switch chosen := program.Choose(devicePlugin, configManager, mpsControlDaemon); chosen {
	case configManager:
		program.Main(chosen, "NVIDIA's config-manager", manageConfig)
	case mpsControlDaemon:
		program.Main(chosen, "NVIDIA's mps-control-daemon", controlMPS)
	default:
		program.Main(chosen, "NVIDIA's device plugin", offerGPUs)
	}
}
