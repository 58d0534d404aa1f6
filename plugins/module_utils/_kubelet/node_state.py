# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was read of a node, and whether its kubelet can be configured by a file."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._config.errors import ConfigError
from .._config.yaml_nodes import Syntax
from .._probe.kubelet import KUBESPRAY_CONFIG
from .command import Flag

_ELSEWHERE = {
    "k3s": "kubelet-arg in /etc/rancher/k3s/config.yaml, as in kubelet-arg: ['kube-reserved=cpu=500m,memory=1Gi']",
    "rke2": "kubelet-arg in /etc/rancher/rke2/config.yaml, as in kubelet-arg: ['kube-reserved=cpu=500m,memory=1Gi']",
    "k0s": "a profile among spec.workerProfiles of k0s.yaml, with which the worker is started (--profile)",
    "MicroK8s": "flags in /var/snap/microk8s/current/args/kubelet, as in --kube-reserved=cpu=500m,memory=1Gi",
}


@dataclass(frozen=True)
class NodeState:
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
        """Return the drop-ins as trees; raises ConfigError for one that cannot be read."""
        return {path: syntax.read(data, path) for path, data in self.drop_ins.items()}


def require_config(node: NodeState, given: bool) -> bytes:
    """Return the configuration; raises ConfigError where the kubelet reads none, or another one. *given*: the path was given."""
    if node.distribution in _ELSEWHERE and not given:
        raise ConfigError(
            f"The kubelet is a part of {node.distribution}, which gives it its configuration: use {_ELSEWHERE[node.distribution]}."
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


def warn_rewritten(node: NodeState) -> list[str]:
    """Return a warning for a file that another program is known to rewrite."""
    if node.path != KUBESPRAY_CONFIG:
        return []
    warning = (
        f"{node.path} looks like kubespray's: set the same in its inventory (kube_reserved with kube_cpu_reserved, kube_memory_reserved …,"
        " system_reserved and its variables, eviction_hard), or its next run overwrites it."
    )
    return [warning]
