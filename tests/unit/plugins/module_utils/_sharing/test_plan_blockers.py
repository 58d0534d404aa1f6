# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each blocker is one sentence with host or node, cause and remedy, and all of them are in the plan."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.blockers import DAEMON_LABEL
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.node_state import reason_of
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plan import list_blockers
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import Request
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.sharing_nodes import (
    GPU,
    SLICED,
    empty_node,
    host,
    node,
    plan,
    plan_one,
)

GPUS_ALLOCATED = "pods hold GPUs; end these pods first (kubectl get pods -A --field-selector spec.nodeName=n1), or set gpu_sharing_migrate to true"
PLUGINS = {"gpushare": "kube-system/gpushare-device-plugin-ds", "nano_gpu": "kube-system/nano-gpu-agent"}
SOME_TAGS, SCHEDULER = {"run_tags": ["device_plugin"]}, {"run_tags": ["scheduler"]}
WHERE = "Host h1 (node n1): "


def staying_plugins(strategy, *plugins):
    return {"staying_plugins": {strategy: list(plugins)}}


def published(label, value):
    return {"labels": {label: value}, "published_labels": {label}}


#: A node, the declared strategy, the parameters, and parts of the one sentence that blocks the host.
BLOCKED = {
    "other-vendor": (
        empty_node(),
        "time_slicing",
        {"vendors": ["amd"]},
        [
            "Host h1: gpu_sharing_strategy is time_slicing, which shares GPUs of NVIDIA, and its GPUs are of AMD; leave gpu_sharing_strategy empty"
        ],
    ),
    "leaves-allocated": (
        node("gpushare", allocated=3),
        "exclusive",
        {},
        [WHERE, "are shared as gpushare, exclusive is", GPUS_ALLOCATED],
    ),
    "enters-allocated": (
        node(allocated=1),
        "gpushare",
        {},
        [WHERE, "are shared as exclusive, gpushare is requested, and", GPUS_ALLOCATED],
    ),
    # A run would take MPS off the node, and not bring it back.
    "interrupted-without-gpus": (
        node(gpu_capacity={GPU: 8}, reason=reason_of(["time_slicing"], "mps")),
        "mps",
        {"request": Request(replicas=2), "gpus": 0},
        [
            WHERE,
            "its driver reports none of the GPUs that the kubelet has; find the cause with the playbook diagnose_gpu_nodes",
        ],
    ),
    # The resources of NVIDIA's device plugin, for any present configuration.
    "enters-allocated-shared": (
        empty_node(gpu_allocated={"nvidia.com/gpu.shared": 1}),
        "gpushare",
        {},
        [GPUS_ALLOCATED],
    ),
    "enters-allocated-slices": (
        empty_node(gpu_allocated={"nvidia.com/mig-1g.5gb": 1}),
        "gpushare",
        {},
        [GPUS_ALLOCATED],
    ),
    "enters-allocated-by-another-name": (
        empty_node(gpu_allocated={"example.com/gpu": 1}),
        "gpushare",
        {"resource_name": "example.com/gpu"},
        [GPUS_ALLOCATED],
    ),
    "labelled-and-allocated": (node("nano_gpu", gpu_allocated={GPU: 1}), "nano_gpu", {}, [GPUS_ALLOCATED]),
    "interrupted-and-allocated": (
        node("gpushare", allocated=3, labels={}),
        "exclusive",
        {},
        ["shared as gpushare", GPUS_ALLOCATED],
    ),
    "reverted-and-allocated": (
        empty_node(gpu_capacity={"aliyun.com/gpu-count": 2, GPU: 2}, gpu_allocated={GPU: 1}),
        "gpushare",
        {},
        [GPUS_ALLOCATED],
    ),
    "tags-of-a-change": (
        node("gpushare"),
        "exclusive",
        {"cluster": SOME_TAGS},
        [WHERE, "its sharing strategy changes to exclusive", "this run leaves out sharing; run with all of these tags"],
    ),
    "scheduler-alone-of-a-change": (
        node("gpushare"),
        "nano_gpu",
        {"cluster": SCHEDULER},
        ["this run leaves out device_plugin, sharing; run"],
    ),
    "without-replicas": (
        node(),
        "mps",
        {"config": SLICED, "request": Request(), "cluster": {"run_tags": []}},
        [
            "Host h1: gpu_sharing_strategy is mps, which needs the number of pods that share a GPU; set gpu_sharing_replicas"
        ],
    ),
    "one-replica": (
        node(),
        "time_slicing",
        {"request": Request(1)},
        ["gpu_sharing_replicas is 1; set it to 2 or more"],
    ),
    "foreign-configuration": (
        node(labels={"nvidia.com/device-plugin.config": "mine"}),
        "exclusive",
        {},
        [WHERE, "the label nvidia.com/device-plugin.config=mine names a configuration that", "kubectl label node n1"],
    ),
    "unknown": (
        None,
        "exclusive",
        {},
        ["Host h1: the cluster has no node n1; join the host to the cluster, or set gpu_node_name to the name of its"],
    ),
    "operator": (
        empty_node(gpu_operator=["device_plugin"]),
        "nano_gpu",
        {},
        [WHERE, "NVIDIA's GPU Operator deploys the device plugin here; set the node's label nvidia.com/gpu.deploy"],
    ),
    "claimed": (
        node("nano_gpu"),
        "nano_gpu",
        {"cluster": {"claimed": ["w9", "", "n1", "n1"]}},
        [WHERE, "NVIDIA's DRA driver allocates the same GPUs (kubectl get resourceslices), and nano_gpu does not see"],
    ),
    "other-plugins": (
        empty_node(**staying_plugins("nano_gpu", "b/y", "a/x")),
        "nano_gpu",
        {},
        [
            WHERE,
            "a/x, b/y registers the same GPUs and does not leave a node with the label gpu-kubernetes/nano-gpu=true; ",
            "-e gpu_sharing_strategy=exclusive, because it skips hosts that declare nano_gpu; or give it a node affinity",
        ],
    ),
    "plugin-of-another-strategy-that-is-not-on-the-node": (
        empty_node(**staying_plugins("gpushare", PLUGINS["nano_gpu"])),
        "gpushare",
        {},
        [PLUGINS["nano_gpu"], "gpushare=true"],
    ),
    "own-plugin-in-another-namespace": (
        empty_node(**staying_plugins("gpushare", PLUGINS["gpushare"])),
        "gpushare",
        {"cluster": {"namespaces": {"gpushare": "sharing"}}},
        [PLUGINS["gpushare"]],
    ),
    "feature-discovery": (
        node(**published(DAEMON_LABEL, "false")),
        "mps",
        {},
        [
            WHERE,
            "mps is requested, and NVIDIA's GPU feature discovery publishes nvidia.com/mps.capable for its own configuration, which keeps",
            "set the node's label nvidia.com/gpu.deploy.gpu-feature-discovery to false",
        ],
    ),
    "removed-and-allocated": (
        node("gpushare", allocated=1),
        "",
        {"cluster": {"absent": True}},
        [
            WHERE,
            "pods hold aliyun.com/gpu-mem, and would keep GPUs that other pods get; end these pods first (kubectl get pods",
            "or set gpushare_remove_used to true.",
        ],
    ),
}


