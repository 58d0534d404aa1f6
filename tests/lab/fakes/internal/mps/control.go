// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package mps starts and asks NVIDIA's own nvidia-cuda-mps-control, in the folders that NVIDIA's device plugin uses.
package mps

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// ContainerRoot is where pods of the plugin and of the daemon have the folder of MPS.
const ContainerRoot = "/mps"

// controlProgram is in a container if the driver of the node has it and the nvidia runtime adds it.
const controlProgram = "nvidia-cuda-mps-control"

// PipeDir is the folder of a resource's pipe below a root: that of a container, or of the host.
func PipeDir(root, resource string) string { return filepath.Join(root, resource, "pipe") }

// ShmDir is the folder of the shared memory of all resources below a root.
func ShmDir(root string) string { return filepath.Join(root, "shm") }

func logDir(root, resource string) string { return filepath.Join(root, resource, "log") }

// Control is the control daemon of one resource.
type Control struct {
	Root, Resource string
}

// environment is all that the program gets.
func (c Control) environment() []string {
	return []string{
		"CUDA_MPS_PIPE_DIRECTORY=" + PipeDir(c.Root, c.Resource),
		"CUDA_MPS_LOG_DIRECTORY=" + logDir(c.Root, c.Resource),
	}
}

// Send sends one command through the control program and returns the answer.
func (c Control) Send(command string) (string, error) {
	program := exec.Command(controlProgram)
	program.Env = c.environment()
	program.Stdin = strings.NewReader(command)
	var answer bytes.Buffer
	program.Stdout = &answer
	err := program.Run()
	var status *exec.ExitError
	switch {
	case errors.As(err, &status):
		return "", fmt.Errorf("failed to send command to MPS daemon: %w", err)
	case err != nil:
		return "", fmt.Errorf("failed to start NVIDIA MPS command: %w", err)
	}
	return strings.TrimSpace(answer.String()), nil
}

// CheckHealth asks the daemon for a value. A daemon answers before its limits are set.
func (c Control) CheckHealth() error {
	if _, err := c.Send("get_default_active_thread_percentage"); err != nil {
		return fmt.Errorf("error checking MPS daemon health: %w", err)
	}
	return nil
}

// start starts the daemon, which goes to the background.
func (c Control) start() error {
	program := exec.Command(controlProgram, "-d")
	program.Env = c.environment()
	if err := program.Run(); err != nil {
		return fmt.Errorf("%s -d: %w", controlProgram, err)
	}
	return nil
}
