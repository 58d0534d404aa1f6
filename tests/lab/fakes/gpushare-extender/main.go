// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command gpushare-extender is a fake of the gpushare scheduler extender where its image cannot be pulled.
// It is not the original, and each line that it writes says so.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
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
	return program.Run("gpushare-schd-extender", "the gpushare scheduler extender", output, func(logger *log.Logger) error {
		return serve(ctx, arguments, getenv, account, logger)
	})
}

func serve(ctx context.Context, arguments []string, getenv func(string) string, account string, logger *log.Logger) error {
	if len(arguments) > 0 {
		return fmt.Errorf("argument %q: it has none, as the original", arguments[0])
	}
	level := strings.ToLower(getenv("LOG_LEVEL"))
	if !slices.Contains([]string{"", "debug", "info", "warn", "error"}, level) {
		return fmt.Errorf("LOG_LEVEL: %q is not one of debug, info, warn, error", level)
	}
	if getenv("THREADNESS") != "" {
		logger.Print("accepted without effect: THREADNESS")
	}
	client, err := kube.Connect(getenv, account)
	if err != nil {
		return fmt.Errorf("the API server cannot be called: %w", err)
	}
	logger.Printf("credentials: %s", client.Origin)
	answers := &answers{ledger: newLedger(), client: client, log: logger, debug: level == "debug"}
	if !answers.follow(ctx) {
		return nil
	}
	return extender.Serve(ctx, getenv("PORT"), answers.handler(), logger)
}

// follow waits until nodes and pods are known; false means that the context ended. It does not wait for ConfigMaps,
// because older builds of the original neither read them nor are allowed to.
func (a *answers) follow(ctx context.Context) bool {
	go kube.Follow(ctx, a.client, "/api/v1/configmaps", healthSink{a.ledger}, a.log)
	return a.ledger.Follow(ctx, a.client, a.log)
}
