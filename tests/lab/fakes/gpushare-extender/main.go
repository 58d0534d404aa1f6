// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command gpushare-extender is a fake of the gpushare scheduler extender where its image cannot be pulled.
// It is not the original, and each line that it writes says so.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"slices"
	"strings"

	"gpu.kubernetes.lab/fakes/internal/extender"
	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/program"
)

func main() {
	program.Main("gpushare-schd-extender", "the gpushare scheduler extender", serve)
}

func serve(ctx context.Context, arguments []string, logger *log.Logger) error {
	if len(arguments) > 0 {
		return fmt.Errorf("argument %q: it has none, as the original", arguments[0])
	}
	level := strings.ToLower(os.Getenv("LOG_LEVEL"))
	if !slices.Contains([]string{"", "debug", "info", "warn", "error"}, level) {
		return fmt.Errorf("LOG_LEVEL: %q is not one of debug, info, warn, error", level)
	}
	if os.Getenv("THREADNESS") != "" {
		logger.Print("accepted without effect: THREADNESS")
	}
	client, err := kube.Connect()
	if err != nil {
		return fmt.Errorf("the API server cannot be called: %w", err)
	}
	answers := &answers{ledger: newLedger(), client: client, log: logger, debug: level == "debug"}
	if !answers.ledger.Follow(ctx, client, logger) {
		return nil
	}
	return extender.Serve(ctx, os.Getenv("PORT"), extender.Routes("/gpushare-scheduler", version, answers, logger), logger)
}
