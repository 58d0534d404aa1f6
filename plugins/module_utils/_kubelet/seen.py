# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was read of a node, and whether its kubelet can be configured by a file. Private to this collection."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._distributions import DISTRIBUTIONS, named
from .._yaml_files.errors import EditError
from .._yaml_files.scalars import Syntax
from .command import Flag


@dataclass(frozen=True)
class Seen:
    """The configuration (None: no file), the kubelet's flags (None: no kubelet was found), and drop-ins by path, in the kubelet's order.

    *named* is the file that --config names, *is_named* whether that is the one at *path*. *processes* is how many the node can have.
    """

    path: str
    config: bytes | None
    flags: tuple[Flag, ...] | None = None
    named: str | None = None
    is_named: bool = True
    drop_ins: t.Mapping[str, bytes] = field(default_factory=dict)
    processes: int | None = None
    distribution: str | None = None

    def trees(self, syntax: Syntax) -> dict[str, t.Any]:
        """Return the drop-ins as trees; raises EditError for one that cannot be read."""
        return {path: syntax.read(data, path) for path, data in self.drop_ins.items()}


def usable(seen: Seen, given: bool) -> bytes:
    """Return the configuration; raises EditError where the kubelet reads none, or another one. *given*: the path was."""
    hint = named(seen.distribution).kubelet_hint
    if hint and not given:
        raise EditError(f"The kubelet is a part of {seen.distribution}, which gives it its configuration: use {hint}.")
    if seen.flags is not None and seen.named is None:
        raise EditError(
            f"The kubelet is started without --config, so that it would not read {seen.path}: have it started with --config={seen.path}, and"
            " run again."
        )
    if not seen.is_named:
        raise EditError(f"The kubelet reads {seen.named} and not {seen.path}: leave path out, or give that one.")
    if seen.config is None:
        raise EditError(
            f"There is no configuration of the kubelet at {seen.path}: join the node to its cluster first, or give path where it is elsewhere."
        )
    return seen.config


def advice(seen: Seen) -> list[str]:
    """Return a warning if each run of the cluster's installer overwrites the file."""
    return [
        f"{seen.path} looks like {row.name}'s: set the same in its inventory ({row.kubelet_variables}), or its next run overwrites it."
        for row in DISTRIBUTIONS
        if row.kubelet_variables and row.kubelet_config == seen.path
    ]
