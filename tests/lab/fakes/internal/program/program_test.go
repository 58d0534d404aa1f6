// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package program

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestEachLineSaysThatTheProgramIsAFake(t *testing.T) {
	for want, failure := range []error{nil, errors.New("no GPU"), Failure{Status: 2, Reason: "no driver"}} {
		var output strings.Builder
		status := run(context.Background(), "agent", "the agent", nil, &output, func(_ context.Context, _ []string, logger *log.Logger) error {
			logger.Print("registered")
			return failure
		})
		lines := strings.Split(strings.TrimSpace(output.String()), "\n")
		if status != want || len(lines) != 3 {
			t.Errorf("status %d, output:\n%s", status, output.String())
		}
		for _, line := range lines {
			if !strings.HasPrefix(line, "FAKE agent: ") {
				t.Errorf("line %q does not say that this is a fake", line)
			}
		}
	}
}

func TestChooseReadsTheNameOfTheFileAndTheFirstArgument(t *testing.T) {
	before := os.Args
	defer func() { os.Args = before }()
	for _, test := range []struct {
		words []string
		want  string
		rest  int
	}{
		{[]string{"/usr/bin/manager"}, "manager", 0},
		{[]string{"/usr/bin/plugin", "manager", "--once"}, "manager", 1},
		{[]string{"/usr/bin/plugin", "--once"}, "plugin", 1},
		{[]string{"/build/other"}, "plugin", 0},
	} {
		os.Args = test.words
		if got := Choose("plugin", "manager"); got != test.want || len(os.Args) != test.rest+1 {
			t.Errorf("%v: got %s with %v", test.words, got, os.Args)
		}
	}
}

func TestRepeatCallsTheSessionAgainAfterSIGHUP(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	err := Repeat(ctx, log.New(io.Discard, "", 0), func(session context.Context) error {
		if calls++; calls == 2 {
			cancel()
			return nil
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			return err
		}
		<-session.Done()
		return nil
	})
	if err != nil || calls != 2 || ctx.Err() == nil {
		t.Errorf("%d calls, %v", calls, err)
	}
	want := errors.New("no configuration")
	if err := Repeat(context.Background(), log.New(io.Discard, "", 0), func(context.Context) error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}
