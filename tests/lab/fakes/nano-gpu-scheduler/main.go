// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command nano-gpu-scheduler is a fake of the scheduler extender of nano-gpu 0.3.0 where its image cannot be pulled.
// It is not the original, and each line that it writes says so.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"gpu.kubernetes.lab/fakes/internal/extender"
	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/program"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, kube.ServiceAccount, os.Stderr))
}

// run is the whole program; it returns the exit status.
func run(ctx context.Context, arguments []string, getenv func(string) string, account string, output io.Writer) int {
	return program.Run("nano-gpu-scheduler", "nano-gpu's scheduler extender", output, func(logger *log.Logger) error {
		policy := binpack
		err := program.Parse(arguments, func(set *flag.FlagSet) {
			program.Choice(set, "priority", &policy, binpack, spread)
		})
		if err != nil {
			return err
		}
		logger.Printf("policy %s", policy)
		return serve(ctx, policy, getenv, account, logger)
	})
}

func serve(ctx context.Context, policy string, getenv func(string) string, account string, logger *log.Logger) error {
	client, err := kube.Connect(getenv, account)
	if err != nil {
		return fmt.Errorf("the API server cannot be called: %w", err)
	}
	logger.Printf("credentials: %s", client.Origin)
	answers := &answers{ledger: newLedger(policy), client: client, log: logger}
	if !answers.ledger.Follow(ctx, client, logger) {
		return nil
	}
	return extender.Serve(ctx, getenv("PORT"), answers.handler(), logger)
}
