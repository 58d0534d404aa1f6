//go:build nvidia_cuda_mps

// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package mps

import (
	"os"
	"strings"
	"testing"
)

// NVIDIA's own program runs without a GPU, and reports a limit in whole GiB. Debian has it in nvidia-cuda-mps: go test -tags nvidia_cuda_mps ./internal/mps
func TestGroupRunsNVIDIAsControlProgram(t *testing.T) {
	path := os.Getenv("PATH")
	var output strings.Builder
	daemon := daemon(t, &modes{}, &output)
	t.Setenv("PATH", path)
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{"get_default_active_thread_percentage": "33.0", "get_default_device_pinned_mem_limit 1": "26G"} {
		if got, err := daemon.Send(command); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", command, got, err, want)
		}
	}
	if err := daemon.Stop(); err != nil {
		t.Error(err)
	}
}
