# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes of NVIDIA's GPU Operator and its ClusterPolicy, for the tests of the plan."""

from __future__ import annotations

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.gpu_operator import (
    PARTS,
    GpuOperator,
    OperatorState,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import Request
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.sharing_nodes import (
    config_of,
    node,
)

CONFIG, MIG, STATE = "nvidia.com/device-plugin.config", "nvidia.com/mig.config", "nvidia.com/mig.config.state"
ALL = tuple(PARTS)
SLICES = {"mig_config": "all-1g.10gb", "has_layout": False, "request": Request()}
CONFIGS = tuple(map(config_of, ("time_slicing", "mps")))
WHERE = "Host h1 (node n1): "


def policy(configs=CONFIGS, names=(), **more):
    """Parameters of the cluster with an operator, whose ConfigMap has these configurations of this collection."""
    read = GpuOperator(**{"config_map": "configs", "mig_strategy": "single", **more})
    known = None if configs is None else {config.name: config.document for config in configs}
    return {"operator": OperatorState(read, known, dict(names))}


def operated(strategy="exclusive", parts=ALL, mig="", state="success", **more):
    """A node of the operator with a strategy of its device plugin, and a configuration of its MIG manager."""
    row = node("exclusive" if strategy == "mig" else strategy, **more)
    config = {} if strategy == "mig" else row["labels"]
    mig = mig or ("all-1g.10gb" if strategy == "mig" else "all-disabled")
    return {**row, "gpu_operator": list(parts), "labels": {**config, MIG: mig, STATE: state}}