@pytest.mark.parametrize(("row", "strategy", "parameters", "parts"), BLOCKED.values(), ids=BLOCKED)
def test_host_is_blocked_by_one_sentence(row, strategy, parameters, parts):
    [sentence] = plan_one(row, strategy, **parameters)["blockers"]
    for part in parts:
        assert part in sentence
    assert sentence.endswith(".")
    assert ". " not in sentence


ACCEPTED = {
    "idle": (empty_node(), "gpushare", {}),
    "claimed-elsewhere": (empty_node(), "gpushare", {"cluster": {"claimed": ["w9", ""]}}),
    "own-plugin": (node("gpushare", **staying_plugins("gpushare", PLUGINS["gpushare"])), "gpushare", {}),
    "leaves-the-other": (node("gpushare", **staying_plugins("nano_gpu", PLUGINS["gpushare"])), "nano_gpu", {}),
    "holds-its-own-resource": (node("gpushare", allocated=1), "gpushare", {}),
    "no-gpus": (
        node(gpu_operator=["device_plugin"], allocated=1, **staying_plugins("gpushare", "a/x")),
        "gpushare",
        {"gpus": 0},
    ),
    "nvidias-plugin": (
        node(gpu_operator=["device_plugin"], allocated=1, **staying_plugins("gpushare", "a/x")),
        "exclusive",
        {},
    ),
    "drained-before": (node(allocated=1), "nano_gpu", {"migrate": True}),
    "other-tags": (None, "exclusive", {"cluster": {"run_tags": []}}),
    "feature-discovery-without-that-label": (
        node(labels={DAEMON_LABEL: "false"}, published_labels={"nvidia.com/gpu.product"}),
        "mps",
        {},
    ),
    "feature-discovery-for-mps": (node(**published(DAEMON_LABEL, "true")), "mps", {}),
    "feature-discovery-and-another-strategy": (node(**published(DAEMON_LABEL, "false")), "time_slicing", {}),
    "removed-while-allocated": (
        node("gpushare", allocated=1),
        "",
        {"cluster": {"absent": True}, "remove_used": ["gpushare"]},
    ),
    "removed-by-other-tags": (
        node("gpushare", allocated=1),
        "",
        {"cluster": {"absent": True, "run_tags": ["scheduler"]}},
    ),
    "removed-and-unknown": (None, "gpushare", {"cluster": {"absent": True}}),
}


