// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

// Package intel finds Intel's GPUs and offers them as Intel's device plugin does.
package intel

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"gpu.kubernetes.lab/fakes/internal/sysfs"
)

// Card is a GPU that the plugin offers.
type Card struct {
	// Name is that of its device node, "card0"; Address that on the PCI bus; Driver is i915 or xe.
	Name, Render, Address, Driver string
	NUMA                          int64
}

const vendor = "0x8086"

var isCard = regexp.MustCompile(`^card\d+$`)

// Scan lists the cards below prefix, without those that the settings leave out.
func Scan(settings Settings, logger *log.Logger) ([]Card, error) {
	folder := filepath.Join(settings.Prefix, "/sys/class/drm")
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("can't read sysfs folder: %w", err)
	}
	var cards []Card
	for _, entry := range entries {
		if !isCard.MatchString(entry.Name()) {
			continue
		}
		device := filepath.Join(folder, entry.Name(), "device")
		if reason := settings.leavesOut(device); reason != "" {
			logger.Printf("%s is left out: %s", entry.Name(), reason)
			continue
		}
		card := Card{Name: entry.Name(), Driver: base(filepath.Join(device, "driver")), NUMA: -1}
		if card.Driver != "i915" && card.Driver != "xe" {
			logger.Printf("%s is left out: its driver is %q", card.Name, card.Driver)
			continue
		}
		_, card.Render = sysfs.Nodes(device)
		if numa, readable := sysfs.Number(filepath.Join(device, "numa_node")); readable {
			card.NUMA = numa
		}
		card.Address = base(device)
		cards = append(cards, card)
	}
	return cards, nil
}

// leavesOut is the reason why a device is not offered, or empty.
func (s Settings) leavesOut(device string) string {
	if found := sysfs.Line(filepath.Join(device, "vendor")); found != vendor {
		return fmt.Sprintf("its vendor is %q", found)
	}
	if functions, readable := sysfs.Number(filepath.Join(device, "sriov_numvfs")); readable && functions > 0 {
		return "it has virtual functions"
	}
	id := sysfs.Line(filepath.Join(device, "device"))
	if (len(s.AllowIDs) > 0 && !slices.Contains(s.AllowIDs, id)) || slices.Contains(s.DenyIDs, id) {
		return fmt.Sprintf("its ID %s is not allowed", id)
	}
	return ""
}

// base is the last part of the path to which a link leads.
func base(link string) string {
	target, err := filepath.EvalSymlinks(link)
	if err != nil {
		return ""
	}
	return filepath.Base(target)
}
