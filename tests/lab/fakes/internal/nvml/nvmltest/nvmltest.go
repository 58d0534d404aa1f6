// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package nvmltest gives the simulated NVML to the tests of programs that are one folder below the module.
package nvmltest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gpu.kubernetes.lab/fakes/internal/nvml"
)

const simulated = "../../../fakes/nvml"

// DriverRoot compiles the simulated NVML into a folder that looks like a driver's root. A process loads NVML once, so
// the test is skipped where another one is loaded or on the machine.
func DriverRoot(t *testing.T) string {
	t.Helper()
	if library, err := nvml.Open(""); err == nil {
		t.Skipf("%s is on this machine or was loaded by an earlier test", library.Path)
	}
	root := t.TempDir()
	output, err := exec.Command("make", "-C", simulated, "OUT="+filepath.Join(root, "usr", "lib")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return root
}

// Profile is the text of one of the simulated NVML's profiles.
func Profile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(simulated, "profiles", name+".profile"))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
