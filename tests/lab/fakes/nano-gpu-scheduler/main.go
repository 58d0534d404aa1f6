// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command nano-gpu-scheduler is a fake of the scheduler extender of nano-gpu 0.3.0 where its image cannot be pulled.
// It is not the original, and each line that it writes says so.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"

	"gpu.kubernetes.lab/fakes/internal/extender"
	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/program"
)

func main() {
	program.Main("nano-gpu-scheduler", "nano-gpu's scheduler extender", serve)
}

func serve(ctx context.Context, arguments []string, logger *log.Logger) error {
	policy := binpack
	err := program.Parse(arguments, func(set *flag.FlagSet) {
		program.Choice(set, "priority", &policy, binpack, spread)
	})
	if err != nil {
		return err
	}
	logger.Printf("policy %s", policy)
	client, err := kube.Connect()
	if err != nil {
		return fmt.Errorf("the API server cannot be called: %w", err)
	}
	answers := &answers{ledger: newLedger(policy), client: client, log: logger}
	if !answers.ledger.Follow(ctx, client, logger) {
		return nil
	}
	return extender.Serve(ctx, os.Getenv("PORT"), answers.handler(), logger)
}
