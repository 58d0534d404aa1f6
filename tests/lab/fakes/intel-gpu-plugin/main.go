// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command intel-gpu-plugin is a fake of Intel's GPU device plugin, where its image cannot be pulled. It is not Intel's, and each line
// that it writes says so.
package main

import (
	"context"
	"log"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/intel"
	"gpu.kubernetes.lab/fakes/internal/program"
)

func main() {
	program.Main("intel_gpu_device_plugin", "Intel's GPU device plugin", func(ctx context.Context, arguments []string, logger *log.Logger) error {
		settings, err := intel.Parse(arguments)
		if err != nil {
			return err
		}
		plugin := intel.Plugin{
			Settings: settings, KubeletSocket: pluginapi.KubeletSocket, CDI: "/var/run/cdi", Log: logger, Interval: 5 * time.Second,
		}
		return plugin.Run(ctx)
	})
}
