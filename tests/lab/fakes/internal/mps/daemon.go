// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package mps

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"os"
	"path/filepath"
	"syscall"

	"gpu.kubernetes.lab/fakes/internal/nvml"
)

// label is what the original gives the pipe's folder where the host has SELinux.
const label = "system_u:object_r:container_file_t:s0"

// Modes sets the compute mode of a GPU; nvml.Library does.
type Modes interface {
	SetComputeMode(index, mode int) error
}

// Daemon starts and stops the control daemon of one resource, whose GPUs are shared by MPS.
type Daemon struct {
	Control
	GPUs     []nvml.GPU
	Replicas int
	Modes    Modes
	Log      *log.Logger
}

// Check returns the original's error if an MPS server cannot have so many clients. Volta counts as older there, although it has 48.
func (d *Daemon) Check() error {
	for _, gpu := range d.GPUs {
		limit := 16
		if gpu.Capability[0] > 7 || gpu.Capability == [2]int{7, 5} {
			limit = 48
		}
		if d.Replicas > limit {
			return fmt.Errorf("invalid MPS configuration: invalid device maximum allowed replicas exceeded: %d > %d", d.Replicas, limit)
		}
	}
	return nil
}

// limits are the commands that set the share of each client, for the GPUs in NVML's order.
func (d *Daemon) limits() []string {
	var commands []string
	for _, gpu := range d.GPUs {
		if gpu.MemoryBytes > 0 {
			limit := gpu.MemoryBytes / uint64(d.Replicas) >> 20
			commands = append(commands, fmt.Sprintf("set_default_device_pinned_mem_limit %d %dM", gpu.Index, limit))
		}
	}
	return append(commands, fmt.Sprintf("set_default_active_thread_percentage %d", 100/d.Replicas))
}

// Start does what the original does, in its order. It leaves what it has done when a step fails.
func (d *Daemon) Start() error {
	if err := d.setModes(nvml.ComputeExclusiveProcess); err != nil {
		return fmt.Errorf("error setting compute mode EXCLUSIVE_PROCESS: %w", err)
	}
	pipe := PipeDir(d.Root, d.Resource)
	if err := os.MkdirAll(pipe, 0o755); err != nil {
		return err
	}
	if err := d.setLabel(pipe); err != nil {
		return fmt.Errorf("error setting SELinux context: %w", err)
	}
	if err := os.MkdirAll(logDir(d.Root, d.Resource), 0o755); err != nil {
		return err
	}
	if err := d.start(); err != nil {
		return err
	}
	for _, command := range d.limits() {
		if _, err := d.Send(command); err != nil {
			return fmt.Errorf("error setting a limit (%s): %w", command, err)
		}
	}
	d.Log.Printf("%s: %d clients for each of %d GPUs, compute mode EXCLUSIVE_PROCESS", d.Resource, d.Replicas, len(d.GPUs))
	return touch(d.started())
}

// Stop does what the original does, in its order. If the daemon does not answer, nothing else is done, and the GPUs keep their mode.
func (d *Daemon) Stop() error {
	if _, err := d.Send("quit"); err != nil {
		return fmt.Errorf("error sending quit message: %w", err)
	}
	if err := d.setModes(nvml.ComputeDefault); err != nil {
		return fmt.Errorf("error setting compute mode DEFAULT: %w", err)
	}
	if err := os.Remove(d.started()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	d.Log.Printf("%s: stopped, compute mode DEFAULT", d.Resource)
	return os.RemoveAll(logDir(d.Root, d.Resource))
}

func (d *Daemon) started() string { return filepath.Join(d.Root, d.Resource, ".started") }

// setModes is a log line where the NVML library has no such function.
func (d *Daemon) setModes(mode int) error {
	for _, gpu := range d.GPUs {
		err := d.Modes.SetComputeMode(gpu.Index, mode)
		switch {
		case errors.Is(err, nvml.ErrNoFunction):
			d.Log.Printf("GPU %d keeps its compute mode: %v", gpu.Index, err)
		case err != nil:
			return fmt.Errorf("GPU %s: %w", gpu.UUID, err)
		}
	}
	return nil
}

func (d *Daemon) setLabel(folder string) error {
	if _, err := os.Stat("/sys/fs/selinux/enforce"); err != nil {
		return nil
	}
	return filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, syscall.Setxattr(path, "security.selinux", []byte(label), 0))
	})
}

func touch(path string) error { return os.WriteFile(path, nil, 0o644) }
