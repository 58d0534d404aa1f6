# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was read of a node, and whether its kubelet can be configured by a file."""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass, field

from .._config.errors import ConfigError
from .._config.yaml_nodes import Syntax
from .._distributions import DISTRIBUTIONS, OwnKubelet, named
from .._edge import get_framework
from .command import Flag
from .configuration import THRESHOLDS, Files, to_flag
from .own import get_position


@dataclass(frozen=True)
class NodeState:
    """The configuration (None: no file), the kubelet's flags (None: no kubelet was found), and drop-ins by path, in the kubelet's order.

    *named* is the file that --config names, *is_named* whether that is the one at *path*. *processes* is how many the node can have.
    *agent* is the edge framework whose agent replaces the kubelet. With *own*, the kubelet has no configuration but drop-ins: the file at *path*
    is one of them, and *drop_ins* are the others.
    """

    path: str
    config: bytes | None
    flags: tuple[Flag, ...] | None = None
    named: str | None = None
    is_named: bool = True
    drop_ins: t.Mapping[str, bytes] = field(default_factory=dict)
    processes: int | None = None
    distribution: str | None = None
    agent: str = ""
    own: OwnKubelet | None = None

    def trees(self, syntax: Syntax) -> dict[str, t.Any]:
        """Return the drop-ins as trees; raises ConfigError for one that cannot be read."""
        return {path: syntax.read(data, path) for path, data in self.drop_ins.items()}

    def list_later(self, drop_ins: Files) -> Files:
        """Return those of the *drop_ins* that the kubelet reads after the file."""
        if self.own is None:
            return drop_ins
        return {path: tree for path, tree in drop_ins.items() if get_position(path) > get_position(self.path)}

    def stack(self, tree: t.Any, drop_ins: Files) -> tuple[t.Any, Files]:
        """Return the kubelet's main file and its drop-ins, in its order, where the file is as *tree*."""
        if self.own is None:
            return tree, drop_ins
        every = {**drop_ins, self.path: tree}
        # Without a main file, the kubelet has none of its default thresholds.
        return {"evictionHard": {}}, {path: every[path] for path in sorted(every, key=get_position)}


def require_config(node: NodeState, given: bool, values: t.Mapping[str, t.Any]) -> bytes:
    """Return the configuration; raises ConfigError where the kubelet reads none, or another one.

    *given*: the path was given. *values* are the requested settings, for the error.
    """
    edge = get_framework(node.agent)
    if edge.kubelet_hint and not given:
        raise ConfigError(f"{edge.title} replaces the kubelet by an agent of its own: use {edge.kubelet_hint}.")
    row = named(node.distribution)
    if row.kubelet_hint and not given and node.own is None:
        raise ConfigError(
            f"The kubelet is a part of {node.distribution}, which gives it its configuration: use {row.kubelet_hint}:"
            f" {format_settings(row.kubelet_form, values)}"
        )
    if node.flags is not None and node.named is None:
        raise ConfigError(
            f"The kubelet is started without --config, so that it would not read {node.path}: start it with --config={node.path}, and"
            " run again."
        )
    if not node.is_named:
        raise ConfigError(f"The kubelet reads {node.named} and not {node.path}: leave path out, or give that one.")
    if node.config is None:
        raise ConfigError(
            f"There is no configuration of the kubelet at {node.path}: join the node to its cluster first, or give path where it is elsewhere."
        )
    return node.config


def format_settings(form: str, values: t.Mapping[str, t.Any]) -> str:
    """Return the settings as a distribution reads them: a list of `arguments`, lines of `flags`, or a `profile`."""
    if form == "profile":
        return json.dumps({"spec": {"workerProfiles": [{"name": "gpu", "values": values}]}})
    words = [f"{to_flag(name)}={_to_value(name, value)}" for name, value in values.items()]
    return json.dumps({"kubelet-arg+": words}) if form == "arguments" else " ".join(f"--{word}" for word in words)


def _to_value(name: str, value: t.Any) -> str:
    """Return a setting as the kubelet's flag has it."""
    if isinstance(value, dict):
        return ",".join(f"{key}{'<' if name in THRESHOLDS[:2] else '='}{each}" for key, each in value.items())
    return ",".join(map(str, value)) if isinstance(value, list) else json.dumps(value).strip('"')


def warn_rewritten(node: NodeState) -> list[str]:
    """Return a warning if each run of the cluster's installer overwrites the file."""
    return [
        f"{node.path} looks like {row.name}'s: set the same in its inventory ({row.kubelet_variables}), or its next run overwrites it."
        for row in DISTRIBUTIONS
        if row.kubelet_variables and row.kubelet_config == node.path
    ]
