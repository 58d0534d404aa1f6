# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each reason why a node lacks allocatable GPUs, and its message."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.kubernetes_api import node

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.node_reports import assess_nodes
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.pod_failures import Evidence
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.readiness import Query
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubernetes.plugin_pods import (
    GPU_LABEL,
    NVML_LOG,
    PINNED,
    READY,
    TRACE,
    daemon_set,
    plugin,
    waiting,
)

QUERY = Query()
PENDING = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 Too many pods."}],
}
CRASHED = waiting("CrashLoopBackOff", restartCount=5)
TAINTED = node("w1", taints=[{"key": "team", "value": "ml", "effect": "NoSchedule"}])
CASES = [
    pytest.param(None, [], {}, ["is not in the cluster", "gpu_node_name"], id="unknown node"),
    pytest.param(node("w1", 8, ready=False), [plugin()], {}, ["is not Ready: CNI is missing"], id="not ready"),
    pytest.param(
        node("w1"),
        [],
        {},
        ["0 of 8", "no plugin pod (name=nvidia-device-plugin-ds)", "k8s_device_plugin"],
        id="no plugin",
    ),
    pytest.param(
        node("w1"),
        [],
        {"daemon_sets": [daemon_set(GPU_LABEL)]},
        ["lacks the label nvidia.com/gpu.present=true", "gpu_node_labels"],
        id="label",
    ),
    pytest.param(
        TAINTED, [], {"daemon_sets": [daemon_set()]}, ["does not tolerate the taint team=ml:NoSchedule"], id="taint"
    ),
    pytest.param(
        node("w1", taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]),
        [],
        {"daemon_sets": [daemon_set()]},
        ["creates no pod here yet"],
        id="cordon does not exclude a DaemonSet",
    ),
    pytest.param(
        node("w1"),
        [plugin(PENDING, on="", affinity=PINNED)],
        {},
        ["not scheduled: 0/3 nodes", "Too many pods"],
        id="pending",
    ),
    pytest.param(
        node("w1"),
        [plugin(waiting("ImagePullBackOff", "Back-off pulling image"))],
        {},
        ["waits (ImagePullBackOff) of image reg/plugin:1: Back-off", "check the image"],
        id="image",
    ),
    pytest.param(
        node("w1"),
        [plugin(CRASHED)],
        {"evidence": {"plugin-x": Evidence("failed to create: driver/library version mismatch")}},
        ["crashed 5 times: failed to create", "reboot the node"],
        id="crash by version mismatch",
    ),
    pytest.param(
        node("w1"),
        [
            plugin(
                waiting(
                    "CrashLoopBackOff",
                    restartCount=1,
                    lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                )
            )
        ],
        {},
        ["crashed 1 times: exit code 137 (OOMKilled)"],
        id="crash without a message",
    ),
    pytest.param(
        node("w1"),
        [
            plugin(
                waiting(
                    "CrashLoopBackOff",
                    restartCount=5,
                    lastState={"terminated": {"exitCode": 2, "reason": "Error", "message": TRACE}},
                )
            )
        ],
        {},
        ["crashed 5 times: exit code 2 (Error), with a stack trace in its log"],
        id="crash in C",
    ),
    pytest.param(
        node("w1"),
        [plugin(waiting("ContainerCreating"))],
        {"evidence": {"plugin-x": Evidence("", ('FailedCreatePodSandBox: no runtime for "nvidia" is configured',))}},
        ["is being created: FailedCreatePodSandBox", "run the playbook prepare_gpu_nodes"],
        id="runtime unknown to containerd",
    ),
    pytest.param(node("w1"), [plugin(waiting("ContainerCreating"))], {}, ["no problem yet"], id="being created"),
    pytest.param(
        node("w1"),
        [plugin({"phase": "Failed", "reason": "Evicted", "message": "low on memory"})],
        {},
        ["failed (Evicted): low on memory"],
        id="evicted",
    ),
    pytest.param(
        node("w1"),
        [
            plugin(
                {"phase": "Running", "containerStatuses": [{"name": "ctr", "ready": False, "state": {"running": {}}}]}
            )
        ],
        {},
        ["runs but ctr is not ready"],
        id="not ready pod",
    ),
    pytest.param(
        node("w1"),
        [plugin()],
        {"evidence": {"plugin-x": Evidence(NVML_LOG)}},
        ["has registered no GPU with the kubelet and logs: No devices found. Waiting indefinitely."],
        id="no driver in the pod",
    ),
    pytest.param(
        node("w1"),
        [plugin()],
        {"evidence": {"plugin-x": Evidence(log_error="no right; give the verb get on pods/log")}},
        ["has registered no GPU with the kubelet, and its log cannot be read: no right; give the verb get on pods/log"],
        id="no right to read the log",
    ),
    pytest.param(node("w1", 8, 7), [plugin()], {}, ["7 of 8", "1 of 8 unhealthy", "Xid"], id="unhealthy"),
    pytest.param(node("w1", 4), [plugin()], {}, ["4 of 8", "compare the node's GPUs"], id="fewer"),
    pytest.param(node("w1", 16), [plugin()], {}, ["16 of 8"], id="more"),
]