@pytest.mark.parametrize(("row", "strategy", "parameters"), ACCEPTED.values(), ids=ACCEPTED)
def test_host_without_conflict_is_not_blocked(row, strategy, parameters):
    assert plan_one(row, strategy, **parameters)["blockers"] == []


def test_label_of_the_control_daemon_is_that_of_its_role():
    text = (ROOT / "roles" / "mps" / "vars" / "main.yml").read_text(encoding="utf-8")
    assert f"\n__mps_label: {DAEMON_LABEL}\n" in text


def test_all_blockers_are_returned_in_the_order_in_which_they_are_resolved():
    row = node(gpu_operator=["device_plugin"], allocated=1, **staying_plugins("nano_gpu", "a/x"))
    cluster = {"claimed": ["n1"], "run_tags": ["scheduler"], "labelled": {"gpushare": ["w9"]}, "control_planes": []}
    found = list_blockers(plan([host("nano_gpu")], [row], **cluster))
    words = ["pods hold GPUs", "leaves out", "GPU Operator", "DRA driver", "a/x", "Node w9: uses", "no host in"]
    assert [word in sentence for word, sentence in zip(words, found)] == [True] * len(words), found
    assert len(found) == len(words)


def find_blockers(*strategies, **cluster):
    hosts = [host(strategy, str(number)) for number, strategy in enumerate(strategies)]
    planned = plan(hosts, [empty_node(name=each["node"]) for each in hosts], **cluster)
    return planned["cluster"]["blockers"]


def test_two_extenders_for_one_scheduler_block_the_run():
    [sentence] = find_blockers("gpushare", "nano_gpu", "nano_gpu", run_tags=[])
    assert sentence == (
        "gpushare, for h0, and nano_gpu, for h1, h2, each need an extender that binds pods, and kube-scheduler accepts only one; set one "
        "gpu_sharing_strategy for all of these hosts, or, with a second scheduler of your own, name the strategy that it serves in "
        "gpu_sharing_second_scheduler."
    )


