// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package intel

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/probe"
)

var silent = log.New(io.Discard, "", 0)

func TestResourcesOfEachTreeAreThoseOfTheRealPlugin(t *testing.T) {
	for _, test := range []struct{ tree, options, want string }{
		{"intel", "", "i915 card0-0, xe card1-0"},
		{"intel-i915", "-shared-dev-num=3", "i915 card0-0 card0-1 card0-2"},
		{"intel-xe", "-allocation-policy=packed", "xe card0-0"},
		{"intel-sriov", "", "i915 card1-0 card2-0"},
		{"intel-foreign", "", "i915 card0-0"},
		{"intel-no-driver", "", ""},
		{"intel", "-enable-monitoring", "i915 card0-0, monitoring all, xe card1-0"},
		{"intel", "-enable-monitoring -monitoring-mode=split", "i915 card0-0, i915_monitoring all, xe card1-0, xe_monitoring all"},
		{"intel-xe", "-allow-ids=0xE20B,0x56c0", "xe card0-0"},
		{"intel-xe", "-deny-ids=0xe20b", ""},
		{"amd-cpx", "", ""},
		{"mixed", "", "i915 card2-0"},
	} {
		t.Run(test.tree+" "+test.options, func(t *testing.T) {
			settings, err := Parse(append(strings.Fields(test.options), "-prefix="+probe.Tree(t, test.tree)))
			if err != nil {
				t.Fatal(err)
			}
			cards, err := Scan(settings, silent)
			if err != nil && test.tree != "intel-no-driver" { // that tree has no folder of cards
				t.Fatal(err)
			}
			var found []string
			for name, devices := range Resources(settings, cards) {
				found = append(found, fmt.Sprintf("%s %s", name, strings.Join(probe.IDs(devices), " ")))
			}
			slices.Sort(found)
			if got := strings.Join(found, ", "); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestParseRefusesWhatTheOriginalRefuses(t *testing.T) {
	for _, options := range []string{
		"-shared-dev-num=0", "-allow-ids=0x56c0 -deny-ids=0x56c1", "-allow-ids=56c0", "-wsl", "-bypath=other",
		"-health-management -xpumd-endpoint=/run/xpumd/intelxpuinfo.sock", "-resource-manager",
	} {
		if _, err := Parse(strings.Fields(options)); err == nil {
			t.Errorf("%s is accepted", options)
		}
	}
}

func TestPoliciesOrderShares(t *testing.T) {
	available := []string{"card1-1", "card0-1", "card1-0", "card0-0"}
	for policy, want := range map[string][]string{
		packed: {"card0-0", "card0-1", "card1-0", "card1-1"}, balanced: {"card0-0", "card1-0", "card0-1", "card1-1"},
	} {
		if got := prefer(policy, available); !slices.Equal(got, want) {
			t.Errorf("%s: got %v", policy, got)
		}
	}
}

func TestByPathOptionChoosesTheMounts(t *testing.T) {
	root := probe.Tree(t, "intel")
	const folder = "/dev/dri/by-path"
	for mode, want := range map[string][]string{
		single: {folder + "/pci-0000:04:00.0-card", folder + "/pci-0000:04:00.0-render"}, all: {folder}, none: nil,
	} {
		settings := Settings{Prefix: root, Shared: 1, ByPath: mode}
		cards, err := Scan(settings, silent)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, mount := range Grant(settings, cards, []string{"card1-0"}).Mounts {
			got = append(got, mount.ContainerPath)
			if !mount.ReadOnly {
				t.Errorf("%v can be written", mount)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v", mode, got)
		}
	}
}

func TestPluginListsNothingFirstAndFollowsTheCards(t *testing.T) {
	root, kubelet := probe.Tree(t, "intel-i915"), probe.NewKubelet(t)
	plugin := &Plugin{
		Settings:      Settings{Prefix: root, Shared: 1, Policy: none, ByPath: single},
		KubeletSocket: kubelet.Socket, CDI: filepath.Join(t.TempDir(), "cdi"), Log: silent, Interval: 10 * time.Millisecond,
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- plugin.Run(ctx) }()
	request := <-kubelet.Registered
	if request.ResourceName != "gpu.intel.com/i915" || request.Endpoint != "gpu.intel.com-i915.sock" {
		t.Errorf("registered %v", request)
	}
	client, stream := kubelet.Dial(t, request.Endpoint)
	if devices := probe.Next(t, stream); len(devices) > 0 {
		t.Errorf("the first list has %v", devices)
	}
	if got := probe.IDs(probe.Next(t, stream)); !slices.Equal(got, []string{"card0-0"}) {
		t.Errorf("the second list has %v", got)
	}
	response, err := client.Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{"card0-0"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	answer := response.ContainerResponses[0]
	if len(answer.Devices) != 2 || answer.Devices[1].HostPath != "/dev/dri/renderD128" || answer.CdiDevices[0].Name != "intel.cdi.k8s.io/gpu=card0" {
		t.Errorf("granted %v", answer)
	}
	second := filepath.Join(root, "sys/class/drm/card1")
	if err := os.Symlink("card0", second); err != nil { // a card is plugged in
		t.Fatal(err)
	}
	if got := probe.IDs(probe.Next(t, stream)); !slices.Equal(got, []string{"card0-0", "card1-0"}) {
		t.Errorf("the next list has %v", got)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(plugin.CDI, "intel.cdi.k8s.io-gpu-card0.yaml")); err != nil {
		t.Error(err) // it stays
	}
}
