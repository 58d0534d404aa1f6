# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the plan decides for the cluster as a whole, removals, and how it is printed."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import NVIDIA_ROLE, STRATEGIES
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.node_state import (
    CHANGE_LABEL,
    LABEL_RECORD,
    reason_of,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plan import render_plan
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import Request, build_config
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.sharing_nodes import (
    GPU,
    config_of,
    empty_node,
    host,
    label_of,
    node,
    plan,
    plan_one,
)

TO_GPUSHARE = reason_of(["exclusive"], "gpushare")


#: Hosts with their nodes, the cluster beside them, and what is planned for it: present, enters, leaves, kept, extenders, whether kube-scheduler changes.
CLUSTERS = {
    "nothing": ([("exclusive", node())], {}, ([], [], [], {}, [], False)),
    "first": ([("gpushare", node())], {}, (["gpushare"], ["gpushare"], [], {}, ["gpushare"], True)),
    "present": (
        [("gpushare", node("gpushare"))],
        {},
        (["gpushare"], [], [], {"gpushare": ["n1"]}, ["gpushare"], True),
    ),
    "one-of-two-leaves": (
        [("exclusive", node("gpushare"))],
        {"labelled": {"gpushare": ["w9"]}},
        ([], [], [], {"gpushare": ["w9"]}, ["gpushare"], False),
    ),
    "last-leaves": ([("exclusive", node("gpushare"))], {}, ([], [], ["gpushare"], {}, [], True)),
    "one-leaves-one-enters": (
        [("exclusive", node("gpushare")), ("gpushare", node(name="n2"))],
        {},
        (["gpushare"], [], [], {}, ["gpushare"], True),
    ),
    "without-the-scheduler": (
        [("gpushare", node())],
        {"run_tags": ["device_plugin", "sharing"]},
        (["gpushare"], ["gpushare"], [], {}, ["gpushare"], False),
    ),
    "second-scheduler": (
        [("gpushare", node()), ("nano_gpu", node(name="n2"))],
        {"second_scheduler": "nano_gpu"},
        (["gpushare", "nano_gpu"], ["gpushare", "nano_gpu"], [], {}, ["gpushare"], True),
    ),
    "second-scheduler-alone": (
        [("nano_gpu", node())],
        {"second_scheduler": "nano_gpu"},
        (["nano_gpu"], ["nano_gpu"], [], {}, [], False),
    ),
    "elsewhere-alone": (
        [("exclusive", node())],
        {"labelled": {"gpushare": ["w9"]}},
        ([], [], [], {"gpushare": ["w9"]}, ["gpushare"], False),
    ),
}


@pytest.mark.parametrize(("hosts", "cluster", "expected"), CLUSTERS.values(), ids=CLUSTERS)
def test_cluster_follows_from_all_nodes(hosts, cluster, expected):
    requests = [host(strategy, str(number)) for number, (strategy, _node) in enumerate(hosts, 1)]
    planned = plan(requests, [row for _strategy, row in hosts], **cluster)["cluster"]
    assert planned["blockers"] == []
    names = ("present", "enters", "leaves", "kept", "extenders", "scheduler_changes")
    assert tuple(planned[name] for name in names) == expected


def test_host_without_gpus_adds_no_strategy_to_the_cluster():
    planned = plan([host("gpushare", gpus=0)], [node()])["cluster"]
    assert (planned["present"], planned["scheduler_changes"]) == ([], False)


@pytest.mark.parametrize(
    ("capacity", "parameters", "resources"),
    [
        ({}, {}, ["example.com/gpu"]),
        ({GPU: 0, "nvidia.com/hostdev": 1}, {}, ["example.com/gpu"]),
        ({"nvidia.com/mig-1g.5gb": 7, GPU: 1, "aliyun.com/gpu-mem": 32}, {}, [GPU, "nvidia.com/mig-1g.5gb"]),
        ({"example.com/gpu": 2}, {}, ["example.com/gpu"]),
        ({GPU: 2}, {"gpus": 0}, []),
    ],
)
def test_nvidia_resources_are_those_in_the_capacity_of_nodes(capacity, parameters, resources):
    hosts = [host("gpushare", resource_name="example.com/gpu", **parameters), host("exclusive", "2")]
    planned = plan(
        hosts, [empty_node(gpu_capacity=capacity), empty_node(name="n2", gpu_capacity={"nvidia.com/gpu.shared": 1})]
    )
    assert planned["cluster"]["nvidia_resources"] == resources


def test_configurations_that_no_node_names_are_pruned_and_those_of_nodes_beyond_this_run_stay():
    former, other, unused = (config_of(name) for name in ("time_slicing", "mps", "mig"))
    cluster = {
        "configs": {each.name: each.document for each in (former, other, unused)},
        "config_names": {"n1": former.name, "w9": other.name},
    }
    changed = build_config({}, STRATEGIES["time_slicing"], Request(2))
    planned = plan([host("time_slicing", request=Request(2))], [node("time_slicing")], **cluster)["cluster"]
    assert planned["plugin_configs"] == {changed.name: changed.document, other.name: other.document}
    planned = plan([host("time_slicing")], [node("time_slicing")], **cluster)["cluster"]
    assert set(planned["plugin_configs"]) == {former.name, other.name}


#: A node, the declared strategy, and which strategies are removed from it.
REMOVED = {
    "plain": (node(), "", []),
    "labelled": (node("gpushare"), "", ["gpushare"]),
    "declared": (node(), "gpushare", ["gpushare"]),
    "declared-another": (node("gpushare"), "mps", [NVIDIA_ROLE, "mps", "gpushare"]),
    "named-configuration": (node("time_slicing"), "", []),
    "control-daemon": (node("mps"), "", [NVIDIA_ROLE, "mps"]),
    "mig-devices": (node("mig"), "", [NVIDIA_ROLE, "mig"]),
    "label-of-the-control-daemon": (
        empty_node(annotations={LABEL_RECORD: '{"mps": {"nvidia.com/mps.capable": {"set": "true", "was": null}}}'}),
        "",
        [NVIDIA_ROLE, "mps"],
    ),
    # The label of GPU feature discovery, by another role.
    "label-with-the-name-of-a-strategy": (
        empty_node(
            annotations={
                LABEL_RECORD: '{"gpu_node_labels": {"nvidia.com/gpu.sharing-strategy": {"set": "mps", "was": "mig"}}}'
            }
        ),
        "",
        [],
    ),
    "unreadable-record": (empty_node(annotations={LABEL_RECORD: '["mps"]'}), "", []),
    "kept-off": (empty_node(labels={CHANGE_LABEL: "true"}), "", []),
    "label-of-others": (node(labels={"gpushare": "no"}), "", []),
    "left-count": (empty_node(gpu_capacity={"aliyun.com/gpu-count": 2}), "", ["gpushare"]),
    # The kubelet keeps the capacity for some minutes after the plugin is removed.
    "memory-in-capacity-alone": (empty_node(gpu_capacity={"aliyun.com/gpu-mem": 32}), "", []),
    "both": (node("nano_gpu", labels={**label_of("nano_gpu"), **label_of("gpushare")}), "", ["gpushare", "nano_gpu"]),
    "interrupted": (node(reason=TO_GPUSHARE), "", ["gpushare"]),
    "not-in-the-cluster": (None, "", []),
}


@pytest.mark.parametrize(("row", "strategy", "roles"), REMOVED.values(), ids=REMOVED)
def test_removal_removes_present_and_declared_strategies(row, strategy, roles):
    planned = plan_one(row, strategy, {"absent": True}, gpus=None)
    # NVIDIA's device plugin has the GPUs open, so that it leaves the node before the host changes.
    is_off = NVIDIA_ROLE in roles
    returns = is_off or CHANGE_LABEL in (row or {}).get("labels", {})
    assert (planned["node_absent"], planned["to"], planned["pause"]) == (roles, "", is_off)
    assert planned["node_present"] == ([NVIDIA_ROLE] if returns else [])
    assert planned["preflight_absent"] == [role for role in roles if role == "mig"]
    interrupted = ((row or {}).get("maintenance") or {}).get("reason", "")
    assert (planned["cordon"], planned["reason"]) == (bool(interrupted), interrupted)
    assert (planned["drain"], planned["blockers"]) == ("none", [])


def test_removal_from_one_node_keeps_the_strategy_for_others():
    planned = plan([host()], [node("gpushare")], absent=True, labelled={"gpushare": ["w9"]})["cluster"]
    assert (planned["leaves"], planned["kept"], planned["scheduler_changes"]) == ([], {"gpushare": ["w9"]}, False)
    planned = plan([host()], [node("gpushare")], absent=True)["cluster"]
    assert (planned["leaves"], planned["extenders"], planned["scheduler_changes"]) == (["gpushare"], [], True)


def test_table_names_changes_and_blockers():
    hosts = [host("nano_gpu", migrate=True), host("exclusive", "22"), host("exclusive", "3")]
    nodes = [node("gpushare"), node(name="n22"), node("gpushare", allocated=1, name="n3")]
    assert render_plan(plan(hosts, nodes)) == [
        "HOST  NODE  FROM      TO         STEPS",
        "h1    n1    gpushare  nano_gpu   cordon, drain of gpu pods, leave gpushare, enter nano_gpu, uncordon",
        "h22   n22   -         exclusive  none",
        "h3    n3    gpushare  exclusive  cordon, leave gpushare, enter exclusive, uncordon",
        "new in the cluster: nano_gpu",
        "leave the cluster: gpushare",
        "extenders of kube-scheduler afterwards: nano_gpu",
        f"BLOCKED: {plan(hosts, nodes)['nodes'][2]['blockers'][0]}",
    ]


def test_table_names_the_nodes_with_gpus_of_other_vendors():
    vendors = {"1": ["nvidia"], "2": ["amd"], "3": ["amd", "intel", "nvidia"]}
    hosts = [host(name=name, vendors=found, gpus=2 if "nvidia" in found else 0) for name, found in vendors.items()]
    planned = plan(hosts, [node(name=each["node"]) for each in hosts])
    assert [row["vendors"] for row in planned["nodes"]] == list(vendors.values())
    assert render_plan(planned)[4:] == [
        "GPUs of AMD, which its device plugin offers: n2, n3",
        "GPUs of Intel, which its device plugin offers: n3",
    ]


def test_pods_with_gpus_of_other_vendors_block_no_change_of_the_strategy():
    row = node(gpu_allocated={"amd.com/gpu": 2})
    planned = plan([host("time_slicing", vendors=["amd", "nvidia"])], [row])["nodes"][0]
    assert (planned["cordon"], planned["blockers"]) == (True, [])