@pytest.mark.parametrize(
    ("strategies", "second_scheduler"),
    [
        (["gpushare", "gpushare", "exclusive"], ""),
        (["gpushare", "nano_gpu", "nano_gpu"], "gpushare"),
        ([], ""),
    ],
)
def test_one_extender_for_each_scheduler_is_accepted(strategies, second_scheduler):
    assert find_blockers(*strategies, second_scheduler=second_scheduler) == []


def test_nodes_beyond_this_run_with_another_extender_block_it():
    [sentence] = find_blockers("nano_gpu", labelled={"gpushare": ["w9", "w8"]})
    assert sentence.startswith(
        "Node w8, w9: uses gpushare, and kube-scheduler accepts only one extender that binds pods, that of gpushare or that of nano_gpu; remove "
        "gpushare first (the playbook remove_gpu_nodes with the tags sharing and scheduler, or share_gpus with another strategy), or,"
    )
    assert find_blockers("nano_gpu", labelled={"gpushare": ["w9"]}, second_scheduler="nano_gpu") == []
    assert find_blockers("nano_gpu", labelled={"gpushare": ["w9"]}, run_tags=[]) == []
    assert find_blockers("exclusive", labelled={"gpushare": ["w9"]}) == []


def test_extender_of_nodes_beyond_this_run_is_not_lost():
    cluster = {"labelled": {"nano_gpu": ["w9"]}, "absent": True}
    [sentence] = list_blockers(plan([host()], [node("gpushare")], **cluster))
    assert sentence.startswith(
        "Node w9: uses nano_gpu, whose extender stays in kube-scheduler, and this run has no host"
    )
    assert list_blockers(plan([host()], [node("gpushare")], **cluster, second_scheduler="nano_gpu")) == []
    assert list_blockers(plan([host()], [node()], **cluster)) == []


def test_hosts_that_leave_in_this_run_do_not_block_it():
    hosts = [host("nano_gpu"), host("exclusive", "2")]
    nodes = [node("gpushare"), node("gpushare", name="n2", reason=reason_of(["gpushare"], "exclusive"))]
    assert list_blockers(plan(hosts, nodes)) == []


#: Control planes of the inventory, those that the run leaves out, nodes with a kube-scheduler, and how the sentence begins.
CONTROL_PLANES = {
    "not-checked": (None, [], ["cp1"], ""),
    "all": (["cp1"], [], ["cp1"], ""),
    "under-another-name": (["cp1"], [], ["cp1.example.com"], ""),
    "no-static-pods": (["cp1"], [], [], ""),
    "no-group": (
        [],
        [],
        ["cp1"],
        "The inventory has no host in masters, and kube-scheduler has to be changed there; put the control planes into a group of that name, or set",
    ),
    "limited": (
        ["cp1", "cp2"],
        ["cp2"],
        [],
        "This run leaves out cp2, and kube-scheduler has to be changed there; add them to --limit, or, only if each kube-scheduler calls",
    ),
    "more": (
        ["cp1"],
        [],
        ["cp3", "cp1", "cp2"],
        "kube-scheduler runs on cp1, cp2, cp3, and the group masters of the inventory has only cp1; add the others, because each kube-scheduler has",
    ),
}


@pytest.mark.parametrize(("hosts", "left_out", "nodes", "begin"), CONTROL_PLANES.values(), ids=CONTROL_PLANES)
def test_kube_scheduler_is_changed_on_all_control_planes_or_on_none(hosts, left_out, nodes, begin):
    cluster = {"control_planes": hosts, "left_out": left_out, "schedulers": nodes, "control_plane_group": "masters"}
    found = find_blockers("gpushare", **cluster)
    assert [sentence[: len(begin)] for sentence in found] == ([begin] if begin else [])
    assert find_blockers("exclusive", **cluster) == []
    assert find_blockers("gpushare", **cluster, run_tags=["sharing", "device_plugin"]) == []
