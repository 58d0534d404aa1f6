# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet that the Kubernetes distribution starts itself: its configuration is drop-ins alone, of which one is written, and flags.

A drop-in without settings stands for none while a change is planned, so that all else is planned as for any other file.
Source of the order of drop-ins: cmd/kubelet/app/server.go (mergeKubeletConfigurations) of Kubernetes.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import replace

from .._config.controller import Plan, Step
from .._config.yaml_nodes import Ambiguous
from .._distributions import OwnKubelet
from .._distributions.settings import merge_settings, to_list
from . import command
from .configuration import API_VERSION, KIND

BLANK = f"apiVersion: {API_VERSION}\nkind: {KIND}\n".encode()


def read_flags(row: OwnKubelet, trees: t.Iterable[t.Any], started_with: str) -> tuple[command.Flag, ...]:
    """Return the flags that the distribution's settings give the kubelet: *trees* in their order, unless the command line has the key."""
    given: list[t.Any] = re.findall(rf"--{re.escape(row.key)}[= ]([^\s;]+)", started_with)
    source = f"{row.key} on the command line of the unit"
    if not given:
        given = to_list(merge_settings(trees).get(row.key, []))
        source = f"{row.key} in {row.settings_folder[: -len('.d')]} or {row.settings_folder}"
    texts = (each.text if isinstance(each, Ambiguous) else str(each) for each in given)
    return tuple(command.flags(command.Word(f"--{text.lstrip('-')}", source) for text in texts))


def get_position(path: str) -> list[str]:
    """Return what sorts drop-ins as the kubelet reads them: folder by folder, by name."""
    return path.split("/")


def drop_blank(plan: Plan, path: str, config: bytes | None, before: bytes | None) -> Plan:
    """Return *plan* with no file for a blank one. *config* is the file as it was planned with, and *before* the one that is there."""
    after = plan.steps[0].after if plan.steps else config
    after = None if after == BLANK else after
    return replace(plan, steps=() if after == before else (Step(path, before, after),))
