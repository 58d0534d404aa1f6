// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// setting is one option under its three names: in the file (below `flags`), on the command line, in the environment.
type setting struct {
	key     string
	flag    string
	env     string
	boolean bool
	apply   func(*Config, string) error
}

// settings lists all settings that are accepted, refused or ignored.
var settings = []setting{
	{key: "migStrategy", flag: "mig-strategy", env: "MIG_STRATEGY", apply: toMIGStrategy},
	{
		key: "failOnInitError", flag: "fail-on-init-error", env: "FAIL_ON_INIT_ERROR", boolean: true,
		apply: toBool(func(c *Config) *bool { return &c.FailOnInitError }),
	},
	{
		key: "nvidiaDriverRoot", flag: "driver-root", env: "NVIDIA_DRIVER_ROOT",
		apply: toText(func(c *Config) *string { return &c.DriverRoot }),
	},
	{
		key: "nvidiaDevRoot", flag: "dev-root", env: "NVIDIA_DEV_ROOT",
		apply: toText(func(c *Config) *string { return &c.DevRoot }),
	},
	{
		key: "plugin.passDeviceSpecs", flag: "pass-device-specs", env: "PASS_DEVICE_SPECS", boolean: true,
		apply: toBool(func(c *Config) *bool { return &c.PassDeviceSpecs }),
	},
	{
		key: "plugin.deviceListStrategy", flag: "device-list-strategy", env: "DEVICE_LIST_STRATEGY",
		apply: toStrategies,
	},
	{
		key: "plugin.deviceIDStrategy", flag: "device-id-strategy", env: "DEVICE_ID_STRATEGY",
		apply: toChoice(func(c *Config) *string { return &c.DeviceIDStrategy }, IDByUUID, IDByIndex),
	},
	{
		key:  "plugin.sharedDevicesAllocationPolicy",
		flag: "shared-devices-allocation-policy", env: "SHARED_DEVICES_ALLOCATION_POLICY",
		apply: toChoice(func(c *Config) *string { return &c.AllocationPolicy }, PolicyDistributed, PolicyPacked),
	},
	{
		key: "plugin.cdiAnnotationPrefix", flag: "cdi-annotation-prefix", env: "CDI_ANNOTATION_PREFIX",
		apply: toText(func(c *Config) *string { return &c.CDIAnnotationPrefix }),
	},
	{
		key: "plugin.containerDriverRoot", flag: "driver-root-ctr-path", env: "DRIVER_ROOT_CTR_PATH",
		apply: toText(func(c *Config) *string { return &c.ContainerDriverRoot }),
	},
	{
		key: "kubeletSocket", flag: "kubelet-socket", env: "KUBELET_SOCKET",
		apply: toText(func(c *Config) *string { return &c.KubeletSocket }),
	},
	{
		key: "deviceDiscoveryStrategy", flag: "device-discovery-strategy", env: "DEVICE_DISCOVERY_STRATEGY",
		apply: only("auto", "nvml"),
	},
	{key: "gdrcopyEnabled", flag: "gdrcopy-enabled", env: "GDRCOPY_ENABLED", boolean: true, apply: only("false")},
	{key: "gdsEnabled", flag: "gds-enabled", env: "GDS_ENABLED", boolean: true, apply: only("false")},
	{key: "mofedEnabled", flag: "mofed-enabled", env: "MOFED_ENABLED", boolean: true, apply: only("false")},
	{
		key: "mpsRoot", flag: "mps-root", env: "MPS_ROOT",
		apply: toText(func(c *Config) *string { return &c.MPSRoot }),
	},
	{
		key: "useNodeFeatureAPI", flag: "use-node-feature-api", env: "USE_NODE_FEATURE_API", boolean: true,
		apply: ignore("use-node-feature-api"),
	},
	{
		key: "plugin.nvidiaCTKPath", flag: "nvidia-cdi-hook-path", env: "NVIDIA_CDI_HOOK_PATH",
		apply: ignore("nvidia-cdi-hook-path"),
	},
	{flag: "imex-channel-ids", env: "IMEX_CHANNEL_IDS", apply: only("")},
	{flag: "imex-required", env: "IMEX_REQUIRED", boolean: true, apply: only("false")},
	{flag: "cdi-feature-flags", env: "CDI_FEATURE_FLAGS", apply: ignore("cdi-feature-flags")},
	{flag: "cdi-disable-hooks", env: "CDI_DISABLE_HOOKS", apply: ignore("cdi-disable-hooks")},
}

func toBool(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, text string) error {
		value, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		*field(c) = value
		return nil
	}
}

func toText(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, text string) error {
		if text == "" {
			return errEmpty
		}
		*field(c) = text
		return nil
	}
}

func toChoice(field func(*Config) *string, allowed ...string) func(*Config, string) error {
	return func(c *Config, text string) error {
		if !slices.Contains(allowed, text) {
			return fmt.Errorf("%q is not one of %s", text, strings.Join(allowed, ", "))
		}
		*field(c) = text
		return nil
	}
}

func toMIGStrategy(c *Config, text string) error {
	if !slices.Contains([]string{MIGNone, MIGSingle, MIGMixed}, text) {
		return fmt.Errorf("unknown MIG strategy: %s", text)
	}
	c.MIGStrategy = text
	return nil
}

func toStrategies(c *Config, text string) error {
	known := []string{ListEnvVar, ListCDICRI, ListCDIAnnotations}
	list := splitList(text)
	for _, strategy := range list {
		if strategy == "volume-mounts" {
			return fmt.Errorf("volume-mounts is not implemented by this fake, use one of %s", strings.Join(known, ", "))
		}
		if !slices.Contains(known, strategy) {
			return fmt.Errorf("%q is not one of %s", strategy, strings.Join(known, ", "))
		}
	}
	if len(list) == 0 {
		return errEmpty
	}
	c.DeviceListStrategy = list
	return nil
}

// only accepts the values that the fake implements and refuses the rest.
func only(allowed ...string) func(*Config, string) error {
	return func(_ *Config, text string) error {
		if !slices.Contains(allowed, text) {
			return fmt.Errorf("%q is not implemented by this fake, only %q", text, strings.Join(allowed, ", "))
		}
		return nil
	}
}

func ignore(name string) func(*Config, string) error {
	return func(c *Config, _ string) error {
		if !slices.Contains(c.Ignored, name) {
			c.Ignored = append(c.Ignored, name)
		}
		return nil
	}
}
