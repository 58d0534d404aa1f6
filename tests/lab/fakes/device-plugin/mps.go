// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"gpu.kubernetes.lab/fakes/internal/config"
	"gpu.kubernetes.lab/fakes/internal/mps"
	"gpu.kubernetes.lab/fakes/internal/nvml"
	"gpu.kubernetes.lab/fakes/internal/plugin"
	"gpu.kubernetes.lab/fakes/internal/program"
)

// controlMPS is mps-control-daemon, and with the argument mount-shm what prepares the folder for it.
func controlMPS(ctx context.Context, arguments []string, logger *log.Logger) error {
	if len(arguments) == 1 && arguments[0] == "mount-shm" {
		return mps.MountShm(mps.ContainerRoot)
	}
	return program.Repeat(ctx, logger, func(ctx context.Context) error {
		settings, err := config.Load(arguments, os.Getenv)
		if err != nil {
			return fmt.Errorf("error starting plugins: unable to load config: %w", err)
		}
		group := &mps.Group{Root: mps.ContainerRoot, Log: logger}
		if settings.Sharing == config.SharingMPS {
			library, gpus, err := discover(settings.ContainerDriverRoot, logger)
			if err != nil {
				return fmt.Errorf("error starting plugins: %w", err)
			}
			if group.Daemons, err = listDaemons(settings, gpus, library, logger); err != nil {
				return fmt.Errorf("error getting daemons: %w", err)
			}
		} else {
			logger.Printf("Sharing strategy is not MPS; skipping MPS manager creation, strategy %s", settings.Sharing)
		}
		return group.Run(ctx)
	})
}

// listDaemons has a control daemon for each resource that is shared. MIG devices are refused, where the original fails half a minute later.
func listDaemons(settings config.Config, gpus []nvml.GPU, modes mps.Modes, logger *log.Logger) ([]*mps.Daemon, error) {
	resources, err := plugin.Resources(settings, gpus)
	if err != nil {
		return nil, err
	}
	var daemons []*mps.Daemon
	for _, resource := range resources {
		if resource.Replicas == 1 {
			logger.Printf("Resource is not shared, resource %s", resource.Name)
			continue
		}
		daemon := &mps.Daemon{
			Control: mps.Control{Root: mps.ContainerRoot, Resource: resource.Name}, Replicas: resource.Replicas, Modes: modes, Log: logger,
		}
		for _, device := range resource.Devices {
			daemon.GPUs = append(daemon.GPUs, device.GPU)
		}
		daemons = append(daemons, daemon)
	}
	return daemons, nil
}
