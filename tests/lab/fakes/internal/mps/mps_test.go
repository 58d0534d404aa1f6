// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package mps

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"gpu.kubernetes.lab/fakes/internal/nvml"
)

// modes records the compute modes that were set.
type modes struct {
	set     []string
	failure error
}

func (m *modes) SetComputeMode(index, mode int) error {
	m.set = append(m.set, fmt.Sprintf("%d=%d", index, mode))
	return m.failure
}

// script stands for nvidia-cuda-mps-control: it appends each command to the file "commands", and answers while "running" exists.
const script = `#!/bin/sh
cd "$CUDA_MPS_PIPE_DIRECTORY" 2>/dev/null || exit 1
if [ "$1" = -d ]; then [ -e fail ] && exit 1; : > running; echo "-d" >> commands; exit 0; fi
[ -e running ] || exit 1
read command
echo "$command" >> commands
[ "$command" = quit ] && rm running
echo 25.0
`

// daemon is one of two A100, and the control program that it finds.
func daemon(t *testing.T, set *modes, output *strings.Builder) *Daemon {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, controlProgram), []byte(strings.Replace(script, "cd ", "PATH="+os.Getenv("PATH")+"; cd ", 1)), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	return &Daemon{
		Control: Control{Root: t.TempDir(), Resource: "nvidia.com/gpu"}, Replicas: 3, Modes: set, Log: log.New(output, "", 0),
		GPUs: []nvml.GPU{
			{Index: 0, UUID: "GPU-0", MemoryBytes: 40960 << 20, Capability: [2]int{8, 0}},
			{Index: 1, UUID: "GPU-1", MemoryBytes: 81920 << 20, Capability: [2]int{8, 0}},
		},
	}
}

// files lists what is below the root of a daemon.
func files(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if !entry.IsDir() || filepath.Base(path) == "log" {
			found = append(found, strings.TrimPrefix(path, root))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestReplicasAreLimitedByTheComputeCapability(t *testing.T) {
	for _, test := range []struct {
		capability [2]int
		replicas   int
		want       string
	}{
		{[2]int{8, 0}, 48, ""},
		{[2]int{8, 0}, 49, "maximum allowed replicas exceeded: 49 > 48"},
		{[2]int{7, 5}, 48, ""},
		{[2]int{7, 0}, 16, ""},
		{[2]int{7, 0}, 17, "maximum allowed replicas exceeded: 17 > 16"},
		{[2]int{6, 1}, 17, "maximum allowed replicas exceeded: 17 > 16"},
		{[2]int{10, 0}, 48, ""},
	} {
		daemon := Daemon{GPUs: []nvml.GPU{{Capability: test.capability}}, Replicas: test.replicas}
		err := daemon.Check()
		if (err == nil) != (test.want == "") || err != nil && !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%+v: got %v", test, err)
		}
	}
}

func TestGroupStartsAndStopsInTheOrderOfTheOriginal(t *testing.T) {
	var output strings.Builder
	set := &modes{}
	daemon := daemon(t, set, &output)
	group := Group{Root: daemon.Root, Daemons: []*Daemon{daemon}, Log: daemon.Log}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- group.Run(ctx) }()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(group.ready()); err == nil {
			break
		}
	}
	if err := daemon.CheckHealth(); err != nil {
		t.Errorf("while it runs: %v", err)
	}
	pipe := "/nvidia.com/gpu/pipe/"
	want := []string{"/.ready", "/nvidia.com/gpu/.started", "/nvidia.com/gpu/log", pipe + "commands", pipe + "running"}
	if found := files(t, daemon.Root); !reflect.DeepEqual(found, want) {
		t.Errorf("got %v, want %v", found, want)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if found := files(t, daemon.Root); !reflect.DeepEqual(found, []string{pipe + "commands"}) {
		t.Errorf("afterwards %v", found)
	}
	if want := []string{"0=3", "1=3", "0=0", "1=0"}; !reflect.DeepEqual(set.set, want) {
		t.Errorf("compute modes %v, want %v", set.set, want)
	}
	commands, _ := os.ReadFile(filepath.Join(daemon.Root, pipe, "commands"))
	if want := "-d\nset_default_device_pinned_mem_limit 0 13653M\nset_default_device_pinned_mem_limit 1 27306M\n" +
		"set_default_active_thread_percentage 33\nget_default_active_thread_percentage\nquit\n"; string(commands) != want {
		t.Errorf("commands:\n%s", commands)
	}
	if err := daemon.CheckHealth(); err == nil || err.Error() != "error checking MPS daemon health: failed to send command to MPS daemon: exit status 1" {
		t.Errorf("after it: %v", err)
	}
}

// As the original: what failed is retried after it was stopped, a daemon that does not run cannot be stopped, and so the program ends.
func TestGroupEndsWhenADaemonDoesNotStart(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*Daemon, *modes)
		want    string
		set     []string
	}{
		"no compute mode": {func(_ *Daemon, set *modes) { set.failure = errors.New("in use") }, "error setting compute mode EXCLUSIVE_PROCESS", []string{"0=3"}},
		"no control program": {
			func(*Daemon, *modes) { os.Setenv("PATH", "/nonexistent") }, `executable file not found in $PATH`, []string{"0=3", "1=3"},
		},
		"the daemon fails": {func(daemon *Daemon, _ *modes) {
			pipe := PipeDir(daemon.Root, daemon.Resource)
			_ = os.MkdirAll(pipe, 0o755)
			_ = touch(filepath.Join(pipe, "fail"))
		}, "nvidia-cuda-mps-control -d: exit status 1", []string{"0=3", "1=3"}},
	} {
		t.Run(name, func(t *testing.T) {
			var output strings.Builder
			set := &modes{}
			daemon := daemon(t, set, &output)
			test.prepare(daemon, set)
			group := Group{Root: daemon.Root, Daemons: []*Daemon{daemon}, Log: daemon.Log, Retry: time.Millisecond}
			err := group.Run(context.Background())
			if err == nil || !strings.Contains(err.Error(), "error sending quit message") {
				t.Errorf("got %v", err)
			}
			if !strings.Contains(output.String(), test.want) || !strings.Contains(output.String(), "Retrying in 1ms...") {
				t.Errorf("output:\n%s", output.String())
			}
			if !reflect.DeepEqual(set.set, test.set) {
				t.Errorf("compute modes %v", set.set)
			}
		})
	}
}

func TestComputeModeOfAnOldLibraryIsLogged(t *testing.T) {
	var output strings.Builder
	daemon := daemon(t, &modes{failure: fmt.Errorf("call: %w", nvml.ErrNoFunction)}, &output)
	if err := daemon.Start(); err != nil || !strings.Contains(output.String(), "GPU 1 keeps its compute mode") {
		t.Errorf("got %v, output:\n%s", err, output.String())
	}
}

func TestSharedMemoryHasHalfOfTheNodes(t *testing.T) {
	for text, want := range map[string]string{
		"MemTotal:       16384001 kB\nMemFree: 1 kB\n": "8192000k", "MemFree: 1 kB\n": "65536k",
	} {
		if got := shmSize(text); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
