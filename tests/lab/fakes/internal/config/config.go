// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package config reads the settings of the device plugin fake: the command line before the environment before the
// configuration file (version v1), under the names that NVIDIA's device plugin v0.20 uses.
//
// It is stricter than the original on purpose: an unknown key or value ends with an error, and so does a feature that
// exists there but not here, so that no test passes because a setting was ignored.
package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Names of strategies, as users write them.
const (
	ListEnvVar         = "envvar"
	ListCDICRI         = "cdi-cri"
	ListCDIAnnotations = "cdi-annotations"
	IDByUUID           = "uuid"
	IDByIndex          = "index"
	PolicyDistributed  = "distributed"
	PolicyPacked       = "packed"

	MIGNone   = "none"
	MIGSingle = "single"
	MIGMixed  = "mixed"

	// Resource is the name of whole GPUs, and of MIG devices with the strategy single; MIGResource begins that of a profile with mixed.
	Resource    = "nvidia.com/gpu"
	MIGResource = "nvidia.com/mig-"
)

// Sharing is how a device is offered more than once.
type Sharing string

// The ways of sharing, in the words of the original.
const (
	SharingNone        Sharing = "none"
	SharingTimeSlicing Sharing = "time-slicing"
	SharingMPS         Sharing = "mps"
)

// Config has the settings of the fake.
type Config struct {
	FailOnInitError     bool
	PassDeviceSpecs     bool
	DeviceListStrategy  []string
	DeviceIDStrategy    string
	AllocationPolicy    string
	CDIAnnotationPrefix string
	ContainerDriverRoot string
	DriverRoot          string
	DevRoot             string
	KubeletSocket       string
	MIGStrategy         string
	// MPSRoot is the folder of the MPS control daemon on the host; "" if it is not set.
	MPSRoot string
	Sharing Sharing
	// Replicas is how many times each device of a resource is offered, by the resource's name before it is renamed.
	Replicas                   map[string]int
	RenameByDefault            bool
	FailRequestsGreaterThanOne bool
	// Ignored names the settings that were accepted and do nothing here.
	Ignored []string
}

// Default is the configuration when nothing is set.
func Default() Config {
	return Config{
		FailOnInitError:     true,
		DeviceListStrategy:  []string{ListEnvVar},
		DeviceIDStrategy:    IDByUUID,
		AllocationPolicy:    PolicyDistributed,
		CDIAnnotationPrefix: "cdi.k8s.io/",
		ContainerDriverRoot: "/driver-root",
		DriverRoot:          "/",
		KubeletSocket:       "/var/lib/kubelet/device-plugins/kubelet.sock",
		MIGStrategy:         MIGNone,
		Sharing:             SharingNone,
	}
}

// Offer is the name under which a resource is offered to the kubelet, and how many times each device; 1 means not shared.
func (c Config) Offer(resource string) (name string, replicas int) {
	replicas = c.Replicas[resource]
	if replicas == 0 {
		return resource, 1
	}
	if c.RenameByDefault {
		resource += ".shared"
	}
	return resource, replicas
}

// CheckPlugin returns the original's error for settings that do not fit together in the device plugin.
func (c Config) CheckPlugin() error {
	switch {
	case c.Sharing != SharingMPS:
		return nil
	case c.MIGStrategy == MIGMixed:
		return errors.New("using --mig-strategy=mixed is not supported with MPS")
	case c.MPSRoot == "":
		return errors.New("using MPS requires --mps-root to be specified")
	}
	return nil
}

// Lists tells whether the device list strategy is among those chosen.
func (c Config) Lists(strategy string) bool { return slices.Contains(c.DeviceListStrategy, strategy) }

// DeviceRoot is the host folder below which the device nodes are.
func (c Config) DeviceRoot() string {
	if c.DevRoot != "" {
		return c.DevRoot
	}
	return c.DriverRoot
}

// Load combines the command line (without the program's name), the environment and the configuration file that one of
// the two names. Errors are one sentence each and name the setting.
func Load(arguments []string, getenv func(string) string) (Config, error) {
	config := Default()
	given, err := parseFlags(arguments)
	if err != nil {
		return config, err
	}
	path := getenv("CONFIG_FILE")
	if fromFlag, ok := given["config-file"]; ok {
		path = fromFlag
	}
	if path != "" {
		content, err := os.ReadFile(path)
		if err != nil {
			return config, fmt.Errorf("the configuration file cannot be read: %w", err)
		}
		if err := applyFile(&config, content); err != nil {
			return config, fmt.Errorf("the configuration file %s is refused: %w", path, err)
		}
	}
	for _, setting := range settings {
		if value := getenv(setting.env); setting.env != "" && value != "" {
			if err := setting.apply(&config, value); err != nil {
				return config, fmt.Errorf("environment variable %s: %w", setting.env, err)
			}
		}
	}
	for _, setting := range settings {
		if value, ok := given[setting.flag]; ok {
			if err := setting.apply(&config, value); err != nil {
				return config, fmt.Errorf("option --%s: %w", setting.flag, err)
			}
		}
	}
	return config, nil
}

// parseFlags gives the value of each option that stands on the command line.
func parseFlags(arguments []string) (map[string]string, error) {
	given := map[string]string{}
	set := flag.NewFlagSet("device-plugin", flag.ContinueOnError)
	keep := func(name string) func(string) error {
		return func(value string) error {
			given[name] = value
			return nil
		}
	}
	set.Func("config-file", "configuration file (CONFIG_FILE)", keep("config-file"))
	for _, setting := range settings {
		usage := fmt.Sprintf("see the documentation of NVIDIA's device plugin (%s)", setting.env)
		if setting.boolean {
			set.BoolFunc(setting.flag, usage, keep(setting.flag))
		} else {
			set.Func(setting.flag, usage, keep(setting.flag))
		}
	}
	if err := set.Parse(arguments); err != nil {
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("argument %q is not an option", set.Arg(0))
	}
	return given, nil
}

func splitList(text string) []string {
	var parts []string
	for _, part := range strings.Split(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

var errEmpty = errors.New("a value is needed")
