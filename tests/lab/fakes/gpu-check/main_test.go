// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"strings"
	"testing"

	"gpu.kubernetes.lab/fakes/internal/probe"
)

func TestProgramsReportTheGrantedDevices(t *testing.T) {
	for _, test := range []struct {
		tree           string
		rocm, opencl   int
		rocmIs, openIs string
	}{
		{"amd", 0, 0, "ROCk module is loaded", "Number of devices                                 2"},
		{"intel-i915", 1, 0, "ROCk module is NOT loaded", "Number of devices                                 1"},
		{"amd-no-driver", 1, 0, "ROCk module is NOT loaded", "Number of platforms                               0"},
		{"amd-no-gpu", 1, 0, "no agent is a GPU", "Number of platforms                               0"},
	} {
		t.Run(test.tree, func(t *testing.T) {
			root := probe.Tree(t, test.tree)
			var first, second strings.Builder
			if status := rocminfo(root, &first); status != test.rocm || !strings.Contains(first.String(), test.rocmIs) {
				t.Errorf("rocminfo: status %d\n%s", status, first.String())
			}
			if status := clinfo(root, &second); status != test.opencl || !strings.Contains(second.String(), test.openIs) {
				t.Errorf("clinfo: status %d\n%s", status, second.String())
			}
		})
	}
}
