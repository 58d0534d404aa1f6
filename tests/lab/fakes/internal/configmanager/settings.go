// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package configmanager chooses the device plugin's configuration by a label of the node, as NVIDIA's config-manager v0.20 does.
package configmanager

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Settings are those of the environment; the fake has no options.
type Settings struct {
	Oneshot     bool
	Node, Label string
	// Source is the folder of the configurations, Destination the link to the one that was chosen.
	Source, Destination string
	Default             string
	Fallbacks           []string
	SendSignal          bool
	Signal              syscall.Signal
	Process             string
}

// Parse reads the environment. lookup is os.LookupEnv: a variable that is set and empty is not one that is not set.
func Parse(arguments []string, lookup func(string) (string, bool)) (Settings, error) {
	if len(arguments) > 0 {
		return Settings{}, fmt.Errorf("argument %q: options are not implemented by this fake, only the environment", arguments[0])
	}
	text := func(name, otherwise string) string {
		if value, set := lookup(name); set {
			return value
		}
		return otherwise
	}
	var failures []error
	boolean := func(name string, otherwise bool) bool {
		value, set := lookup(name)
		if !set || value == "" {
			return !set && otherwise // the original's library reads an empty variable as false
		}
		parsed, err := strconv.ParseBool(value)
		failures = append(failures, err)
		return parsed
	}
	settings := Settings{
		Oneshot:     boolean("ONESHOT", false),
		Node:        text("NODE_NAME", ""),
		Label:       text("NODE_LABEL", "nvidia.com/device-plugin.config"),
		Source:      text("CONFIG_FILE_SRCDIR", ""),
		Destination: text("CONFIG_FILE_DST", ""),
		Default:     text("DEFAULT_CONFIG", ""),
		SendSignal:  boolean("SEND_SIGNAL", true),
		Signal:      syscall.SIGHUP,
		Process:     text("PROCESS_TO_SIGNAL", "nvidia-device-plugin"),
	}
	if value, set := lookup("FALLBACK_STRATEGIES"); set {
		for _, name := range strings.Split(value, ",") {
			settings.Fallbacks = append(settings.Fallbacks, strings.TrimSpace(name))
		}
	}
	if value := text("SIGNAL", ""); value != "" {
		number, err := strconv.Atoi(value)
		failures = append(failures, err)
		settings.Signal = syscall.Signal(number)
	}
	if text("KUBECONFIG", "") != "" {
		failures = append(failures, errors.New("KUBECONFIG is not implemented by this fake, only the service account"))
	}
	failures = append(failures, settings.check())
	return settings, errors.Join(failures...)
}

func (s Settings) check() error {
	for _, setting := range [][2]string{
		{"node-name", s.Node}, {"node-label", s.Label}, {"config-file-srcdir", s.Source}, {"config-file-dst", s.Destination},
	} {
		if setting[1] == "" {
			return fmt.Errorf("invalid <%s>: must not be empty string", setting[0])
		}
	}
	return nil
}

// Choose returns the name of the configuration for the value of the label, among the names that exist; "" is the empty configuration.
func (s Settings) Choose(label string, names []string) (string, error) {
	switch {
	case len(names) == 0:
		return "", errors.New("no configuration files available")
	case label != "":
		return existing(label, label, names)
	case s.Default != "":
		return existing(s.Default, label, names) // the original's error has the label's value here, too
	}
	for _, strategy := range s.Fallbacks {
		switch {
		case strategy == "named" && slices.Contains(names, "default"):
			return "default", nil
		case strategy == "single" && len(names) == 1:
			return names[0], nil
		case strategy == "empty":
			return "", nil
		case strategy != "named" && strategy != "single":
			return "", fmt.Errorf("unknown fallback strategy: %s", strategy)
		}
	}
	return "", errors.New("no config was set, no default was provided, and all fallbacks failed")
}

func existing(name, label string, names []string) (string, error) {
	if !slices.Contains(names, name) {
		return "", fmt.Errorf("specified config %s does not exist", label)
	}
	return name, nil
}

// listNames lists the configurations: the keys of a mounted ConfigMap, without the entries of the kubelet, which begin with two dots.
func listNames(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("error getting list of configuration files: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() && !strings.HasPrefix(entry.Name(), "..") {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// link makes Destination a link to the configuration; false means that it was one already. The content of the file is not looked at.
func (s Settings) link(name string) (bool, error) {
	target := os.DevNull
	if name != "" {
		target = filepath.Join(s.Source, name)
	}
	if info, err := os.Stat(s.Destination); err == nil && !info.IsDir() {
		wanted, err := filepath.EvalSymlinks(target)
		if err != nil {
			return false, fmt.Errorf("error evaluating realpath of '%s': %w", target, err)
		}
		present, err := filepath.EvalSymlinks(s.Destination)
		if err != nil {
			return false, fmt.Errorf("error evaluating realpath of '%s': %w", s.Destination, err)
		}
		if wanted == present {
			return false, nil
		}
		if err := os.Remove(s.Destination); err != nil {
			return false, fmt.Errorf("error removing existing config: %w", err)
		}
	}
	if err := os.Symlink(target, s.Destination); err != nil {
		return false, fmt.Errorf("error creating symlink: %w", err)
	}
	return true, nil
}
