# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans of containerd's configuration, and access to their parts."""

from __future__ import annotations

import copy
import typing as t

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.tree import get, is_same
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.plan import (
    ContainerdPlan,
    Request,
    plan,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import Release
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.samples import V2, V3

BINARY = "/usr/bin/nvidia-container-runtime"
RUNC: dict[str, t.Any] = {"runtime_type": "io.containerd.runc.v2"}
KATA: dict[str, t.Any] = {"runtime_type": "io.containerd.kata.v2", "options": {"ConfigPath": "/opt/kata.toml"}}


def tree_of(version: int, runtimes: dict[str, t.Any], **containerd: t.Any) -> dict[str, t.Any]:
    plugin = V2 if version == 2 else V3
    return {"version": version, "plugins": {plugin: {"containerd": {**containerd, "runtimes": runtimes}}}}


def decide(tree: dict[str, t.Any], release: str = "", **requested: t.Any) -> ContainerdPlan:
    known = Release(*map(int, release.split("."))) if release else None
    before = copy.deepcopy(tree)
    result = plan(tree, Request(path="/etc/c.toml", release=known, **requested))
    assert is_same(tree, before), "the input was changed"
    again = plan(result.target, Request(path="/etc/c.toml", release=known, **requested))
    assert is_same(again.target, result.target), "the second run changes something"
    return result


def runtime(result: ContainerdPlan, name: str = "nvidia") -> t.Any:
    return get(result.target, (*result.schema.runtimes, name))


def default(result: ContainerdPlan) -> t.Any:
    return get(result.target, (*result.schema.containerd, "default_runtime_name"))
