// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package program

import (
	"context"
	"errors"
	"log"
	"strings"
	"testing"
)

func TestEachLineSaysThatTheProgramIsAFake(t *testing.T) {
	for want, failure := range []error{nil, errors.New("no GPU")} {
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
