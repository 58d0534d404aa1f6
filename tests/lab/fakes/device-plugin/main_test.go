// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"gpu.kubernetes.lab/fakes/internal/nvml"
)

func TestRunWithoutGPU(t *testing.T) {
	if library, err := nvml.Open("/nonexistent"); err == nil {
		t.Skipf("%s is on this machine or was loaded by an earlier test", library.Path)
	}
	cases := map[string]struct {
		env    map[string]string
		status int
		waits  bool
		want   string
	}{
		"init errors end it":          {nil, 1, false, "no GPU can be offered: NVML cannot be loaded"},
		"init errors are waited out":  {map[string]string{"FAIL_ON_INIT_ERROR": "false"}, 0, true, "waiting because FAIL_ON_INIT_ERROR is false"},
		"a wrong configuration ends":  {map[string]string{"MIG_STRATEGY": "mixed"}, 1, false, "the configuration is refused: environment variable MIG_STRATEGY"},
		"what has no effect is named": {map[string]string{"MPS_ROOT": "/run/mps"}, 1, false, "accepted without effect: mps-root"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			if test.waits {
				ctx, cancel = context.WithTimeout(ctx, 200*time.Millisecond)
			}
			defer cancel()
			var output bytes.Buffer
			arguments := []string{"--driver-root-ctr-path=/nonexistent"}
			status := run(ctx, arguments, func(key string) string { return test.env[key] }, &output)
			if status != test.status || !strings.Contains(output.String(), test.want) {
				t.Errorf("status %d, output:\n%s", status, output.String())
			}
			if waited := ctx.Err() != nil; waited != test.waits {
				t.Errorf("waited %t, want %t", waited, test.waits)
			}
			for _, line := range strings.Split(strings.TrimSpace(output.String()), "\n") {
				if !strings.HasPrefix(line, "FAKE nvidia-device-plugin: ") {
					t.Errorf("line %q does not say that this is a fake", line)
				}
			}
		})
	}
}
