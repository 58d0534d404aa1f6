// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"slices"
	"strings"
	"testing"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"gpu.kubernetes.lab/fakes/internal/amd"
	"gpu.kubernetes.lab/fakes/internal/probe"
	"gpu.kubernetes.lab/fakes/internal/program"
)

var silent = log.New(io.Discard, "", 0)

func TestResourcesOfEachTreeAreThoseOfTheRealPlugin(t *testing.T) {
	for _, test := range []struct {
		tree, naming, want string
		status             int
	}{
		{"amd", amd.Single, "amd.com/gpu 2", 0},
		{"amd", amd.Mixed, "amd.com/gpu 2", 0},
		{"amd-cpx", amd.Single, "amd.com/gpu 4", 0},
		{"amd-cpx", amd.Mixed, "amd.com/cpx_nps4 4", 0},
		{"amd-invalid-partition", amd.Single, "amd.com/gpu 4", 0},
		{"amd-numa-unknown", amd.Single, "amd.com/gpu 2", 0},
		{"amd-heterogeneous", amd.Single, "", 1},
		{"amd-heterogeneous", amd.Mixed, "amd.com/cpx_nps4 2, amd.com/spx_nps1 1", 0},
		{"amd-no-module", amd.Single, "", 2},
		{"amd-no-kfd", amd.Single, "", 0},
		{"amd-no-gpu", amd.Single, "", 0},
		{"amd-numa-missing", amd.Single, "", 0},
		{"intel", amd.Single, "", 0},
		{"mixed", amd.Single, "amd.com/gpu 2", 0},
	} {
		t.Run(test.tree+" "+test.naming, func(t *testing.T) {
			resources, err := find(probe.Tree(t, test.tree), test.naming, silent)
			if got := statusOf(err); got != test.status {
				t.Errorf("status %d of %v", got, err)
			}
			var found []string
			for name, devices := range resources {
				found = append(found, fmt.Sprintf("%s %d", name, len(devices)))
			}
			slices.Sort(found)
			if got := strings.Join(found, ", "); got != test.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func statusOf(err error) int {
	failure := program.Failure{Status: 1}
	if err == nil {
		return 0
	}
	errors.As(err, &failure)
	return failure.Status
}

func TestPluginGrantsDeviceNodesOnly(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	kubelet, root := probe.NewKubelet(t), probe.Tree(t, "amd-cpx")
	go serve(ctx, root, amd.Mixed, kubelet.Socket, silent)
	request := <-kubelet.Registered
	if request.ResourceName != "amd.com/cpx_nps4" || request.Endpoint != "amd.com_cpx_nps4" || request.Version != "v1beta1" {
		t.Errorf("registered %v", request)
	}
	client, stream := kubelet.Dial(t, request.Endpoint)
	devices := probe.Next(t, stream)
	if got := probe.IDs(devices); !slices.Equal(got, []string{"0000:63:00.0", "0000:83:00.0", "amdgpu_xcp_0", "amdgpu_xcp_1"}) {
		t.Errorf("devices %v", got)
	}
	if numa := devices[3].Topology.Nodes[0].ID; numa != 1 {
		t.Errorf("the second GPU's partition is in NUMA node %d", numa)
	}
	response, err := client.Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{"0000:83:00.0", "amdgpu_xcp_0"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var granted []string
	for _, node := range response.ContainerResponses[0].Devices {
		granted = append(granted, node.ContainerPath+" "+node.Permissions)
	}
	want := []string{"/dev/kfd rw", "/dev/dri/card1 rw", "/dev/dri/renderD129 rw", "/dev/dri/card8 rw", "/dev/dri/renderD136 rw"}
	if !slices.Equal(granted, want) {
		t.Errorf("granted %v", granted)
	}
	answer := response.ContainerResponses[0]
	if len(answer.Envs)+len(answer.Mounts)+len(answer.Annotations)+len(answer.CdiDevices) > 0 {
		t.Errorf("granted more: %v", answer)
	}
	_, err = client.Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{"0000:aa:00.0"}}},
	})
	if err == nil {
		t.Error("an unknown device was granted")
	}
}
