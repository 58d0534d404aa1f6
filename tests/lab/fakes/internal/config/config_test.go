// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// load reads the settings of a configuration file with this text, an environment and a command line.
func load(t *testing.T, text string, env map[string]string, arguments []string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(arguments, func(name string) string {
		if name == "CONFIG_FILE" {
			return path
		}
		return env[name]
	})
}

func TestLoadReadsFileEnvironmentAndCommandLine(t *testing.T) {
	text := `
version: v1
flags: {migStrategy: none, failOnInitError: false, nvidiaDriverRoot: /run/nvidia, plugin: {deviceIDStrategy: index, passDeviceSpecs: true}}
sharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: 4}]}}
`
	env := map[string]string{"DEVICE_ID_STRATEGY": "uuid", "PASS_DEVICE_SPECS": "false", "DEVICE_LIST_STRATEGY": "envvar, cdi-cri", "MIG_STRATEGY": ""}
	want := Default()
	want.FailOnInitError, want.DriverRoot, want.PassDeviceSpecs = false, "/run/nvidia", true
	want.DeviceListStrategy, want.Replicas, want.RenameByDefault = []string{"envvar", "cdi-cri"}, 4, true
	got, err := load(t, text, env, []string{"--pass-device-specs"})
	if err != nil || !reflect.DeepEqual(got, want) || got.ResourceName() != "nvidia.com/gpu.shared" {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

// What the fake does not do ends it, so that no scenario passes because a setting was ignored.
func TestLoadRejectsWhatIsNotImplemented(t *testing.T) {
	sharing := func(text string) string { return "sharing: {timeSlicing: {resources: " + text + "}}\n" }
	cases := map[string]struct {
		file     string
		variable string // NAME=VALUE
		argument string
		want     string
	}{
		"MIG":                   {variable: "MIG_STRATEGY=single", want: `environment variable MIG_STRATEGY: "single" is not implemented`},
		"MIG in the file":       {file: "flags: {migStrategy: mixed}\n", want: `flags.migStrategy: "mixed" is not implemented`},
		"no boolean":            {variable: "FAIL_ON_INIT_ERROR=maybe", want: "neither true nor false"},
		"device id strategy":    {argument: "--device-id-strategy=name", want: "option --device-id-strategy"},
		"device list strategy":  {variable: "DEVICE_LIST_STRATEGY=envvar,cdi", want: `"cdi" is not one of`},
		"volume mounts":         {variable: "DEVICE_LIST_STRATEGY=volume-mounts", want: "not implemented"},
		"unknown option":        {argument: "--speed=fast", want: "speed"},
		"operand":               {argument: "start", want: `argument "start" is not an option`},
		"absent file":           {argument: "--config-file=/nonexistent/c.yaml", want: "cannot be read"},
		"version of the file":   {file: "version: v2\n", want: `version "v2" is not v1`},
		"unknown key":           {file: "flag: {}\n", want: "flag"},
		"unknown flag":          {file: "flags: {migstrategy: none}\n", want: "flags.migstrategy: the key is not known"},
		"unknown plugin flag":   {file: "flags: {plugin: {deviceIdStrategy: uuid}}\n", want: "flags.plugin.deviceIdStrategy"},
		"MPS":                   {file: "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}\n", want: "sharing.mps"},
		"IMEX":                  {file: "imex: {channelIDs: [0]}\n", want: "imex"},
		"GDS":                   {variable: "GDS_ENABLED=true", want: "GDS_ENABLED"},
		"no shared resource":    {file: sharing("[]"), want: "resources is empty"},
		"one replica":           {file: sharing("[{name: nvidia.com/gpu, replicas: 1}]"), want: "replicas is 1"},
		"shared resource twice": {file: sharing("[{name: nvidia.com/gpu, replicas: 2}, {name: gpu, replicas: 3}]"), want: "resources[1] repeats"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			variable, value, _ := strings.Cut(test.variable, "=")
			var arguments []string
			if test.argument != "" {
				arguments = append(arguments, test.argument)
			}
			_, err := load(t, test.file, map[string]string{variable: value}, arguments)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}
