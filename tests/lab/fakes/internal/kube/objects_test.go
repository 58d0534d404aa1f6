// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package kube

import (
	"encoding/json"
	"testing"
)

// The nodes of the scenarios report small numbers only; a node in MiB reports 80000 as "80k".
func TestQuantities(t *testing.T) {
	for text, want := range map[string]int64{`"320"`: 320, `16`: 16, `"80k"`: 80000, `"250m"`: 1, `"1.5Gi"`: 3 << 29, `"8e4"`: 80000} {
		var got Quantity
		if err := json.Unmarshal([]byte(text), &got); err != nil || int64(got) != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
	var got Quantity
	if err := json.Unmarshal([]byte(`"3 GiB"`), &got); err == nil {
		t.Errorf("got %d", got)
	}
}
