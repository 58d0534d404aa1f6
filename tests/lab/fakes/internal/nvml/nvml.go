// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package nvml reads the GPUs of this machine through libnvidia-ml.so.1, which is loaded at run time.
package nvml

/*
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "binding.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"
)

const soname = "libnvidia-ml.so.1"

// libraryFolders are the places below a driver root where distributions keep the library.
var libraryFolders = []string{
	"usr/lib64", "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "lib64", "lib/x86_64-linux-gnu",
	"lib/aarch64-linux-gnu", "usr/lib", "lib",
}

// GPU is one physical GPU. Index is NVML's, Minor is the N of /dev/nvidiaN (-1: unknown), MemoryBytes its total memory
// (0: unknown). Fault is empty for a GPU that answers and NVML's own words otherwise; UUID is empty when not even that could be read.
type GPU struct {
	Index       int
	Minor       int
	UUID        string
	Name        string
	MemoryBytes uint64
	// Capability is the compute capability of CUDA, {8, 0}.
	Capability [2]int
	// MIGEnabled is the MIG mode as it is now; MIGs are the GPU's MIG devices in NVML's order.
	MIGEnabled bool
	MIGs       []MIG
	Fault      string
}

// Library is a loaded NVML. It is not initialised between two reads, so that each read sees the driver as it is now.
// It is not safe for concurrent use.
type Library struct {
	Path string
}

// Open loads NVML by its name from the search path of the dynamic loader, else from below driverRoot.
func Open(driverRoot string) (*Library, error) {
	return openFirst(candidates(driverRoot))
}

func candidates(driverRoot string) []string {
	found := []string{soname}
	for _, folder := range libraryFolders {
		path := filepath.Join(driverRoot, folder, soname)
		if _, err := os.Stat(path); driverRoot != "" && err == nil {
			found = append(found, path)
		}
	}
	return found
}

func openFirst(paths []string) (*Library, error) {
	var failures []error
	for _, path := range paths {
		if err := load(path); err != nil {
			failures = append(failures, err)
			continue
		}
		return &Library{Path: path}, nil
	}
	return nil, fmt.Errorf("NVML cannot be loaded: %w", errors.Join(failures...))
}

func load(path string) error {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var text [512]C.char
	if C.fake_open(name, &text[0], C.size_t(len(text))) != 0 {
		return errors.New(C.GoString(&text[0]))
	}
	return nil
}

// Read initialises NVML, lists the driver's version and all GPUs in NVML's order, and shuts NVML down again.
// A GPU that does not answer is listed with its fault; an error means that NVML itself does not answer.
func (l *Library) Read() (driver string, gpus []GPU, err error) {
	if code := C.fake_init(); code != 0 {
		return "", nil, failure("nvmlInit", code)
	}
	defer C.fake_shutdown()
	var version [C.FAKE_TEXT]C.char
	if code := C.fake_driver_version(&version[0], C.FAKE_TEXT); code != 0 {
		return "", nil, failure("nvmlSystemGetDriverVersion", code)
	}
	var count C.uint
	if code := C.fake_count(&count); code != 0 {
		return "", nil, failure("nvmlDeviceGetCount", code)
	}
	for index := C.uint(0); index < count; index++ {
		gpus = append(gpus, readGPU(index))
	}
	return C.GoString(&version[0]), gpus, nil
}

func readGPU(index C.uint) GPU {
	var raw C.struct_fake_gpu
	C.fake_read(index, &raw)
	gpu := GPU{
		Index:       int(index),
		Minor:       int(raw.minor),
		UUID:        C.GoString(&raw.uuid[0]),
		Name:        C.GoString(&raw.name[0]),
		MemoryBytes: uint64(raw.memory),
	}
	gpu.Capability = [2]int{int(raw.major_capability), int(raw.minor_capability)}
	gpu.MIGEnabled = raw.mig_enabled != 0
	if raw.fault != 0 {
		gpu.Fault = C.GoString(C.fake_error(raw.fault))
		return gpu
	}
	for number := C.uint(0); number < raw.mig_count; number++ {
		mig, code := readMIG(index, number, gpu.MemoryBytes)
		switch code {
		case 0:
			gpu.MIGs = append(gpu.MIGs, mig)
		case C.FAKE_NOT_FOUND, C.FAKE_INVALID_ARGUMENT: // an index without a MIG device
		default:
			gpu.Fault = failure("reading MIG device "+strconv.Itoa(int(number)), code).Error()
		}
	}
	return gpu
}

func failure(function string, code C.int) error {
	return fmt.Errorf("%s failed: %s (code %d)", function, C.GoString(C.fake_error(code)), int(code))
}
