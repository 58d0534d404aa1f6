# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where NVIDIA's GPU Operator is not set up for a strategy, the plan refuses it with the switch to set."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.gpu_operator import GpuOperator, OperatorState
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import Request
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.operated_nodes import (
    ALL,
    CONFIG,
    SLICES,
    WHERE,
    operated,
    policy,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.sharing_nodes import (
    empty_node,
    node,
    plan_one,
)

NO_PLUGIN = ["driver", "toolkit", "mig_manager"]
NO_MANAGER = ["driver", "toolkit", "device_plugin", "feature_discovery"]
#: A node, the declared strategy, the ClusterPolicy, parameters of the host, and the end of the sentence that blocks it.
BLOCKED = {
    "no-config-map-named": (
        operated(),
        "time_slicing",
        policy(config_map=""),
        {},
        "set spec.devicePlugin.config.name of the ClusterPolicy",
    ),
    "no-config-map-for-mps": (
        operated(),
        "mps",
        policy(config_map=""),
        {},
        "set spec.devicePlugin.config.name of the ClusterPolicy",
    ),
    "config-map-missing": (
        operated(),
        "mps",
        policy(None),
        {},
        "create it (kubectl create configmap -n gpu-operator configs).",
    ),
    "config-map-missing-for-mig": (
        operated(),
        "mig",
        policy(None, default_config="any"),
        SLICES,
        "create it (kubectl create configmap -n gpu-operator configs).",
    ),
    "mps-with-mixed-mig": (
        operated(),
        "mps",
        policy(mig_strategy="mixed"),
        {},
        "set spec.mig.strategy of the ClusterPolicy to single,",
    ),
    "no-feature-discovery": (
        operated(parts=["device_plugin"]),
        "mps",
        policy(enabled=["device_plugin"]),
        {},
        "set spec.gfd.enabled of the ClusterPolicy to true, or set",
    ),
    "mig-manager-disabled": (
        operated(parts=NO_MANAGER),
        "mig",
        policy(enabled=NO_MANAGER),
        SLICES,
        "set spec.migManager.enabled of the ClusterPolicy to true",
    ),
    "mig-manager-off-the-node": (
        operated(parts=NO_MANAGER),
        "mig",
        policy(),
        SLICES,
        "remove the node's label nvidia.com/gpu.deploy.mig-manager,",
    ),
    "mig-strategy-none": (
        operated(),
        "mig",
        policy(mig_strategy="none"),
        SLICES,
        "is none; set it to single or mixed for all nodes",
    ),
    "mig-strategy-missing": (
        operated(),
        "mig",
        policy(mig_strategy=""),
        SLICES,
        "is not set; set it to single or mixed",
    ),
    "mig-strategy-differs": (
        operated(),
        "mig",
        policy(),
        {**SLICES, "request": Request(mig_strategy="mixed")},
        "spec.mig.strategy of the ClusterPolicy is single; set it to mixed for all nodes",
    ),
    "layout-instead-of-config": (
        operated(),
        "mig",
        policy(),
        {**SLICES, "mig_config": "", "has_layout": True},
        "set gpu_sharing_mig_config to the name of one of its configurations, such as all-1g.10gb, instead of gpu_sharing_mig_layout,",
    ),
    "mig-failed": (
        operated("mig", state="failed"),
        "mig",
        policy(),
        SLICES,
        "could not apply all-1g.10gb; read its log (kubectl logs -n gpu-operator -l app=nvidia-mig-manager), and to have it try again, remove",
    ),
    # Without its device plugin, its MIG manager would still undo what the role mig has done.
    "mig-of-this-collection": (
        node("exclusive", gpu_operator=NO_PLUGIN),
        "mig",
        policy(),
        {},
        "runs here, and would undo the MIG devices; set the node's label nvidia.com/gpu.deploy.mig-manager to false first.",
    ),
    "other-plugin": (
        {**empty_node(), "gpu_operator": list(ALL)},
        "gpushare",
        policy(),
        {},
        "deploys the device plugin here; set the node's label nvidia.com/gpu.deploy.device-plugin to false first.",
    ),
    "second-plugin": (
        operated(unmanaged_plugins=["gpu-operator/nvidia-device-plugin-daemonset", "kube-system/another"]),
        "exclusive",
        policy(),
        {},
        "kube-system/another registers the same GPUs as the device plugin of NVIDIA's GPU Operator; remove it first (the playbook remove_gpu_nodes",
    ),
    "second-plugin-with-an-undeclared-strategy": (
        operated(unmanaged_plugins=["kube-system/another"]),
        "",
        policy(),
        {},
        "kube-system/another registers the same GPUs",
    ),
    "label-of-others": ({**operated(), "labels": {CONFIG: "mine"}}, "mps", policy(), {}, "remove the label first"),
}


@pytest.mark.parametrize(("row", "strategy", "cluster", "parameters", "words"), BLOCKED.values(), ids=BLOCKED)
def test_strategy_that_the_operator_is_not_set_up_for_is_refused_with_its_switch(
    row, strategy, cluster, parameters, words
):
    [sentence] = plan_one(row, strategy, cluster=cluster, migrate=True, **parameters)["blockers"]
    assert words in sentence
    assert sentence.startswith(WHERE)
    assert sentence.endswith(".")
    # Where its device plugin is off, all is up to this collection.
    if "device_plugin" in row["gpu_operator"]:
        off = plan_one(
            {**row, "gpu_operator": ["driver", "toolkit"]}, strategy, cluster=cluster, migrate=True, **parameters
        )
        assert [each for each in off["blockers"] if "Operator" in each] == []


@pytest.mark.parametrize("strategy", [*STRATEGIES, ""])
def test_node_of_a_gpu_cluster_is_refused_with_the_label_that_keeps_its_dra_driver_off(strategy):
    cluster = {"operator": OperatorState(GpuOperator(enabled=("dra_driver",)))}
    parameters = SLICES if strategy == "mig" else {}
    row = {**empty_node(), "gpu_operator": ["dra_driver"]}
    [sentence] = plan_one(row, strategy, cluster=cluster, **parameters)["blockers"]
    assert sentence.startswith(
        f"{WHERE}the GPUCluster of NVIDIA's GPU Operator has a DRA driver allocate the GPUs here"
    )
    assert "nvidia.com/gpu.deploy.dra-driver to false first" in sentence
    assert plan_one({**row, "gpu_operator": []}, strategy, cluster=cluster, **parameters)["blockers"] == []
    # Where no device plugin comes, nothing allocates the GPUs again.
    assert plan_one(row, strategy, cluster=cluster, **{**parameters, "gpus": 0})["blockers"] == []
