// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package nvml

import "testing"

func TestProfileNamesAreThoseOfNVIDIA(t *testing.T) {
	a100, h100 := uint64(40960)<<20, uint64(81559)<<20
	cases := map[string]struct {
		profile, g, c int
		memoryMiB     uint64
		gpuBytes      uint64
	}{
		"1g.5gb":         {0, 1, 1, 4864, a100},
		"1g.5gb+me":      {7, 1, 1, 4864, a100},
		"1g.10gb":        {9, 1, 1, 9856, a100},
		"3g.20gb":        {2, 3, 3, 20096, a100},
		"1c.3g.20gb":     {2, 3, 1, 20096, a100},
		"7g.40gb":        {4, 7, 7, 40192, a100},
		"2g.20gb":        {1, 2, 2, 19968, h100},
		"1g.10gb+gfx":    {10, 1, 1, 9856, h100},
		"2g.20gb-me":     {14, 2, 2, 19968, h100},
		"1g.10gb+me.all": {15, 1, 1, 9856, h100},
	}
	for want, test := range cases {
		attributes := Attributes{MemoryMiB: test.memoryMiB}
		attributes.Counts[gpuSlices], attributes.Counts[computeSlices] = uint(test.g), uint(test.c)
		if got := profileName(test.profile, attributes, test.gpuBytes); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if whole := (MIG{Attributes: attributes}).FillsInstance(); whole != (test.g == test.c) {
			t.Errorf("%s fills its GPU instance: %t", want, whole)
		}
	}
}
