// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package sysfs reads small files and folders of the kernel's sysfs, or of a fake tree.
package sysfs

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Line is the content of a file without white space around it; an unreadable file is empty.
func Line(path string) string {
	content, _ := os.ReadFile(path)
	return strings.TrimSpace(string(content))
}

// Number is the number in a file; false means that it cannot be read.
func Number(path string) (int64, bool) {
	value, err := strconv.ParseInt(Line(path), 0, 64)
	return value, err == nil
}

// Properties are the lines "name number" of a file.
func Properties(path string) map[string]int64 {
	found := map[string]int64{}
	for _, line := range strings.Split(Line(path), "\n") {
		name, text, _ := strings.Cut(line, " ")
		if value, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil {
			found[name] = value
		}
	}
	return found
}

// Exists tells whether there is a file or folder.
func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Nodes are the names of the card and of the render node of a device ("card0", "renderD128"); a missing one is empty.
func Nodes(device string) (card, render string) {
	entries, _ := os.ReadDir(filepath.Join(device, "drm"))
	for _, entry := range entries {
		switch name := entry.Name(); {
		case strings.HasPrefix(name, "card"):
			card = name
		case strings.HasPrefix(name, "renderD"):
			render = name
		}
	}
	return card, render
}
