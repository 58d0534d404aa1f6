// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"gpu.kubernetes.lab/fakes/internal/configmanager"
	"gpu.kubernetes.lab/fakes/internal/kube"
)

// manageConfig is config-manager: an init container, or beside the device plugin.
func manageConfig(ctx context.Context, arguments []string, logger *log.Logger) error {
	settings, err := configmanager.Parse(arguments, os.LookupEnv)
	if err != nil {
		return err
	}
	client, err := kube.Connect()
	if err != nil {
		return fmt.Errorf("error building kubernetes clientcmd config: %w", err)
	}
	manager := &configmanager.Manager{Settings: settings, Proc: "/proc", Log: logger}
	return manager.Run(ctx, configmanager.Follow(ctx, client, settings.Node, settings.Label, logger))
}
