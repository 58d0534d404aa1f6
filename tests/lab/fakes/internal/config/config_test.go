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
	want.DeviceListStrategy, want.RenameByDefault = []string{"envvar", "cdi-cri"}, true
	want.Sharing, want.Replicas = SharingTimeSlicing, map[string]int{Resource: 4}
	got, err := load(t, text, env, []string{"--pass-device-specs"})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
}

func TestLoadReadsSharing(t *testing.T) {
	const both = "[{name: nvidia.com/gpu, replicas: 4}, {name: mig-1g.5gb, replicas: 2}]"
	cases := map[string]struct {
		text     string
		kind     Sharing
		one      bool // failRequestsGreaterThanOne
		name     string
		replicas int
	}{
		"not at all":             {"", SharingNone, false, "nvidia.com/mig-1g.5gb", 1},
		"another resource":       {"sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}", SharingTimeSlicing, false, "nvidia.com/mig-1g.5gb", 1},
		"time-slicing":           {"sharing: {timeSlicing: {resources: " + both + "}}", SharingTimeSlicing, false, "nvidia.com/mig-1g.5gb", 2},
		"renamed":                {"sharing: {timeSlicing: {renameByDefault: true, resources: " + both + "}}", SharingTimeSlicing, false, "nvidia.com/mig-1g.5gb.shared", 2},
		"time-slicing, one only": {"sharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: " + both + "}}", SharingTimeSlicing, true, "nvidia.com/mig-1g.5gb", 2},
		"MPS":                    {"sharing: {mps: {resources: " + both + "}}", SharingMPS, true, "nvidia.com/mig-1g.5gb", 2},
		"MPS, several":           {"sharing: {mps: {failRequestsGreaterThanOne: false, resources: " + both + "}}", SharingMPS, false, "nvidia.com/mig-1g.5gb", 2},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := load(t, "version: v1\n"+test.text+"\n", nil, nil)
			if err != nil || got.Sharing != test.kind || got.FailRequestsGreaterThanOne != test.one {
				t.Errorf("got %+v, %v", got, err)
			}
			if offered, replicas := got.Offer("nvidia.com/mig-1g.5gb"); offered != test.name || replicas != test.replicas {
				t.Errorf("offered as %s, %d times", offered, replicas)
			}
		})
	}
}

func TestMIGStrategyOfTheCommandLinePrecedesEnvironmentAndFile(t *testing.T) {
	const text = "flags: {migStrategy: mixed}\n"
	cases := []struct {
		environment, argument, want string
	}{
		{"", "", MIGMixed},
		{"single", "", MIGSingle},
		{"single", "--mig-strategy=none", MIGNone},
	}
	for _, test := range cases {
		var arguments []string
		if test.argument != "" {
			arguments = append(arguments, test.argument)
		}
		got, err := load(t, text, map[string]string{"MIG_STRATEGY": test.environment}, arguments)
		if err != nil || got.MIGStrategy != test.want {
			t.Errorf("%+v: got %q, %v", test, got.MIGStrategy, err)
		}
	}
}

func TestPluginRejectsMPSWithoutItsFolderAndWithMixedMIG(t *testing.T) {
	cases := []struct {
		settings Config
		want     string
	}{
		{Config{Sharing: SharingMPS}, "using MPS requires --mps-root to be specified"},
		{Config{Sharing: SharingMPS, MPSRoot: "/mps", MIGStrategy: MIGMixed}, "using --mig-strategy=mixed is not supported with MPS"},
		{Config{Sharing: SharingMPS, MPSRoot: "/mps", MIGStrategy: MIGSingle}, ""},
		{Config{Sharing: SharingTimeSlicing, MIGStrategy: MIGMixed}, ""},
	}
	for _, test := range cases {
		got := ""
		if err := test.settings.CheckPlugin(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%+v: got %q", test.settings, got)
		}
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
		"MIG":                   {variable: "MIG_STRATEGY=both", want: "environment variable MIG_STRATEGY: unknown MIG strategy: both"},
		"MIG in the file":       {file: "flags: {migStrategy: double}\n", want: "flags.migStrategy: unknown MIG strategy: double"},
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
		"MPS and time-slicing":  {file: "sharing: {mps: {resources: [{name: gpu, replicas: 2}]}, timeSlicing: {resources: [{name: gpu, replicas: 2}]}}\n", want: "both mps and timeSlicing"},
		"IMEX":                  {file: "imex: {channelIDs: [0]}\n", want: "imex"},
		"GDS":                   {variable: "GDS_ENABLED=true", want: "GDS_ENABLED"},
		"no shared resource":    {file: sharing("[]"), want: "sharing.timeSlicing: no resources specified"},
		"one replica":           {file: sharing("[{name: nvidia.com/gpu, replicas: 1}]"), want: "resources[0]: number of replicas must be >= 2"},
		"nameless resource":     {file: sharing("[{replicas: 2}]"), want: "no resource name specified"},
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
