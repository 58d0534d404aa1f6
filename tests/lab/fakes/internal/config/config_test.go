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

func environment(pairs map[string]string) func(string) string {
	return func(name string) string { return pairs[name] }
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func with(change func(*Config)) Config {
	config := Default()
	change(&config)
	return config
}

func TestLoad(t *testing.T) {
	cases := map[string]struct {
		file      string
		env       map[string]string
		arguments []string
		want      Config
	}{
		"nothing": {want: Default()},
		"environment": {
			env: map[string]string{
				"DEVICE_LIST_STRATEGY": "envvar, cdi-cri", "DEVICE_ID_STRATEGY": "index", "MIG_STRATEGY": "none",
				"FAIL_ON_INIT_ERROR": "false", "PASS_DEVICE_SPECS": "true", "GDS_ENABLED": "false",
			},
			want: with(func(c *Config) {
				c.DeviceListStrategy = []string{"envvar", "cdi-cri"}
				c.DeviceIDStrategy = "index"
				c.FailOnInitError = false
				c.PassDeviceSpecs = true
			}),
		},
		"empty variables count as unset": {
			env:  map[string]string{"DEVICE_ID_STRATEGY": "", "CONFIG_FILE": "", "FAIL_ON_INIT_ERROR": ""},
			want: Default(),
		},
		"file": {
			file: `
version: v1
flags:
  migStrategy: none
  failOnInitError: false
  nvidiaDriverRoot: /run/nvidia/driver
  gdsEnabled: null
  gfd: {oneshot: true}
  plugin:
    passDeviceSpecs: true
    deviceListStrategy: [cdi-annotations, cdi-cri]
    deviceIDStrategy: index
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources:
      - name: nvidia.com/gpu
        replicas: 4
`,
			want: with(func(c *Config) {
				c.FailOnInitError = false
				c.DriverRoot = "/run/nvidia/driver"
				c.PassDeviceSpecs = true
				c.DeviceListStrategy = []string{"cdi-annotations", "cdi-cri"}
				c.DeviceIDStrategy = "index"
				c.Replicas, c.RenameByDefault, c.FailRequestsGreaterThanOne = 4, true, true
				c.Ignored = []string{"gfd"}
			}),
		},
		"the command line wins over the environment and that over the file": {
			file: "version: v1\nflags: {failOnInitError: false, plugin: {deviceIDStrategy: index, passDeviceSpecs: true}}\n",
			env:  map[string]string{"DEVICE_ID_STRATEGY": "uuid", "PASS_DEVICE_SPECS": "false"},
			arguments: []string{
				"--pass-device-specs", "--device-list-strategy=cdi-cri",
			},
			want: with(func(c *Config) {
				c.FailOnInitError = false
				c.PassDeviceSpecs = true
				c.DeviceListStrategy = []string{"cdi-cri"}
			}),
		},
		"a strategy as one word in the file": {
			file: "flags: {plugin: {deviceListStrategy: cdi-cri}}\n",
			want: with(func(c *Config) { c.DeviceListStrategy = []string{"cdi-cri"} }),
		},
		"an empty file":                     {file: "", want: Default()},
		"sharing: {} and null mps are none": {file: "version: v1\nsharing: {mps: null}\n", want: Default()},
		"sharing of another resource": {
			file: "sharing: {timeSlicing: {resources: [{name: nvidia.com/mig-1g.5gb, replicas: 2}]}}\n",
			want: with(func(c *Config) {
				c.Ignored = []string{"sharing.timeSlicing.resources[0] (nvidia.com/mig-1g.5gb)"}
			}),
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{"CONFIG_FILE": writeFile(t, test.file)}
			for key, value := range test.env {
				env[key] = value
			}
			got, err := Load(test.arguments, environment(env))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	sharing := func(text string) string { return "sharing: {timeSlicing: {resources: " + text + "}}\n" }
	cases := map[string]struct {
		file      string
		env       map[string]string
		arguments []string
		want      string
	}{
		"mig single":      {env: map[string]string{"MIG_STRATEGY": "single"}, want: `environment variable MIG_STRATEGY: "single" is not implemented`},
		"mig mixed":       {file: "flags: {migStrategy: mixed}\n", want: `flags.migStrategy: "mixed" is not implemented`},
		"boolean":         {env: map[string]string{"FAIL_ON_INIT_ERROR": "maybe"}, want: "neither true nor false"},
		"id strategy":     {arguments: []string{"--device-id-strategy=name"}, want: "option --device-id-strategy"},
		"list strategy":   {env: map[string]string{"DEVICE_LIST_STRATEGY": "envvar,cdi"}, want: `"cdi" is not one of`},
		"no strategy":     {arguments: []string{"--device-list-strategy=,"}, want: "a value is needed"},
		"volume mounts":   {env: map[string]string{"DEVICE_LIST_STRATEGY": "volume-mounts"}, want: "not implemented"},
		"unknown option":  {arguments: []string{"--speed=fast"}, want: "speed"},
		"operand":         {arguments: []string{"start"}, want: `argument "start" is not an option`},
		"absent file":     {arguments: []string{"--config-file=/nonexistent/c.yaml"}, want: "cannot be read"},
		"version":         {file: "version: v2\n", want: `version "v2" is not v1`},
		"unknown key":     {file: "flag: {}\n", want: "flag"},
		"unknown flag":    {file: "flags: {migstrategy: none}\n", want: "flags.migstrategy: the key is not known"},
		"unknown plugin":  {file: "flags: {plugin: {deviceIdStrategy: uuid}}\n", want: "flags.plugin.deviceIdStrategy"},
		"mps":             {file: "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}\n", want: "sharing.mps"},
		"imex":            {file: "imex: {channelIDs: [0]}\n", want: "imex"},
		"gds":             {env: map[string]string{"GDS_ENABLED": "true"}, want: "GDS_ENABLED"},
		"no resource":     {file: sharing("[]"), want: "resources is empty"},
		"one replica":     {file: sharing("[{name: nvidia.com/gpu, replicas: 1}]"), want: "replicas is 1"},
		"resource twice":  {file: sharing("[{name: nvidia.com/gpu, replicas: 2}, {name: gpu, replicas: 3}]"), want: "resources[1] repeats"},
		"unknown in list": {file: sharing("[{name: nvidia.com/gpu, replica: 2}]"), want: "replica"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			env := map[string]string{}
			if test.file != "" {
				env["CONFIG_FILE"] = writeFile(t, test.file)
			}
			for key, value := range test.env {
				env[key] = value
			}
			_, err := Load(test.arguments, environment(env))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want an error with %q", err, test.want)
			}
		})
	}
}

func TestResourceName(t *testing.T) {
	cases := []struct {
		replicas int
		rename   bool
		want     string
	}{{1, false, "nvidia.com/gpu"}, {1, true, "nvidia.com/gpu"}, {2, false, "nvidia.com/gpu"}, {2, true, "nvidia.com/gpu.shared"}}
	for _, test := range cases {
		if got := (Config{Replicas: test.replicas, RenameByDefault: test.rename}).ResourceName(); got != test.want {
			t.Errorf("%+v: got %s", test, got)
		}
	}
}
