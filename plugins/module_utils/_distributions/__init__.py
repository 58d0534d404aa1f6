# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Kubernetes distribution a host has, and which containerd that brings. `rows` is the catalogue."""

from __future__ import annotations

import glob
import os.path
import typing as t

from .rows import DEFAULT, DISTRIBUTIONS, HIDDEN, Distribution, OwnContainerd, OwnKubelet, OwnScheduler

__all__ = ["DEFAULT", "DISTRIBUTIONS", "HIDDEN", "Distribution", "OwnContainerd", "OwnKubelet", "OwnScheduler"]

#: What a parameter has where the host's own containerd is meant; it means the distribution's where that brings one.
USUAL_CONFIG = "/etc/containerd/config.toml"
USUAL_SOCKET = "/run/containerd/containerd.sock"
USUAL_SERVICE = "containerd"


def detect(exists: t.Callable[[str], bool]) -> str | None:
    """Return the name of the distribution whose marker is there; None if there is no marker."""
    return next((row.name for row in DISTRIBUTIONS if row.marker and exists(row.marker)), None)


def named(name: str | None) -> Distribution:
    """Return the row of this name, and one with empty fields for a name that is in none."""
    return next((row for row in DISTRIBUTIONS if row.name == name), Distribution(""))


def find_unit(own: OwnContainerd, exists: t.Callable[[str], bool] = os.path.exists) -> str:
    """Return the systemd unit that runs the containerd *own* on this host."""
    return next(unit for unit, marker in own.units if not marker or exists(marker))


def list_kubelet_units(name: str | None) -> list[str]:
    """Return the systemd units of which one runs the kubelet of a host with the distribution *name*."""
    return [f"{unit}.service" for unit in named(name).kubelet_units]


def find_program(own: OwnContainerd, search: t.Callable[[str], t.Sequence[str]] = glob.glob) -> str | None:
    """Return the path of the program of the containerd *own*, None before the distribution has unpacked it."""
    return next((path for pattern in own.programs for path in sorted(search(pattern))), None)


def describe_own(
    name: str | None,
    exists: t.Callable[[str], bool] = os.path.exists,
    search: t.Callable[[str], t.Sequence[str]] = glob.glob,
) -> dict[str, t.Any]:
    """Return {config, socket, service, program (None: not there yet), reloads} of the containerd that the distribution *name* brings.

    Empty if it brings none.
    """
    own = named(name).own_containerd
    if own is None:
        return {}
    return {
        "config": own.config,
        "socket": own.socket,
        "service": find_unit(own, exists),
        "program": find_program(own, search),
        "reloads": own.reloads,
    }
