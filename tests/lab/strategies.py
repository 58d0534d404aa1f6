# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the nodes of Molecule's lab declare in the tests of the scenarios sharing and nvidia_sharing, and how playbooks get it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

FIRST, SECOND = "molecule-worker-1", "molecule-worker-2"
GPU, LABEL = "nvidia.com/gpu", "nvidia.com/device-plugin.config"
PLUGIN = "name=nvidia-device-plugin-ds"
Run = Callable[..., tuple[int, int, str]]


def by_node(first: dict[str, Any], second: dict[str, Any]) -> dict[str, str]:
    """Variables for all hosts whose values depend on the host."""
    hosts = {FIRST: first, SECOND: second}
    names = {name for variables in hosts.values() for name in variables}
    return {
        name: f"{{{{ { ({host: variables[name] for host, variables in hosts.items() if name in variables})!r}[inventory_hostname] }}}}"
        for name in sorted(names)
    }


def write_words(first: dict[str, Any], second: dict[str, Any], **more: Any) -> tuple[str, str]:
    """Options of ansible-playbook with variables by node."""
    return "-e", json.dumps({**by_node(first, second), **more})


def variables(
    strategy: str, replicas: int = 0, rename: bool = False, mig: str = "", layout: Any = ()
) -> dict[str, Any]:
    """All that a test sets for a node."""
    return {
        "gpu_sharing_strategy": strategy,
        "gpu_sharing_replicas": replicas,
        "gpu_sharing_rename": rename,
        "gpu_sharing_mig_strategy": mig,
        "gpu_sharing_mig_layout": list(layout),
    }


WHOLE = variables("exclusive")
SLICED = variables("time_slicing", 4)
SINGLE = variables("mig", mig="single", layout=[{"gpus": "all", "profiles": {"1g.5gb": 7}}])
RESET = {"gpu_sharing_allow_gpu_reset": True}


def list_plugins(api: Any, label: str = PLUGIN) -> dict[str, str]:
    """The pod of the device plugin, or with *label* of another DaemonSet, on each node."""
    pods = api.list_namespaced_pod("kube-system", label_selector=label).items
    return {pod.spec.node_name: pod.metadata.name for pod in pods}
