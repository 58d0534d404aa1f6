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
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// Serve runs a program until its context ends; it gets the command line without the program's name.
type Serve func(ctx context.Context, arguments []string, logger *log.Logger) error

// Choose returns which of several programs in one file was started: by the first argument, which is removed then, or by the name of the
// file; else the first name.
func Choose(names ...string) string {
	if len(os.Args) > 1 && slices.Contains(names, os.Args[1]) {
		os.Args = os.Args[1:]
	}
	if called := filepath.Base(os.Args[0]); slices.Contains(names, called) {
		return called
	}
	return names[0]
}

// Main runs the fake of a program until a signal ends it; called is the program in a sentence.
func Main(name, called string, serve Serve) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	os.Exit(run(ctx, name, called, os.Args[1:], os.Stderr, serve))
}

// Repeat calls session until the program ends. SIGHUP ends its context, and it is called again; a session that ends without an error is
// called again, too.
func Repeat(ctx context.Context, logger *log.Logger, session func(ctx context.Context) error) error {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	for ctx.Err() == nil {
		if err := untilHangup(ctx, hangup, logger, session); err != nil {
			return err
		}
	}
	return nil
}

func untilHangup(ctx context.Context, hangup <-chan os.Signal, logger *log.Logger, session func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	var waiting sync.WaitGroup
	waiting.Add(1)
	go func() {
		defer waiting.Done()
		select {
		case <-hangup:
			logger.Print("Received SIGHUP, restarting.")
			cancel()
		case <-ctx.Done():
		}
	}()
	defer waiting.Wait() // the next session has to get later signals
	defer cancel()
	return session(ctx)
}

// Failure is an error that ends a program with a status other than 1.
type Failure struct {
	Status int
	Reason string
}

func (f Failure) Error() string { return f.Reason }

// run is Main with its surroundings as arguments; it returns the exit status.
func run(ctx context.Context, name, called string, arguments []string, output io.Writer, serve Serve) int {
	logger := log.New(output, "FAKE "+name+": ", log.LstdFlags)
	logger.Printf("this is not %s, only a program that speaks the same protocol", called)
	switch err := serve(ctx, arguments, logger); {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		logger.Print(err)
		if failure := (Failure{}); errors.As(err, &failure) {
			return failure.Status
		}
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
