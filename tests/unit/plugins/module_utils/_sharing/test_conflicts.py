# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps nodes from entering gpushare or nano-gpu is found and reported in one sentence."""

from __future__ import annotations

from functools import partial

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.conflicts import find_conflicts


def node(name="n1", **more):
    row = {"name": name, "known": True, "gpu_operator": False, "foreign_plugins": []}
    return {
        **row,
        "gpu_capacity": {"nvidia.com/gpu": 2, "nvidia.com/hostdev": 1},
        "gpu_allocated": {"nvidia.com/hostdev": 1},
        **more,
    }


def find(strategy="nano_gpu", *rows, expected=100, **more):
    """Conflicts of hosts h1, h2 … with these nodes."""
    nodes = rows or (node(),)
    joining = [{"host": row["name"].replace("n", "h"), "node": row["name"], "expected": expected} for row in nodes]
    return find_conflicts(joining, strategy, nodes, **more)


def held(resource="nvidia.com/gpu", name="n1"):
    return node(name, gpu_allocated={resource: 1})


GPUSHARE_PLUGIN, NANO_GPU_AGENT = "kube-system/gpushare-device-plugin-ds", "kube-system/nano-gpu-agent"
#: Conflicts of the node n1, and how the sentence begins, with other parts of it.
CONFLICTS = {
    "unknown": (
        partial(find, "nano_gpu", node(known=False)),
        ["Host h1: the cluster has no node n1, so join the host first or set"],
    ),
    "unknown-without-gpus": (
        partial(find, "nano_gpu", node(known=False), expected=0),
        ["Host h1: the cluster has no node n1"],
    ),
    "operated": (
        partial(find, "nano_gpu", node(gpu_operator=True)),
        [
            "Node n1: NVIDIA's GPU Operator deploys the device plugin here; set the node's label nvidia.com/gpu.deploy.device-plugin to false"
        ],
    ),
    "one-extender": (
        partial(find, labelled=["w9", "w8"]),
        [
            "Node w8, w9: shares its GPUs by gpushare, and a kube-scheduler takes only one extender that binds pods, gpushare's or nano_gpu's; ",
            "take gpushare off first (the playbook remove_gpushare, or site",
            "name that one in gpu_sharing_second_scheduler.",
        ],
    ),
    "the-other-way-round": (
        partial(find, "gpushare", labelled=["w9"]),
        ["Node w9: shares its GPUs by nano_gpu, and a kube-scheduler takes only one", "the playbook remove_nano_gpu"],
    ),
    "two-owners": (
        partial(find, labelled=["n1", "w9"], second_scheduler="nano_gpu"),
        ["Node n1: shares its GPUs by gpushare"],
    ),
    "claimed": (
        partial(find, claimed=["w9", "", "n1", "n1"]),
        [
            "Node n1: NVIDIA's DRA driver hands out the same GPUs (kubectl get resourceslices), of which nano_gpu knows nothing"
        ],
    ),
    "other-plugins": (
        partial(find, "nano_gpu", node(foreign_plugins=["b/y", "a/x"]), node("n2", foreign_plugins=["b/y"])),
        [
            "a/x, b/y offers the same GPUs and would not leave a node with the label gpu-kubernetes/nano-gpu=true; ",
            "-e gpu_sharing_strategy=exclusive, for it leaves out hosts that declare nano_gpu; or give it a node affinity",
        ],
    ),
    "plugin-of-the-other-strategy-stays": (
        partial(find, "gpushare", node(foreign_plugins=[NANO_GPU_AGENT])),
        [NANO_GPU_AGENT, "gpushare=true"],
    ),
    "plugin-of-others-on-a-node-that-leaves": (
        partial(
            find, "nano_gpu", node(foreign_plugins=[GPUSHARE_PLUGIN, "a/x-" + GPUSHARE_PLUGIN[12:]]), leaving=["n1"]
        ),
        ["a/x-gpushare-device-plugin-ds offers"],
    ),
    "held": (
        partial(find, "nano_gpu", held(name="n2"), held()),
        ["Node n1, n2: pods hold whole GPUs or shares of them", "spec.nodeName=n1), or run the playbook site"],
    ),
    "held-shared": (
        partial(find, "gpushare", held("nvidia.com/gpu.shared")),
        ["Node n1: pods hold whole GPUs or shares"],
    ),
    "held-slices": (
        partial(find, "gpushare", held("nvidia.com/mig-1g.5gb")),
        ["Node n1: pods hold whole GPUs or shares"],
    ),
    "held-by-another-name": (
        partial(find, "gpushare", held("example.com/gpu"), resource_name="example.com/gpu"),
        ["Node n1: pods hold whole GPUs"],
    ),
    "another-is-drained": (partial(find, "nano_gpu", held(), emptied=["w9"]), ["Node n1: pods hold"]),
}


