// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package program runs a fake as a program: each line that it writes says that it is a fake.
package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"
)

// Serve runs a program until its context ends; it gets the command line without the program's name.
type Serve func(ctx context.Context, arguments []string, logger *log.Logger) error

// Main runs the fake of a program until a signal ends it; called is the program in a sentence.
func Main(name, called string, serve Serve) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(run(ctx, name, called, os.Args[1:], os.Stderr, serve))
}

// run is Main with its surroundings as arguments; it returns the exit status.
func run(ctx context.Context, name, called string, arguments []string, output io.Writer, serve Serve) int {
	logger := log.New(output, "FAKE "+name+": ", log.LstdFlags)
	logger.Printf("this is not %s, only a program that speaks the same protocol", called)
	switch err := serve(ctx, arguments, logger); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		logger.Print(err)
		return 1
	default:
		logger.Print("stopped")
	}
	return 0
}

// Parse reads the command line of a program that uses glog, whose options have no effect here; define adds its own.
func Parse(arguments []string, define func(set *flag.FlagSet)) error {
	set := flag.NewFlagSet("fake", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	for _, name := range []string{"logtostderr", "alsologtostderr"} {
		set.Bool(name, false, "without effect")
	}
	set.Int("v", 0, "without effect")
	define(set)
	if err := set.Parse(arguments); err != nil {
		return fmt.Errorf("the command line is refused: %w", err)
	}
	if set.NArg() > 0 {
		return fmt.Errorf("the command line is refused: argument %q is not an option", set.Arg(0))
	}
	return nil
}

// Choice defines an option with a fixed set of values.
func Choice(set *flag.FlagSet, name string, chosen *string, values ...string) {
	set.Func(name, fmt.Sprintf("one of %q", values), func(value string) error {
		for _, known := range values {
			if value == known {
				*chosen = value
				return nil
			}
		}
		return fmt.Errorf("it is neither of %q", values)
	})
}