@pytest.mark.parametrize(("given", "pods", "known", "words"), CASES)
def test_assess_nodes_with_each_failure_explains_it(
    given: Any, pods: Any, known: dict[str, Any], words: list[str]
) -> None:
    (report,) = assess_nodes([given] if given else [], pods, QUERY, {"w1": 8}, **known)
    assert not report.ok
    for word in words:
        assert word in report.reason
    assert "\n" not in report.reason
    assert not report.reason.endswith(".;")


def restarted(**init: Any) -> dict[str, Any]:
    """The status of a plugin pod whose node was booted: its init container has run a second time."""
    ready = {"name": "ctr", "ready": True, "restartCount": 1, "state": {"running": {}}}
    lost = {"terminated": {"exitCode": 255, "reason": "Unknown"}}
    container = {"name": "init", "restartCount": 1, "lastState": {"terminated": {"exitCode": 0}}, **init}
    return {
        "phase": "Running",
        "initContainerStatuses": [container],
        "containerStatuses": [{**ready, "lastState": lost}],
    }


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (restarted(ready=True, state={"terminated": {"exitCode": 0, "reason": "Completed"}}), ""),
        (
            restarted(ready=False, state={"terminated": {"exitCode": 1, "reason": "Error"}}),
            "crashed 1 times: exit code 255 (Unknown)",
        ),
        (
            restarted(ready=False, state={"waiting": {"reason": "CrashLoopBackOff"}}),
            "crashed 1 times: exit code 255 (Unknown)",
        ),
    ],
    ids=["completed", "failed", "crash-loop"],
)
def test_assess_nodes_after_a_boot_counts_only_containers_that_are_down(status: Any, reason: str) -> None:
    query = Query(pod_annotations={"sum": "1"})
    (report,) = assess_nodes([node("w1", 56)], [plugin(status, annotations={"sum": "1"})], query, {"w1": 56})
    assert report.ok is (not reason)
    assert report.reason == (
        f"56 of 56 nvidia.com/gpu allocatable: plugin pod kube-system/plugin-x {reason}" if reason else ""
    )


def test_assess_nodes_with_cordon_is_ok_with_remark() -> None:
    (report,) = assess_nodes([node("w1", 8, unschedulable=True)], [plugin()], QUERY, {"w1": 8})
    assert report.ok
    assert not report.schedulable
    assert "cordoned" in report.reason


def test_assess_nodes_without_gpus_needs_no_plugin() -> None:
    (report,) = assess_nodes([node("w1")], [], Query(pod_annotations={"sum": "1"}), {"w1": 0})
    assert (report.ok, report.reason) == (True, "")


