// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package configmanager

import (
	"context"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestChooseFollowsLabelDefaultAndFallbacks(t *testing.T) {
	three := []string{"default", "mps-4", "ts-4"}
	cases := map[string]struct {
		label, standard string
		fallbacks       string
		names           []string
		want, refused   string
	}{
		"label before default":     {"mps-4", "ts-4", "", three, "mps-4", ""},
		"default before fallbacks": {"", "ts-4", "named", three, "ts-4", ""},
		"named":                    {"", "", "named,single", three, "default", ""},
		"single":                   {"", "", "named,single", []string{"ts-4"}, "ts-4", ""},
		"empty":                    {"", "", "named,single,empty", []string{"mps-4", "ts-4"}, "", ""},
		"unknown label":            {"ts-9", "ts-4", "empty", three, "", "specified config ts-9 does not exist"},
		"unknown default":          {"", "ts-9", "empty", three, "", "specified config  does not exist"},
		"unknown strategy":         {"", "", "first", three, "", "unknown fallback strategy: first"},
		"empty strategy":           {"", "", "", three, "", "unknown fallback strategy: "},
		"no strategy that fits":    {"", "", "named,single", []string{"mps-4", "ts-4"}, "", "all fallbacks failed"},
		"no configuration":         {"ts-4", "", "empty", nil, "", "no configuration files available"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			settings := Settings{Default: test.standard, Fallbacks: strings.Split(test.fallbacks, ",")}
			got, err := settings.Choose(test.label, test.names)
			if test.refused == "" {
				if err != nil || got != test.want {
					t.Errorf("got %q, %v, want %q", got, err, test.want)
				}
			} else if err == nil || !strings.Contains(err.Error(), test.refused) {
				t.Errorf("got %q, %v, want an error with %q", got, err, test.refused)
			}
		})
	}
}

func TestParseReadsTheEnvironment(t *testing.T) {
	full := map[string]string{
		"NODE_NAME": "worker", "CONFIG_FILE_SRCDIR": "/available-configs", "CONFIG_FILE_DST": "/config/config.yaml",
		"ONESHOT": "true", "KUBECONFIG": "", "DEFAULT_CONFIG": "", "FALLBACK_STRATEGIES": "named, single", "SEND_SIGNAL": "false", "SIGNAL": "",
		"PROCESS_TO_SIGNAL": "",
	}
	want := Settings{
		Oneshot: true, Node: "worker", Label: "nvidia.com/device-plugin.config", Source: "/available-configs", Destination: "/config/config.yaml",
		Fallbacks: []string{"named", "single"}, Signal: syscall.SIGHUP,
	}
	parse := func(changed map[string]string) (Settings, error) {
		return Parse(nil, func(name string) (string, bool) {
			if value, found := changed[name]; found {
				return value, value != "unset"
			}
			value, found := full[name]
			return value, found
		})
	}
	if got, err := parse(nil); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	got, err := parse(map[string]string{"ONESHOT": "", "SEND_SIGNAL": "unset", "SIGNAL": "10", "PROCESS_TO_SIGNAL": "unset", "FALLBACK_STRATEGIES": "unset"})
	want.Oneshot, want.SendSignal, want.Signal, want.Process, want.Fallbacks = false, true, syscall.SIGUSR1, "nvidia-device-plugin", nil
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v, %v\nwant %+v", got, err, want)
	}
	for name, value := range map[string]string{
		"NODE_NAME": "", "NODE_LABEL": "", "CONFIG_FILE_SRCDIR": "", "CONFIG_FILE_DST": "", "SIGNAL": "HUP", "ONESHOT": "once", "KUBECONFIG": "/k",
	} {
		if got, err := parse(map[string]string{name: value}); err == nil {
			t.Errorf("%s=%s: got %+v", name, value, got)
		}
	}
	if _, err := Parse([]string{"--oneshot"}, os.LookupEnv); err == nil {
		t.Error("an option was accepted")
	}
}

// run applies labels to a folder with these configurations and returns the target of the link, the log and the error.
func run(t *testing.T, settings Settings, names []string, labels ...string) (string, string, error) {
	t.Helper()
	settings.Source = t.TempDir()
	settings.Destination = filepath.Join(t.TempDir(), "config.yaml")
	for _, name := range append(names, "..2026") {
		if err := os.WriteFile(filepath.Join(settings.Source, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var output strings.Builder
	manager := Manager{Settings: settings, Proc: "/proc", Log: log.New(&output, "", 0)}
	ctx, cancel := context.WithCancel(context.Background())
	values := make(chan string)
	go func() {
		defer cancel()
		for _, label := range labels {
			select {
			case values <- label:
			case <-ctx.Done():
			}
		}
	}()
	err := manager.Run(ctx, values)
	cancel()
	target, _ := os.Readlink(settings.Destination)
	return strings.TrimPrefix(target, settings.Source+"/"), output.String(), err
}

func TestRunAppliesEachLabel(t *testing.T) {
	names := []string{"default", "ts-4"}
	cases := map[string]struct {
		settings Settings
		labels   []string
		target   string
		output   string
		refused  string
	}{
		"once without the label, which is not known yet": {Settings{Oneshot: true, Default: "default"}, []string{"ts-4"}, "default", "Successfully updated to config: default", ""},
		"the label":                   {Settings{Default: "default"}, []string{"ts-4"}, "ts-4", "Successfully updated to config: ts-4", ""},
		"the label is removed":        {Settings{Default: "default"}, []string{"ts-4", ""}, "default", "label\nLabel change detected: =", ""},
		"another name of the default": {Settings{Default: "default"}, []string{"default"}, "default", "Already configured. Skipping update...", ""},
		"the same label again":        {Settings{Default: "default"}, []string{"ts-4", "ts-4"}, "ts-4", "Updating to config: ts-4", ""},
		"an unknown label":            {Settings{Default: "default"}, []string{"ts-9", "ts-4"}, "default", "", "specified config ts-9 does not exist"},
		"neither default nor label":   {Settings{Fallbacks: []string{"single"}}, []string{"ts-4"}, "", "", "all fallbacks failed"},
		"nothing to signal": {
			Settings{Default: "default", SendSignal: true, Process: "no-such-program"}, nil, "default", "", "error finding pid: no process found",
		},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			target, output, err := run(t, test.settings, names, test.labels...)
			if target != test.target || !strings.Contains(output, test.output) {
				t.Errorf("link to %q, want %q; output:\n%s", target, test.target, output)
			}
			if (test.refused == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Errorf("got %v, want %q", err, test.refused)
			}
		})
	}
}

func TestSignalReachesTheProcessOfExactlyThatName(t *testing.T) {
	child := exec.Command("sleep", "60")
	child.Args[0] = "mps-control-daemon-" + strconv.Itoa(os.Getpid())
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = child.Process.Kill() }()
	manager := Manager{Settings: Settings{Signal: syscall.SIGTERM, Process: "/usr/bin/" + child.Args[0]}, Proc: "/proc", Log: log.New(io.Discard, "", 0)}
	if err := manager.signal(); err == nil {
		t.Error("a name with a path matched a name without one")
	}
	manager.Settings.Process = child.Args[0]
	if err := manager.signal(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	if status, _ := child.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("the process ended with %v", child.ProcessState)
	}
}
