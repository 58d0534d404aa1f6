// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command device-plugin is a fake of NVIDIA's Kubernetes device plugin where its image cannot be pulled.
// It is not NVIDIA's plugin, and each line that it writes says so.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"gpu.kubernetes.lab/fakes/internal/config"
	"gpu.kubernetes.lab/fakes/internal/nvml"
	"gpu.kubernetes.lab/fakes/internal/plugin"
	"gpu.kubernetes.lab/fakes/internal/program"
)

// How often NVML and the kubelet's socket are read.
const (
	healthInterval = 3 * time.Second
	socketInterval = time.Second
)

func main() {
	program.Main("nvidia-device-plugin", "NVIDIA's device plugin", run)
}

func run(ctx context.Context, arguments []string, logger *log.Logger) error {
	settings, err := config.Load(arguments, os.Getenv)
	if err != nil {
		return fmt.Errorf("the configuration is refused: %w", err)
	}
	describe(logger, settings)
	return serve(ctx, settings, logger)
}

func describe(logger *log.Logger, settings config.Config) {
	logger.Printf(
		"resource %s, replicas %d, device list by %s, device id by %s, fail on init error %t",
		settings.ResourceName(), settings.Replicas, strings.Join(settings.DeviceListStrategy, "+"),
		settings.DeviceIDStrategy, settings.FailOnInitError,
	)
	if len(settings.Ignored) > 0 {
		logger.Printf("accepted without effect: %s", strings.Join(settings.Ignored, ", "))
	}
}

func serve(ctx context.Context, settings config.Config, logger *log.Logger) error {
	library, gpus, err := discover(settings, logger)
	if err != nil {
		if settings.FailOnInitError {
			return fmt.Errorf("no GPU can be offered: %w; is this a GPU node, and does its container runtime use the nvidia runtime", err)
		}
		logger.Printf("no GPU can be offered, waiting because FAIL_ON_INIT_ERROR is false: %v", err)
		<-ctx.Done()
		return nil
	}
	inventory := plugin.NewInventory(gpus, settings.Replicas)
	if inventory.Len() == 0 {
		logger.Print("NVML lists no GPU on this node, waiting")
		<-ctx.Done()
		return nil
	}
	manager := &plugin.Manager{Settings: settings, Inventory: inventory, Log: logger, Interval: socketInterval}
	if strings.Contains(os.Getenv("DP_DISABLE_HEALTHCHECKS"), "all") {
		logger.Print("health checks are off (DP_DISABLE_HEALTHCHECKS)")
	} else {
		go inventory.Watch(ctx, library, healthInterval, logger)
	}
	return manager.Run(ctx)
}

// discover loads NVML and lists the GPUs, and logs what was found.
func discover(settings config.Config, logger *log.Logger) (*nvml.Library, []nvml.GPU, error) {
	library, err := nvml.Open(settings.ContainerDriverRoot)
	if err != nil {
		return nil, nil, err
	}
	driver, gpus, err := library.Read()
	if err != nil {
		return nil, nil, err
	}
	logger.Printf("NVML %s, driver %s, %d GPUs", library.Path, driver, len(gpus))
	for _, gpu := range gpus {
		switch {
		case gpu.UUID == "":
			logger.Printf("GPU %d is left out: %s", gpu.Index, gpu.Fault)
		case gpu.Fault != "":
			logger.Printf("GPU %d %s %s is unhealthy: %s", gpu.Index, gpu.UUID, gpu.Name, gpu.Fault)
		default:
			logger.Printf("GPU %d %s %s /dev/nvidia%d", gpu.Index, gpu.UUID, gpu.Name, gpu.Minor)
		}
	}
	return library, gpus, nil
}
