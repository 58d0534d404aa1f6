# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a node's GPUs are shared is decided from what is declared and what is there."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")
pytest.importorskip("kubernetes")

from fakes.kubernetes_api import node as made
from fakes.loopback_api import LoopbackApi, listed, serving, write_kubeconfig
from fakes.small_cluster import SmallCluster

ROOT = Path(__file__).resolve().parents[3]

REASON = '{"reason": "change of how GPUs are shared"}'
SLICED = {"sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}}


LABELS = {"gpushare": {"gpushare": "true"}, "nano_gpu": {"gpu-kubernetes/nano-gpu": "true"}, "": {}}


def node(shared="", begun=False, held=0, count=0, memory=0, whole=None, resource="nvidia.com/gpu", **declared):
    """A host whose node shares in one way or in none, is being changed or not, and whose GPUs are held by some pods.

    ``count`` and ``memory`` are what is in the node's capacity without the label, ``whole`` its GPUs of NVIDIA's device plugin, by the name
    of ``resource``.
    """
    of = "aliyun.com/gpu-mem" if shared == "gpushare" or memory else "nano-gpu/gpu-percent" if shared else resource
    row = {
        "name": "{{ inventory_hostname }}",
        "labels": LABELS[shared],
        "annotations": {"gpu-kubernetes/maintenance": REASON} if begun else {},
        "gpu_resources": {"aliyun.com/gpu-mem": memory},
        "gpu_capacity": {resource: (0 if shared else 2) if whole is None else whole, "aliyun.com/gpu-count": count},
        "gpu_allocated": {of: held},
    }
    return {"__gpu_sharing_asked": {"nodes": [row]}, "gpu_node_name": "{{ inventory_hostname }}", **declared}


EXCLUSIVE = {"gpu_sharing_strategy": "exclusive"}
GPUSHARE = {"gpu_sharing_strategy": "gpushare"}
NANO_GPU = {"gpu_sharing_strategy": "nano_gpu"}
MIGRATE = {"gpu_sharing_migrate": True}
SOME_TAGS = {"__gpu_sharing_run_tags": ["device_plugin"]}
SCHEDULER_ALONE = {"__gpu_sharing_run_tags": ["scheduler"]}
OTHER_TAGS = {"__gpu_sharing_run_tags": [], "__gpu_sharing_judged": False}
#: The host, and what is decided: the strategy, whether to empty the node, to cordon it and give it back, to take gpushare off, and nano-gpu;
#: None if refused.
CASES = {
    "as-it-is": (node(), ["exclusive", False, False, False, False]),
    "as-configured": (node(k8s_device_plugin_config=SLICED), ["time_slicing", False, False, False, False]),
    "shared-undeclared": (node("gpushare", held=3), ["gpushare", False, False, False, False]),
    "leaves": (node("gpushare", **EXCLUSIVE), ["exclusive", False, True, True, False]),
    "leaves-held": (node("gpushare", held=3, **EXCLUSIVE), None),
    "leaves-emptied": (node("gpushare", held=3, **EXCLUSIVE, **MIGRATE), ["exclusive", True, True, True, False]),
    "joins-held": (node(held=1, **GPUSHARE), None),
    "joins": (node(held=1, **GPUSHARE, **MIGRATE), ["gpushare", True, True, False, False]),
    # As NVIDIA's device plugin names what it shares, or slices, whatever the inventory says of it today.
    "joins-held-of-shares": (node(held=1, resource="nvidia.com/gpu.shared", **GPUSHARE), None),
    "joins-held-of-slices": (node(held=1, resource="nvidia.com/mig-1g.5gb", **GPUSHARE), None),
    "joins-beside-other-resources": (
        node(held=1, resource="nvidia.com/hostdev", **GPUSHARE),
        ["gpushare", False, False, False, False],
    ),
    # Cordoned, so that no pod comes in between; nobody is evicted without leave.
    "joins-idle": (node(**GPUSHARE), ["gpushare", False, True, False, False]),
    "first-of-all": (node(whole=0, **GPUSHARE), ["gpushare", False, False, False, False]),
    "cut-off-when-done": (node("gpushare", begun=True, held=3, **GPUSHARE), ["gpushare", False, True, False, False]),
    # The label is gone, and the device plugin still offers memory, or has left the number of GPUs.
    "cut-off-without-label": (node(memory=32, count=2, **EXCLUSIVE), ["exclusive", False, True, True, False]),
    "cut-off-at-the-count": (node(count=2, **EXCLUSIVE), ["exclusive", False, True, True, False]),
    "cut-off-at-the-count-undeclared": (node(count=2), ["exclusive", False, True, True, False]),
    "cut-off-at-the-end": (node(begun=True, **EXCLUSIVE), ["exclusive", False, True, True, False]),
    "cut-off-and-held": (node(memory=32, held=3, **EXCLUSIVE), None),
    "back-after-a-cut": (node(count=2, held=1, **GPUSHARE), None),
    "nano-undeclared": (node("nano_gpu", held=3), ["nano_gpu", False, False, False, False]),
    "nano-leaves": (node("nano_gpu", **EXCLUSIVE), ["exclusive", False, True, False, True]),
    "nano-leaves-held": (node("nano_gpu", held=3, **EXCLUSIVE), None),
    # The label is gone, and programs of the host are still the agent's.
    "nano-cut-off-without-label": (
        node(__gpu_sharing_kept={"known": True}),
        ["exclusive", False, True, False, True],
    ),
    "nano-joins": (node(**NANO_GPU), ["nano_gpu", False, True, False, False]),
    "nano-joins-held": (node(held=1, **NANO_GPU), None),
    "nano-cut-off-when-done": (
        node("nano_gpu", begun=True, held=3, **NANO_GPU),
        ["nano_gpu", False, True, False, False],
    ),
    "from-one-to-the-other": (node("gpushare", held=3, **NANO_GPU, **MIGRATE), ["nano_gpu", True, True, True, False]),
    "from-one-to-the-other-held": (node("gpushare", held=3, **NANO_GPU), None),
    "and-back": (node("nano_gpu", **GPUSHARE), ["gpushare", False, True, False, True]),
    "contradiction": (node(gpu_sharing_strategy="mps"), None),
    "half": (node(**SOME_TAGS, **EXCLUSIVE), ["exclusive", False, False, False, False]),
    "half-of-a-change": (node("gpushare", **SOME_TAGS, **EXCLUSIVE), None),
    "half-at-the-scheduler": (node("gpushare", **SCHEDULER_ALONE, **EXCLUSIVE), None),
    "scheduler-alone": (node("gpushare", held=3, **SCHEDULER_ALONE), ["gpushare", False, False, False, False]),
    # A run that has nothing to do with it is not kept from its work.
    "held-and-not-touched": (
        node("gpushare", held=3, **OTHER_TAGS, **EXCLUSIVE),
        ["exclusive", False, True, True, False],
    ),
    "half-of-nano": (node("nano_gpu", **SOME_TAGS, **EXCLUSIVE), None),
    "half-after-a-cut": (
        node("gpushare", begun=True, **SOME_TAGS, **GPUSHARE),
        ["gpushare", False, False, False, False],
    ),
}


def decide():
    role = {"name": "gpu.kubernetes.gpu_sharing"}
    return [{"ansible.builtin.include_role": {**role, "tasks_from": step}} for step in ("validate", "decide")]


def test_what_is_decided(hear):
    names = ["decided", "empties", "returns", "leaves_gpushare", "leaves_nano_gpu"]
    notes = {"ansible.builtin.set_fact": {"told": "{{ [" + ", ".join(f"gpu_sharing_{name}" for name in names) + "] }}"}}
    told = hear(
        {name: host for name, (host, _wanted) in CASES.items()},
        [{"hosts": "all", "gather_facts": False, "tasks": [*decide(), notes]}],
        "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='told', default='refused')))",
        # So that one run can have them all.
        gpu_sharing_second_scheduler="nano_gpu",
    )
    assert told == {name: wanted or "refused" for name, (_host, wanted) in CASES.items()}


#: What the hosts of a run declare, a second scheduler, and whether the run may go on.
TOGETHER = {
    "one way": ([GPUSHARE, GPUSHARE, EXCLUSIVE], "", True),
    "two ways, one scheduler": ([GPUSHARE, NANO_GPU, NANO_GPU], "", False),
    "two ways, two schedulers": ([GPUSHARE, NANO_GPU, NANO_GPU], "gpushare", True),
}


@pytest.mark.parametrize(("declared", "second", "goes_on"), TOGETHER.values(), ids=TOGETHER)
def test_one_scheduler_has_one_way(refusals, declared, second, goes_on):
    hosts = {f"w{number}": node(**given) for number, given in enumerate(declared)}
    why = refusals("gpu_sharing", ["validate", "decide"], hosts, extra={"gpu_sharing_second_scheduler": second})
    told = "gpushare, which w0 would have, and nano_gpu, which w1, w2 would have, each need an extender that binds pods"
    # What is asked once ends the run of all hosts; the first can tell why.
    assert (told in why["w0"]) is not goes_on
    assert why == (dict.fromkeys(hosts, "") if goes_on else {"w0": why["w0"]})


def with_capacity(name, offered=0, **given):
    """A node that has something of gpushare's in its capacity, and offers an amount of memory."""
    found = made(name)
    found["status"]["capacity"].update({f"aliyun.com/gpu-{key}": str(value) for key, value in given.items()})
    found["status"]["allocatable"]["aliyun.com/gpu-mem"] = str(offered)
    return found


#: Nodes, and whether gpushare is on them.
NODES = {
    "plain": (made("plain"), False),
    "labelled": (made("labelled", labels={"gpushare": "true"}), True),
    "others-label": (made("others-label", labels={"gpushare": "no"}), False),
    "left-count": (with_capacity("left-count", mem=0, count=2), True),
    "still-offers": (with_capacity("still-offers", offered=32, mem=32), True),
    # The kubelet keeps the capacity for some minutes after the plugin.
    "capacity-alone": (with_capacity("capacity-alone", mem=32), False),
    "done": (with_capacity("done", mem=0), False),
}


def test_gpushare_is_found_on_nodes_by_what_they_have(hear, tmp_path):
    empty = {"/apis/apps/v1/namespaces/kube-system/daemonsets": listed([])}
    lists = {"/api/v1/nodes": listed([found for found, _there in NODES.values()]), "/api/v1/pods": listed([]), **empty}
    role = {"name": "gpu.kubernetes.gpu_sharing", "tasks_from": "look"}
    with serving(LoopbackApi(lists)) as server:
        told = hear(
            {name: {"gpu_node_name": name} for name in NODES},
            [{"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.include_role": role}]}],
            "dict(groups.all | zip(groups.all | map('extract', hostvars, 'gpu_sharing_has_gpushare')))",
            gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
        )
    assert told == {name: there for name, (_found, there) in NODES.items()}


