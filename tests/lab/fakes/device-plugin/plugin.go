// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"gpu.kubernetes.lab/fakes/internal/config"
	"gpu.kubernetes.lab/fakes/internal/nvml"
	"gpu.kubernetes.lab/fakes/internal/plugin"
	"gpu.kubernetes.lab/fakes/internal/program"
)

// O_PATH, which opens a device node that has no driver.
const pathOnly = 0x200000

// How often NVML and the kubelet's socket are read.
const (
	healthInterval = 3 * time.Second
	socketInterval = time.Second
)

// offerGPUs is the device plugin. At SIGHUP and when the kubelet starts again, it reads its configuration and NVML again.
func offerGPUs(ctx context.Context, arguments []string, logger *log.Logger) error {
	return program.Repeat(ctx, logger, func(ctx context.Context) error {
		settings, err := config.Load(arguments, os.Getenv)
		if err == nil {
			err = settings.CheckPlugin()
		}
		if err != nil {
			return fmt.Errorf("the configuration is refused: %w", err)
		}
		describe(logger, settings)
		return serve(ctx, settings, logger)
	})
}

func describe(logger *log.Logger, settings config.Config) {
	logger.Printf(
		"MIG strategy %s, sharing %s, device list by %s, device id by %s, fail on init error %t",
		settings.MIGStrategy, settings.Sharing, strings.Join(settings.DeviceListStrategy, "+"),
		settings.DeviceIDStrategy, settings.FailOnInitError,
	)
	if len(settings.Ignored) > 0 {
		logger.Printf("accepted without effect: %s", strings.Join(settings.Ignored, ", "))
	}
}

func serve(ctx context.Context, settings config.Config, logger *log.Logger) error {
	library, gpus, err := discover(settings.ContainerDriverRoot, logger)
	if err != nil {
		if settings.FailOnInitError {
			return fmt.Errorf("no GPU can be offered: %w; is this a GPU node, and does its container runtime use the nvidia runtime", err)
		}
		logger.Printf("no GPU can be offered, waiting because FAIL_ON_INIT_ERROR is false: %v", err)
		<-ctx.Done()
		return nil
	}
	defer hold(gpus, logger)()
	resources, err := plugin.Resources(settings, gpus)
	if err != nil {
		return err
	}
	if len(resources) == 0 {
		logger.Print("NVML lists no GPU on this node, waiting")
		<-ctx.Done()
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait() // NVML is used by one goroutine at a time
	defer cancel()
	health := plugin.NewHealth(gpus)
	if strings.Contains(os.Getenv("DP_DISABLE_HEALTHCHECKS"), "all") {
		logger.Print("health checks are off (DP_DISABLE_HEALTHCHECKS)")
	} else {
		watching.Add(1)
		go func() {
			defer watching.Done()
			health.Watch(ctx, library, healthInterval, logger)
		}()
	}
	manager := &plugin.Manager{Settings: settings, Resources: resources, Health: health, Log: logger, Interval: socketInterval}
	return manager.Run(ctx)
}

// hold opens the devices of the GPUs, as the driver's NVML does for as long as it is used, and returns what closes them.
func hold(gpus []nvml.GPU, logger *log.Logger) func() {
	var files []int
	for _, gpu := range gpus {
		file, err := syscall.Open(fmt.Sprintf("/dev/nvidia%d", gpu.Minor), pathOnly|syscall.O_CLOEXEC, 0)
		if err != nil {
			logger.Printf("GPU %d is not held open: %v", gpu.Index, err)
			continue
		}
		files = append(files, file)
	}
	return func() {
		for _, file := range files {
			_ = syscall.Close(file)
		}
	}
}

// discover loads NVML and lists the GPUs, and logs what was found.
func discover(driverRoot string, logger *log.Logger) (*nvml.Library, []nvml.GPU, error) {
	library, err := nvml.Open(driverRoot)
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
			logger.Printf("GPU %d %s %s /dev/nvidia%d, MIG mode %t", gpu.Index, gpu.UUID, gpu.Name, gpu.Minor, gpu.MIGEnabled)
		}
		if gpu.MIGEnabled && len(gpu.MIGs) == 0 {
			logger.Printf("device %d has no MIG devices configured", gpu.Index)
		}
		for _, mig := range gpu.MIGs {
			logger.Printf("MIG device %d:%d %s %s", gpu.Index, mig.Index, mig.UUID, mig.Profile)
		}
	}
	return library, gpus, nil
}
