// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package amd

import (
	"errors"
	"maps"
	"testing"

	"gpu.kubernetes.lab/fakes/internal/probe"
	"gpu.kubernetes.lab/fakes/internal/program"
)

func TestLabelsHaveTheOriginalsForms(t *testing.T) {
	for _, test := range []struct {
		tree  string
		kinds []string
		want  map[string]string
	}{
		{"amd", []string{"vram", "cu-count"}, map[string]string{
			"amd.com/gpu.vram": "192G", "beta.amd.com/gpu.vram": "192G", "beta.amd.com/gpu.vram.192G": "2",
			"amd.com/gpu.cu-count": "304", "beta.amd.com/gpu.cu-count": "304", "beta.amd.com/gpu.cu-count.304": "2",
		}},
		{"amd", []string{"product-name", "driver-version"}, map[string]string{
			"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "beta.amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
			"beta.amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM": "2",
		}},
		{"amd-heterogeneous", []string{"compute-memory-partition"}, map[string]string{
			"amd.com/gpu.compute-memory-partition.cpx_nps4": "1", "beta.amd.com/gpu.compute-memory-partition.cpx_nps4": "1",
			"amd.com/gpu.compute-memory-partition.spx_nps1": "1", "beta.amd.com/gpu.compute-memory-partition.spx_nps1": "1",
		}},
	} {
		got, err := Labels(probe.Tree(t, test.tree), test.kinds)
		if err != nil || !maps.Equal(got, test.want) {
			t.Errorf("%s %v: got %v, %v", test.tree, test.kinds, got, err)
		}
	}
}

func TestLabelsWithoutTheDriverFailWithStatusTwo(t *testing.T) {
	for _, tree := range []string{"none", "amd-no-module", "amd-no-kfd"} {
		_, err := Labels(probe.Tree(t, tree), Kinds)
		if failure := (program.Failure{}); !errors.As(err, &failure) || failure.Status != 2 {
			t.Errorf("%s: got %v", tree, err)
		}
	}
}

func TestReplaceKeepsCountedLabels(t *testing.T) {
	former := map[string]string{"amd.com/gpu.vram": "64G", "beta.amd.com/gpu.vram.64G": "2", "amd.com/gpu.firmware": "1", "other": "x"}
	got := Replace(former, map[string]string{"amd.com/gpu.cu-count": "304"})
	want := map[string]string{"amd.com/gpu.cu-count": "304", "beta.amd.com/gpu.vram.64G": "2", "amd.com/gpu.firmware": "1", "other": "x"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}