@pytest.mark.parametrize(("conflicts", "parts"), CONFLICTS.values(), ids=CONFLICTS)
def test_conflict_is_reported_in_one_sentence(conflicts, parts):
    error = conflicts()["error"]
    assert error.startswith(parts[0])
    for part in parts[1:]:
        assert part in error
    assert error.endswith(".")
    assert ". " not in error


ACCEPTED = {
    "idle": find,
    "two-schedulers": partial(find, labelled=["w9"], second_scheduler="nano_gpu"),
    "leaves-the-other": partial(
        find, "nano_gpu", node(foreign_plugins=[GPUSHARE_PLUGIN]), labelled=["n1"], leaving=["n1"]
    ),
    "claimed-elsewhere": partial(find, claimed=["w9", ""]),
    "no-gpus": partial(find, labelled=["w9"], expected=0),
    "no-gpus-and-held": partial(
        find,
        "nano_gpu",
        node(gpu_operator=True, foreign_plugins=["a/x"], gpu_allocated={"nvidia.com/gpu": 1}),
        expected=0,
    ),
    "drained-before": partial(find, "nano_gpu", held(), emptied=["n1"]),
    "holds-its-own-resource": partial(find, "gpushare", held("aliyun.com/gpu-mem")),
}


@pytest.mark.parametrize("conflicts", ACCEPTED.values(), ids=ACCEPTED)
def test_node_without_conflict_is_accepted(conflicts):
    assert conflicts()["error"] == ""


def test_first_conflict_is_the_one_that_is_to_be_solved_first():
    rows = [
        node(known=False),
        node("n2", gpu_operator=True, foreign_plugins=["a/x"], gpu_allocated={"nvidia.com/gpu": 1}),
    ]
    more = {"labelled": ["w9"], "claimed": ["n2"]}
    order = [
        "Host h1: the cluster has no node",
        "Node n2: NVIDIA's GPU Operator",
        "Node w9: shares",
        "Node n2: NVIDIA's DRA driver",
        "a/x offers",
        "Node n2: pods",
    ]
    found = [find("nano_gpu", *rows, **more)]
    rows[0] = node()
    found.append(find("nano_gpu", *rows, **more))
    rows[1]["gpu_operator"] = False
    found.append(find("nano_gpu", *rows, **more))
    found.append(find("nano_gpu", *rows, claimed=["n2"]))
    found.append(find("nano_gpu", *rows))
    rows[1]["foreign_plugins"] = []
    found.append(find("nano_gpu", *rows))
    for conflicts, begin in zip(found, order):
        assert conflicts["error"].startswith(begin)
    assert len(found) == len(order)


@pytest.mark.parametrize(
    ("capacity", "resources"),
    [
        ({}, ["example.com/gpu"]),
        ({"nvidia.com/gpu": 0, "nvidia.com/hostdev": 1}, ["example.com/gpu"]),
        (
            {"nvidia.com/mig-1g.5gb": 7, "nvidia.com/gpu": 1, "aliyun.com/gpu-mem": 32},
            ["nvidia.com/gpu", "nvidia.com/mig-1g.5gb"],
        ),
        ({"example.com/gpu": 2}, ["example.com/gpu"]),
    ],
)
def test_resources_of_nvidias_plugin_are_those_in_the_capacity(capacity, resources):
    found = find("gpushare", node(gpu_capacity=capacity), resource_name="example.com/gpu")
    assert found == {"error": "", "whole_resources": resources}


def test_nodes_without_gpus_do_not_count_for_the_resources():
    assert find("gpushare", node(gpu_capacity={"nvidia.com/gpu.shared": 2}), expected=0)["whole_resources"] == [
        "nvidia.com/gpu"
    ]


def test_iterators_are_read_once_and_count_for_all():
    rows = (node(foreign_plugins=[GPUSHARE_PLUGIN]), node("n2", foreign_plugins=[GPUSHARE_PLUGIN]))
    found = find("nano_gpu", *rows, labelled=iter(["n1", "n2"]), leaving=iter(["n1", "n2"]), emptied=iter([]))
    assert found["error"] == ""


def test_strategy_of_nvidias_plugin_raises_value_error():
    with pytest.raises(ValueError, match="mps has no device plugin of its own"):
        find("mps")
