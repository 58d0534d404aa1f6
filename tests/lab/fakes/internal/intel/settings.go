// Copyright (c) 2026, the gpu.kubernetes authors
// SPDX-License-Identifier: GPL-3.0-or-later

package intel

import (
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gpu.kubernetes.lab/fakes/internal/program"
)

// Settings are the options that have an effect here.
type Settings struct {
	Prefix            string
	Shared            int
	Policy            string
	Monitoring        bool
	MonitoringMode    string
	ByPath            string
	AllowIDs, DenyIDs []string
}

// Values of options.
const (
	none     = "none"
	single   = "single"
	split    = "split"
	balanced = "balanced"
	packed   = "packed"
	all      = "all"
)

var isID = regexp.MustCompile(`^0x[0-9a-f]{4}$`)

// Parse reads the command line. What the fake does not implement is refused.
func Parse(arguments []string) (Settings, error) {
	chosen := Settings{Policy: none, MonitoringMode: single, ByPath: single}
	wsl, health, xpumd := false, false, ""
	err := program.Parse(arguments, func(set *flag.FlagSet) {
		set.StringVar(&chosen.Prefix, "prefix", "", "folder of sysfs and devfs")
		set.IntVar(&chosen.Shared, "shared-dev-num", 1, "containers that share a GPU")
		program.Choice(set, "allocation-policy", &chosen.Policy, none, balanced, packed)
		set.BoolVar(&chosen.Monitoring, "enable-monitoring", false, "offer all GPUs as one device")
		program.Choice(set, "monitoring-mode", &chosen.MonitoringMode, single, split)
		program.Choice(set, "bypath", &chosen.ByPath, single, none, all)
		set.Func("allow-ids", "IDs of the only devices to offer", ids(&chosen.AllowIDs))
		set.Func("deny-ids", "IDs of devices not to offer", ids(&chosen.DenyIDs))
		set.BoolVar(&health, "health-management", false, "without effect")
		set.StringVar(&xpumd, "xpumd-endpoint", "", "without effect")
		for _, name := range []string{"temp-limit", "gpu-temp-limit", "memory-temp-limit"} {
			set.Int(name, 100, "without effect")
		}
		set.BoolVar(&wsl, "wsl", false, "not implemented")
	})
	switch {
	case err != nil:
	case wsl:
		err = errors.New("wsl is not implemented by this fake")
	case chosen.Shared < 1:
		err = errors.New("shared-dev-num has to be at least 1")
	case len(chosen.AllowIDs) > 0 && len(chosen.DenyIDs) > 0:
		err = errors.New("allow-ids and deny-ids exclude each other")
	case health && xpumd != "":
		err = errors.New("health-management and xpumd-endpoint exclude each other")
	}
	return chosen, err
}

func ids(chosen *[]string) func(string) error {
	return func(value string) error {
		*chosen = strings.Split(strings.ToLower(value), ",")
		if !slices.ContainsFunc(*chosen, func(id string) bool { return !isID.MatchString(id) }) {
			return nil
		}
		return fmt.Errorf("%q is not a list such as 0x56c0,0x56c1", value)
	}
}
