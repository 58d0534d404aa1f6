// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package nvml

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// compile makes a shared library of testdata/NAME with the C compiler that cgo needs anyway.
func compile(t *testing.T, source, target string) {
	t.Helper()
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "gcc"
	}
	output, err := exec.Command(compiler, "-shared", "-fPIC", "-o", target, source).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, output)
	}
}

// One test, because a process loads NVML once.
func TestOpenAndRead(t *testing.T) {
	root := t.TempDir()
	if _, err := openFirst([]string{filepath.Join(root, "absent.so")}); err == nil || !strings.Contains(err.Error(), "absent.so") {
		t.Errorf("a library that is not there gave %v", err)
	}

	empty := filepath.Join(root, "empty.c")
	if err := os.WriteFile(empty, []byte("int nothing;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	compile(t, empty, filepath.Join(root, "empty.so"))
	if _, err := openFirst([]string{filepath.Join(root, "empty.so")}); err == nil || !strings.Contains(err.Error(), "nvmlInit_v2") {
		t.Errorf("a library without NVML's functions gave %v", err)
	}

	folder := filepath.Join(root, "usr", "lib", "x86_64-linux-gnu")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, soname)
	compile(t, filepath.Join("testdata", "answers.c"), path)
	if found := candidates(root); !reflect.DeepEqual(found, []string{soname, path}) {
		t.Fatalf("candidates %v", found)
	}
	library, err := openFirst([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	want := []GPU{
		{Index: 0, Minor: 5, UUID: "GPU-1", Name: "NVIDIA 1", MemoryBytes: 16 << 30},
		{Index: 1, Minor: 6, UUID: "GPU-2", Name: "NVIDIA 2", Fault: "GPU is lost"},
		{Index: 2, Minor: -1, Fault: "GPU is lost"},
	}
	for range 2 { // a second read initialises again
		driver, gpus, err := library.Read()
		if err != nil || driver != "1.2.3" || !reflect.DeepEqual(gpus, want) {
			t.Errorf("got %s, %+v, %v", driver, gpus, err)
		}
	}
}
