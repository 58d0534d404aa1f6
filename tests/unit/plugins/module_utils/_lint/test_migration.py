# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A change of strategy names the workloads that no node can run afterwards, and no others."""

from __future__ import annotations

import pytest
from fakes import kubernetes_api as api

from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.migration import (
    MOST_NAMED,
    find_stranded,
    list_template_pods,
    render_stranded,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.model import Document
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import Request
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing import sharing_nodes

GPU, SHARED, MEMORY = "nvidia.com/gpu", "nvidia.com/gpu.shared", "aliyun.com/gpu-mem"
PERCENT, SLICE, AMD = "nano-gpu/gpu-percent", "nvidia.com/mig-1g.10gb", "amd.com/gpu"


def make_node(name, labels=None, **amounts):
    found = api.node(name, labels={"kubernetes.io/hostname": name, **(labels or {})})
    found["status"]["allocatable"] = amounts
    return found


def make_pod(name="train", requested=None, on="n1", more=(), **parts):
    containers = [
        {"name": f"c{number}", "image": "busybox", "resources": {"limits": amounts}}
        for number, amounts in enumerate([requested or {GPU: "1"}, *more])
    ]
    return api.pod(name, on=on, namespace="team", containers=containers, **parts)


def plan_rows(before, after, **parameters):
    """The plan's row of n1, which leaves one strategy and enters another."""
    host = sharing_nodes.host(after, **parameters)
    return sharing_nodes.plan([host], [sharing_nodes.node(before)])["nodes"]


WHOLE = {GPU: "8"}
RENAMED = {"request": Request(4, rename=True)}
MIXED = {"request": Request(mig_strategy="mixed"), "has_layout": True}
SINGLE = {"request": Request(mig_strategy="single"), "has_layout": True}
NONE = "which no node that it selects offers"
ONE = "of which a container gets at most one"


@pytest.mark.parametrize(
    ("before", "after", "parameters", "offered", "requested", "words"),
    [
        ("exclusive", "exclusive", {}, WHOLE, {GPU: "1"}, ""),
        ("exclusive", "time_slicing", {}, WHOLE, {GPU: "1"}, ""),
        ("exclusive", "time_slicing", {}, WHOLE, {GPU: "2"}, ONE),
        ("exclusive", "time_slicing", RENAMED, WHOLE, {GPU: "1"}, NONE),
        ("exclusive", "mps", {}, WHOLE, {GPU: "2"}, ONE),
        ("time_slicing", "exclusive", {}, WHOLE, {GPU: "1"}, ""),
        ("time_slicing", "exclusive", {}, {SHARED: "8"}, {SHARED: "1"}, NONE),
        ("exclusive", "mig", {**MIXED, "has_whole": False}, WHOLE, {GPU: "1"}, NONE),
        ("exclusive", "mig", {**MIXED, "has_whole": True}, WHOLE, {GPU: "1"}, ""),
        ("exclusive", "mig", SINGLE, WHOLE, {GPU: "1"}, ""),
        ("mig", "exclusive", {}, {SLICE: "7"}, {SLICE: "1"}, NONE),
        ("exclusive", "gpushare", {}, WHOLE, {GPU: "1"}, NONE),
        ("gpushare", "exclusive", {}, {MEMORY: "32"}, {MEMORY: "4"}, NONE),
        ("gpushare", "nano_gpu", {}, {MEMORY: "32"}, {MEMORY: "4"}, NONE),
        ("nano_gpu", "nano_gpu", {}, {PERCENT: "200"}, {PERCENT: "40"}, ""),
        ("nano_gpu", "exclusive", {}, {PERCENT: "200"}, {PERCENT: "40"}, NONE),
        # More than the node has: it cannot run now either.
        ("exclusive", "gpushare", {}, WHOLE, {GPU: "9"}, ""),
        # Not a resource of a strategy.
        ("exclusive", "gpushare", {}, {**WHOLE, AMD: "2"}, {AMD: "1"}, ""),
        ("exclusive", "gpushare", {}, WHOLE, {"cpu": "1"}, ""),
    ],
)
def test_change_names_the_workload_that_it_strands(before, after, parameters, offered, requested, words):
    nodes = [make_node("n1", sharing_nodes.label_of(before), **offered)]
    rows = plan_rows(before, after, **parameters)
    found = find_stranded(nodes, [make_pod(requested=requested)], rows)
    assert [words in each["sentence"] for each in found] == ([True] if words else [])
    # With another node of the kind that n1 was, it can still run.
    assert find_stranded([*nodes, make_node("n2", **offered)], [make_pod(requested=requested)], rows) == []


@pytest.mark.parametrize(
    ("spec", "stranded"),
    [
        ({"nodeSelector": {"pool": "a"}}, True),
        ({"nodeSelector": {"pool": "b"}}, False),
        ({}, False),
    ],
)
def test_nodes_that_the_pods_do_not_select_do_not_count(spec, stranded):
    nodes = [make_node("n1", {"pool": "a"}, **WHOLE), make_node("n2", {"pool": "b"}, **WHOLE)]
    found = find_stranded(nodes, [make_pod(**spec)], plan_rows("exclusive", "gpushare"))
    assert bool(found) is stranded


def test_label_of_a_strategy_leaves_with_it_and_comes_with_it():
    own = sharing_nodes.label_of("gpushare")
    nodes = [make_node("n1", own, **{GPU: "8", MEMORY: "32"}), make_node("n2", **WHOLE)]
    pod = make_pod(nodeSelector=own)
    leaving = plan_rows("gpushare", "exclusive")
    (found,) = find_stranded(nodes, [pod], leaving)
    assert found["sentence"] == f"Pod team/train requests 1 of {GPU}, {NONE} after this change."
    # Another node takes the strategy over.
    pod = make_pod(requested={MEMORY: "4"}, nodeSelector=own)
    entering = [{**row, "node": "n2"} for row in plan_rows("exclusive", "gpushare")]
    assert find_stranded(nodes, [pod], [*leaving, *entering]) == []
    assert len(find_stranded(nodes, [pod], leaving)) == 1


def test_owners_are_named_once():
    owners = [
        make_pod("a-6f9-x", owner="a-6f9", owner_kind="ReplicaSet", labels={"pod-template-hash": "6f9"}),
        make_pod("a-6f9-y", owner="a-6f9", owner_kind="ReplicaSet", labels={"pod-template-hash": "6f9"}, on=""),
        make_pod("b-z", owner="b", owner_kind="ReplicaSet"),
        # The first pod of the cluster requests no GPU.
        make_pod("ray-head", {"cpu": "1"}, owner="ray", owner_kind="RayCluster"),
        make_pod("ray-worker", owner="ray", owner_kind="RayCluster"),
        make_pod("c"),
    ]
    found = find_stranded([make_node("n1", **WHOLE)], owners, plan_rows("exclusive", "gpushare"))
    assert [(each["kind"], each["name"]) for each in found] == [
        ("Deployment", "a"),
        ("ReplicaSet", "b"),
        ("Pod", "c"),
        ("RayCluster", "ray"),
    ]
    assert {(each["namespace"], *each["resources"]) for each in found} == {("team", GPU)}


def make_document(kind, spec, **status):
    return Document("-", {"kind": kind, "metadata": {"name": "a", "namespace": "team"}, "spec": spec, "status": status})


TEMPLATE = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {"containers": [{"name": "main", "image": "busybox", "resources": {"limits": {GPU: "1"}}}]},
}