#: Labels of the node of a host, what it declares, and what a playbook that only looks takes its GPUs for.
FOUND = {
    "by-memory": (LABELS["gpushare"], {}, "gpushare"),
    "by-percent": (LABELS["nano_gpu"], {}, "nano_gpu"),
    "whole": ({}, {}, "open"),
    "not-any-more": ({"gpushare": "false"}, {}, "open"),
    "declared": (LABELS["gpushare"], {"gpu_sharing_strategy": "exclusive"}, "open"),
}
FOUND_FILE = {"ansible.builtin.include_tasks": str(ROOT / "playbooks" / "tasks" / "found.yml")}


@pytest.mark.parametrize("answers", [True, False], ids=["answers", "is-away"])
def test_what_is_there_counts_where_nobody_says_it(hear, tmp_path, answers):
    nodes = [
        {"apiVersion": "v1", "kind": "Node"} | made(name, labels=dict(labels))
        for name, (labels, *_more) in FOUND.items()
    ]
    play = {
        "hosts": "gpu_nodes",
        "gather_facts": False,
        "vars_files": [str(ROOT / "playbooks" / "vars" / "hosts.yml")],
        "tasks": [FOUND_FILE],
    }
    with serving(SmallCluster(*nodes)) as server:
        url = server.url if answers else "http://127.0.0.1:1"
        told = hear(
            {name: declared for name, (_labels, declared, _way) in FOUND.items()},
            [
                {"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.group_by": {"key": "gpu_nodes"}}]},
                play,
            ],
            "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='gpu_sharing_decided', default='open')))",
            gpu_kubeconfig=str(write_kubeconfig(url, tmp_path / "kubeconfig")),
        )
    assert told == {name: way if answers else "open" for name, (*_node, way) in FOUND.items()}


@pytest.mark.parametrize("order", [("stays", "changes"), ("changes", "stays")])
def test_only_nodes_that_are_emptied_count_as_empty(hear, order):
    """Whoever comes first among the hosts, whose answer is taken for what is asked once."""
    hosts = {"stays": {"gpu_sharing_empties": False}, "changes": {"gpu_sharing_empties": True}}
    once = {"ansible.builtin.set_fact": {"told": "{{ __gpu_sharing_emptying }}"}, "run_once": True}
    grouped = [{"ansible.builtin.group_by": {"key": "gpu_nodes"}}]
    play = {
        "hosts": "gpu_nodes",
        "gather_facts": False,
        "vars_files": [str(ROOT / "playbooks" / "vars" / "hosts.yml")],
        "tasks": [once],
    }
    told = hear(
        {name: {**hosts[name], "__gpu_sharing_host": f"node-{name}"} for name in order},
        [{"hosts": "all", "gather_facts": False, "tasks": grouped}, play],
        "groups.all | map('extract', hostvars, 'told')",
    )
    assert told == [["node-changes"]] * 2
