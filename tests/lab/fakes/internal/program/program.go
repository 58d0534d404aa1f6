// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package program is the life of a fake as a program: each line that it writes says what it is.
package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
)

// Run calls serve with the log of the fake for the original, a program of this name that is called so in a sentence,
// and returns the exit status.
func Run(name, called string, output io.Writer, serve func(logger *log.Logger) error) int {
	logger := log.New(output, "FAKE "+name+": ", log.LstdFlags)
	logger.Printf("this is not %s, only a program that speaks the same protocol", called)
	switch err := serve(logger); {
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

// Choice takes one of the values that there are.
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