@pytest.mark.parametrize(
    ("kind", "spec", "status", "named"),
    [
        ("Deployment", {"replicas": 0, "template": TEMPLATE}, {}, True),
        ("CronJob", {"jobTemplate": {"spec": {"template": TEMPLATE}}}, {}, True),
        (
            "Job",
            {"suspend": True, "template": TEMPLATE},
            {"conditions": [{"type": "Suspended", "status": "True"}]},
            True,
        ),
        ("Job", {"template": TEMPLATE}, {"conditions": [{"type": "Complete", "status": "True"}]}, False),
        ("Job", {"template": TEMPLATE}, {"conditions": [{"type": "Failed", "status": "True"}]}, False),
        ("StatefulSet", {"template": {**TEMPLATE, "spec": {"containers": [{"name": "c", "image": "i"}]}}}, {}, False),
    ],
)
def test_templates_without_pods_are_named(kind, spec, status, named):
    pods = list_template_pods([make_document(kind, spec, **status)])
    found = find_stranded([make_node("n1", **WHOLE)], pods, plan_rows("exclusive", "gpushare"))
    assert [each["sentence"] for each in found] == (
        [f"{kind} team/a requests 1 of {GPU}, {NONE} after this change."] if named else []
    )


def test_deployment_with_pods_is_named_once():
    pod = make_pod("a-6f9-x", owner="a-6f9", owner_kind="ReplicaSet", labels={"pod-template-hash": "6f9"})
    pods = [pod, *list_template_pods([make_document("Deployment", {"template": TEMPLATE})])]
    found = find_stranded([make_node("n1", **WHOLE)], pods, plan_rows("exclusive", "gpushare"))
    assert [(each["kind"], each["name"]) for each in found] == [("Deployment", "a")]


def test_limit_is_that_of_a_container():
    pods = [make_pod(more=[{GPU: "1"}])]
    assert find_stranded([make_node("n1", **WHOLE)], pods, plan_rows("exclusive", "time_slicing")) == []


def test_plan_names_the_first_workloads_and_counts_the_rest():
    pods = [make_pod(f"p{number:02}\x1b[31m") for number in range(MOST_NAMED + 3)]
    lines = render_stranded(find_stranded([make_node("n1", **WHOLE)], pods, plan_rows("exclusive", "gpushare")))
    assert (len(lines), lines[-1]) == (
        MOST_NAMED + 1,
        "WARNING: 3 more workloads can run on no node after this change.",
    )
    assert all(line.isprintable() for line in lines)
    assert render_stranded([]) == []
