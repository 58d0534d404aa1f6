// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package mps

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// MountShm mounts a tmpfs of half of the memory for the daemons' shared memory, over the folder below root. An older one is removed first.
func MountShm(root string) error {
	folder := ShmDir(root)
	err := syscall.Unmount(folder, 0)
	if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOENT) { // it is no mount point, or absent
		return fmt.Errorf("error unmounting %s: %w", folder, err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	memory, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return err
	}
	const flags = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_NOEXEC | syscall.MS_RELATIME
	if err := syscall.Mount("shm", folder, "tmpfs", flags, "size="+shmSize(string(memory))); err != nil {
		return fmt.Errorf("error mounting %s as tmpfs: %w", folder, err)
	}
	return nil
}

// shmSize is half of MemTotal in the text of /proc/meminfo, as an option of tmpfs.
func shmSize(memory string) string {
	for _, line := range strings.Split(memory, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemTotal:" {
			if total, err := strconv.Atoi(fields[1]); err == nil {
				return fmt.Sprintf("%d%c", total/2, fields[2][0])
			}
		}
	}
	return "65536k"
}