def test_assess_nodes_with_unexpected_gpus_fails() -> None:
    (report,) = assess_nodes([node("w1", 2)], [], QUERY, {"w1": 0})
    assert not report.ok
    assert "though no GPU is expected" in report.reason


@pytest.mark.parametrize(
    ("allocatable", "exact", "ok"), [(8, True, False), (8, False, True), (7, True, True), (6, False, False)]
)
def test_assess_nodes_with_more_than_expected_fails_if_exact(allocatable: int, exact: bool, ok: bool) -> None:
    (report,) = assess_nodes([node("w1", 8, allocatable)], [plugin()], Query(exact=exact), {"w1": 7})
    assert report.ok is ok


@pytest.mark.parametrize(
    ("annotation", "status", "why"),
    [
        ("new", READY, ""),
        ("old", READY, "still runs the previous configuration"),
        # The kubelet still reports the devices of the former pod.
        ("new", waiting("ErrImagePull"), "8 of 8 nvidia.com/gpu allocatable: plugin pod kube-system/plugin-x waits"),
        ("new", {"phase": "Pending"}, "plugin pod kube-system/plugin-x is being created"),
    ],
)
def test_assess_nodes_with_outdated_plugin_fails(annotation: str, status: Any, why: str) -> None:
    query = Query(pod_annotations={"sum": "new"})
    (report,) = assess_nodes([node("w1", 8)], [plugin(status, annotations={"sum": annotation})], query, {"w1": 8})
    assert report.ok is (not why)
    assert why in report.reason


@pytest.mark.parametrize(("reported", "ok"), [("now", True), ("before", False), ("", False)])
def test_assess_nodes_with_report_before_boot_fails(reported: str, ok: bool) -> None:
    booted = node("w1", 8)
    booted["status"]["nodeInfo"] = {"bootID": reported} if reported else {}
    query = Query(boot_ids={"w1": "now"})
    reports = assess_nodes([booted, node("w2", 8)], [plugin(), plugin(on="w2")], query, {"w1": 8, "w2": 8})
    assert [report.ok for report in reports] == [ok, True]
    assert ok or reports[0].reason.startswith("its kubelet has not reported since the host was booted")


@pytest.mark.parametrize(
    ("resource", "labels", "taints", "remedy"),
    [
        ("nvidia.com/gpu", {}, [], "set it (role gpu_node_labels)"),
        ("aliyun.com/gpu-mem", {}, [], "set it (role gpushare)"),
        ("nano-gpu/gpu-percent", {}, [], "set it (role nano_gpu)"),
        ("elasticgpu.io/gpu-core", {}, [], "set it (role nano_gpu)"),
        (
            "nvidia.com/gpu",
            GPU_LABEL,
            [{"key": "t", "effect": "NoSchedule"}],
            "add it to k8s_device_plugin_tolerations",
        ),
        (
            "aliyun.com/gpu-mem",
            GPU_LABEL,
            [{"key": "t", "effect": "NoSchedule"}],
            "add it to gpushare_device_plugin_tolerations",
        ),
        (
            "elasticgpu.io/gpu-memory",
            GPU_LABEL,
            [{"key": "t", "effect": "NoSchedule"}],
            "add it to nano_gpu_agent_tolerations",
        ),
    ],
)
def test_assess_nodes_remedy_names_role_of_resource(resource: str, labels: Any, taints: Any, remedy: str) -> None:
    query = Query(resource)
    (report,) = assess_nodes(
        [node("w1", labels=labels, taints=taints)], [], query, {"w1": 8}, daemon_sets=[daemon_set(GPU_LABEL)]
    )
    assert report.reason.endswith(remedy)
    (report,) = assess_nodes([node("w1")], [], query, {"w1": 8})
    roles = {"nvidia.com": "k8s_device_plugin", "aliyun.com": "gpushare"}
    assert report.reason.endswith(f"deploy it with the role {roles.get(resource.partition('/')[0], 'nano_gpu')}")
