// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package nvml

/*
#include "binding.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math"
)

// Compute modes of NVML.
const (
	ComputeDefault          = 0
	ComputeExclusiveProcess = 3
)

// Positions in Attributes.Counts.
const (
	gpuSlices     = 6
	computeSlices = 7
)

// Attributes are all amounts that NVML reports of a MIG device. Two devices are of one type if they are equal.
type Attributes struct {
	Counts    [8]uint
	MemoryMiB uint64
}

// MIG is one MIG device. Index is NVML's, on its GPU. Profile is its name as nvidia-smi prints it, 1g.10gb or 1c.3g.40gb.
type MIG struct {
	Index           int
	UUID            string
	GPUInstance     int
	ComputeInstance int
	Profile         string
	Attributes      Attributes
}

// FillsInstance tells whether the MIG device has all compute slices of its GPU instance (1g.10gb, and not 1c.3g.40gb).
func (m MIG) FillsInstance() bool {
	return m.Attributes.Counts[gpuSlices] == m.Attributes.Counts[computeSlices]
}

// suffixes are the attributes in a profile's name by NVML's index of the profile.
var suffixes = map[int]string{
	7: "+me", 8: "+me", 10: "+gfx", 11: "+gfx", 12: "+gfx", 13: "-me", 14: "-me", 15: "+me.all", 16: "+me.all", 17: "+gfx",
}

func readMIG(gpu, number C.uint, gpuBytes uint64) (MIG, C.int) {
	var raw C.struct_fake_mig
	if code := C.fake_read_mig(gpu, number, &raw); code != 0 {
		return MIG{}, code
	}
	found := MIG{
		Index:           int(number),
		UUID:            C.GoString(&raw.uuid[0]),
		GPUInstance:     int(raw.gpu_instance),
		ComputeInstance: int(raw.compute_instance),
		Attributes:      Attributes{MemoryMiB: uint64(raw.memory_mib)},
	}
	for n := range found.Attributes.Counts {
		found.Attributes.Counts[n] = uint(raw.counts[n])
	}
	found.Profile = profileName(int(raw.profile), found.Attributes, gpuBytes)
	return found, 0
}

// profileName is the name that NVIDIA's libraries compute: the memory is the GPU's, in the number of eighths that the device has, rounded up.
func profileName(profile int, attributes Attributes, gpuBytes uint64) string {
	const mib, gib = 1 << 20, 1 << 30
	eighths := math.Ceil(float64(attributes.MemoryMiB) * mib / float64(gpuBytes) * 8)
	memory := math.Round(eighths / 8 * float64((gpuBytes+gib-1)/gib))
	g, c := attributes.Counts[gpuSlices], attributes.Counts[computeSlices]
	name := fmt.Sprintf("%dg.%.0fgb%s", g, memory, suffixes[profile])
	if c != g {
		name = fmt.Sprintf("%dc.%s", c, name)
	}
	return name
}

// ErrNoFunction means that the library is too old for a function.
var ErrNoFunction = errors.New("the NVML library does not have this function")

// SetComputeMode sets the compute mode of the GPU with NVML's index, as `nvidia-smi -i INDEX -c MODE` does.
func (l *Library) SetComputeMode(index, mode int) error {
	if code := C.fake_init(); code != 0 {
		return failure("nvmlInit", code)
	}
	defer C.fake_shutdown()
	switch code := C.fake_set_compute_mode(C.uint(index), C.uint(mode)); code {
	case 0:
		return nil
	case C.FAKE_FUNCTION_NOT_FOUND:
		return fmt.Errorf("nvmlDeviceSetComputeMode: %w", ErrNoFunction)
	default:
		return failure("nvmlDeviceSetComputeMode", code)
	}
}
