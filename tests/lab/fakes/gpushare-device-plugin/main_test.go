// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"gpu.kubernetes.lab/fakes/internal/gpushare"
	"gpu.kubernetes.lab/fakes/internal/kube"
	"gpu.kubernetes.lab/fakes/internal/nvml"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		arguments []string
		want      settings
		refused   string
	}{
		"nothing":              {nil, settings{unit: "GiB"}, ""},
		"as the manifest":      {[]string{"-logtostderr", "--v=5", "--memory-unit=MiB"}, settings{unit: "MiB"}, ""},
		"everything":           {[]string{"--mps=true", "--health-check", "--alsologtostderr", "--memory-unit", "GiB"}, settings{"GiB", true}, ""},
		"another unit":         {[]string{"--memory-unit=Gi"}, settings{}, `neither of ["GiB" "MiB"]`},
		"an option of HEAD":    {[]string{"--query-kubelet"}, settings{}, "query-kubelet"},
		"a word":               {[]string{"run"}, settings{}, `argument "run" is not an option`},
		"health check of what": {[]string{"--health-check=all"}, settings{}, "health-check"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parse(test.arguments)
			if test.refused == "" && (err != nil || got != test.want) {
				t.Errorf("got %+v, %v", got, err)
			}
			if test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("got %v, want an error with %q", err, test.refused)
			}
		})
	}
}

func TestUnitsOf(t *testing.T) {
	gpu := func(mib uint64) nvml.GPU { return nvml.GPU{UUID: "GPU-a", MemoryBytes: mib << 20} }
	cases := map[string]struct {
		gpus    []nvml.GPU
		unit    string
		want    int
		refused string
	}{
		"whole":              {[]nvml.GPU{gpu(40960)}, "GiB", 40, ""},
		"floored":            {[]nvml.GPU{gpu(15109)}, "GiB", 14, ""},
		"MiB":                {[]nvml.GPU{gpu(15109)}, "MiB", 15109, ""},
		"the first for all":  {[]nvml.GPU{gpu(40960), gpu(15360)}, "GiB", 40, ""},
		"less than one":      {[]nvml.GPU{gpu(1023)}, "GiB", 0, "memory of GPU 0"},
		"memory not known":   {[]nvml.GPU{{UUID: "GPU-a", Fault: "GPU is lost"}}, "MiB", 0, "GPU is lost"},
		"one without a UUID": {[]nvml.GPU{gpu(40960), {Index: 1, Fault: "GPU is lost"}}, "GiB", 0, "GPU 1 has no UUID: GPU is lost"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := unitsOf(test.gpus, test.unit)
			if got != test.want || (err == nil) != (test.refused == "") || (err != nil && !strings.Contains(err.Error(), test.refused)) {
				t.Errorf("got %d, %v", got, err)
			}
		})
	}
}

func waiting(name, assumed, assigned string, limits ...int64) kube.Pod {
	pod := kube.Pod{Metadata: kube.Meta{Name: name, Annotations: map[string]string{}}}
	if assumed != "" {
		pod.Metadata.Annotations[gpushare.AssumeTime] = assumed
	}
	if assigned != "" {
		pod.Metadata.Annotations[gpushare.Assigned] = assigned
	}
	for _, limit := range limits {
		container := kube.Container{}
		container.Resources.Limits = kube.Resources{gpushare.Memory: kube.Quantity(limit)}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	return pod
}

func TestChoose(t *testing.T) {
	const earlier, later = "999999999999999999", "1000000000000000000" // as texts the other way round
	cases := map[string]struct {
		pods []kube.Pod
		want string
	}{
		"the right amount":                {[]kube.Pod{waiting("five", earlier, "false", 5), waiting("three", later, "false", 3)}, "three"},
		"the oldest":                      {[]kube.Pod{waiting("later", later, "false", 3), waiting("earlier", earlier, "false", 3)}, "earlier"},
		"the sum of all containers":       {[]kube.Pod{waiting("two", earlier, "false", 2, 1)}, "two"},
		"one container of two is no pod":  {[]kube.Pod{waiting("two", earlier, "false", 3, 3)}, ""},
		"not those that have their GPU":   {[]kube.Pod{waiting("has", earlier, "true", 3)}, ""},
		"not those that nobody placed":    {[]kube.Pod{waiting("bypassed", "", "", 3), waiting("half", "", "false", 3), waiting("half", earlier, "", 3)}, ""},
		"not those with a time like this": {[]kube.Pod{waiting("odd", "today", "false", 3)}, ""},
		"nobody":                          {nil, ""},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			got, found := choose(test.pods, 3)
			if got.Metadata.Name != test.want || found != (test.want != "") {
				t.Errorf("got %q, %t", got.Metadata.Name, found)
			}
		})
	}
}

func TestRunWithoutNVML(t *testing.T) {
	if library, err := nvml.Open("/nonexistent"); err == nil {
		t.Skipf("%s is on this machine or was loaded by an earlier test", library.Path)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	var output bytes.Buffer
	status := run(ctx, place{driverRoot: "/nonexistent"}, nil, func(string) string { return "" }, &output)
	if status != 0 || ctx.Err() == nil {
		t.Errorf("status %d, and the context ended with %v", status, ctx.Err())
	}
	if !strings.Contains(output.String(), "no GPU can be offered, waiting: NVML cannot be loaded") {
		t.Errorf("output:\n%s", output.String())
	}
	for _, line := range strings.Split(strings.TrimSpace(output.String()), "\n") {
		if !strings.HasPrefix(line, "FAKE gpushare-device-plugin-v2: ") {
			t.Errorf("line %q does not say that this is a fake", line)
		}
	}
}

func TestRunRefusesItsArguments(t *testing.T) {
	var output bytes.Buffer
	status := run(context.Background(), place{}, []string{"--query-kubelet=true"}, func(string) string { return "" }, &output)
	if status != 1 || !strings.Contains(output.String(), "the command line is refused") {
		t.Errorf("status %d, output:\n%s", status, output.String())
	}
}
