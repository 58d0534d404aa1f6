# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NVIDIA's GPU Operator runs on a node follows from its ClusterPolicy and the node's labels."""

from __future__ import annotations

import pytest
from fakes import gpu_operator as fake

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.gpu_operator import (
    PARTS,
    PLUGIN_LABELS,
    GpuOperator,
    has_operator_label,
    read_gpu_cluster,
    read_operator,
)

DEPLOY = "nvidia.com/gpu.deploy."
ALL = list(PARTS)
PLUGIN = {
    "enabled": True,
    "config": {"name": "configs", "default": "any"},
}
SPEC = {"devicePlugin": PLUGIN, "driver": {"enabled": False}, "mig": {"strategy": "single"}}

#: ClusterPolicies, and what is read from them.
POLICIES = {
    "no-operator": ([], None),
    # The operator accepts one ClusterPolicy.
    "ignored": ([{"status": {"state": "ignored"}}], None),
    "second-ignored": (
        [{"spec": SPEC, "status": {"state": "ignored"}}, {"spec": {"toolkit": {"enabled": False}}}],
        GpuOperator(enabled=("driver", "device_plugin", "feature_discovery", "mig_manager")),
    ),
    "empty": ([{"spec": {}}], GpuOperator()),
    "of-another-form": ([{"spec": {"driver": None, "devicePlugin": {"config": None}}, "status": None}], GpuOperator()),
    "complete": (
        [{"spec": SPEC, "status": {"state": "ready", "namespace": "nvidia"}}],
        GpuOperator(
            "nvidia", ("toolkit", "device_plugin", "feature_discovery", "mig_manager"), "configs", "any", "single"
        ),
    ),
}


@pytest.mark.parametrize(("policies", "expected"), POLICIES.values(), ids=POLICIES)
def test_read_operator_returns_what_the_cluster_policy_in_use_declares(policies, expected):
    assert read_operator(policies) == expected


@pytest.mark.parametrize(
    ("gpu_clusters", "labels", "parts"),
    [
        ([], {DEPLOY + "dra-driver": "true"}, None),
        ([{"spec": {}}], {}, ["dra_driver"]),
        ([{"spec": {}}], {DEPLOY + "dra-driver": "true"}, ["dra_driver"]),
        ([{"spec": {}}], {DEPLOY + "dra-driver": "false"}, []),
    ],
)
def test_gpu_cluster_has_a_dra_driver_on_nodes_whose_label_admits_it(gpu_clusters, labels, parts):
    operator = read_gpu_cluster(gpu_clusters)
    assert (operator and operator.find_parts(labels)) == parts


#: Labels of a node, and the parts that run on it if all are enabled.
NODES = {
    "not-labelled-yet": ({}, ALL),
    "labelled": ({DEPLOY + name: "true" for _section, name in PARTS.values()}, ALL),
    "hands-off": ({DEPLOY + "device-plugin": "false"}, ["driver", "toolkit", "feature_discovery", "mig_manager"]),
    "driver-of-the-host": (
        {DEPLOY + "driver": "pre-installed"},
        ["toolkit", "device_plugin", "feature_discovery", "mig_manager"],
    ),
    "paused": ({DEPLOY + "device-plugin": "paused-for-mig-change", DEPLOY + "driver": ""}, ALL),
    "no-operands": ({DEPLOY + "operands": "false", DEPLOY + "driver": "true"}, []),
}


@pytest.mark.parametrize(("labels", "parts"), NODES.values(), ids=NODES)
def test_labels_of_a_node_keep_parts_off(labels, parts):
    assert GpuOperator().find_parts(labels) == parts
    assert has_operator_label(labels) is bool(labels)


def test_disabled_part_runs_on_no_node():
    assert GpuOperator(enabled=("toolkit",)).find_parts({DEPLOY + "device-plugin": "true"}) == ["toolkit"]


def test_fake_of_the_lab_is_read_as_an_operator_with_all_parts():
    operator = read_operator([{**fake.POLICY, **fake.STATUS}])
    assert operator == GpuOperator(fake.NAMESPACE, config_map=fake.CONFIG_MAP, mig_strategy="single")
    template = fake.deploy_plugin("reg/plugin:1")[-1]["spec"]["template"]
    assert template["metadata"]["labels"] == PLUGIN_LABELS
    assert template["spec"]["nodeSelector"] == {DEPLOY + PARTS["device_plugin"][1]: "true"}
    assert {item["kind"] for item in fake.declare_operator()} == {
        "Namespace",
        "ConfigMap",
        fake.KIND["spec"]["names"]["kind"],
    }
