# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every way in which a node's GPUs can fail to be offered, and the words for it."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.kubernetes_api import FakeClock, FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.api import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.pod_trouble import Evidence, telling_line
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.readiness import Question, assess
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.watching import Patience, survey

LABELS = {"name": "nvidia-device-plugin-ds"}
QUESTION = Question()
READY = {"phase": "Running", "containerStatuses": [{"name": "ctr", "ready": True, "state": {"running": {}}}]}

# As Go writes it when a program calls into C and crashes there.
TRACE = """PC=0x0 m=0 sigcode=1 addr=0x0
goroutine 1 gp=0xbd5360e1e0 m=0 mp=0x1b54020 [syscall]:
runtime.cgocall(0xe7e588, 0xbd5365bc28)
\t/usr/local/go/src/runtime/cgocall.go:167 +0x4b fp=0xbd5365bc00 sp=0xbd5365bbc8 pc=0x48770b
github.com/example/plugin/nvml.Init(...)
\t/src/plugin/nvml/nvml.go:251
main.main()
\t/src/plugin/main.go:61 +0x12e fp=0xbd5365bf48 sp=0xbd5365bec8 pc=0xe12bee
created by runtime.init.7 in goroutine 1
rax    0x0
rflags 0x10246
"""


def plugin(status: dict[str, Any] | None = None, on: str = "w1", **parts: Any) -> dict[str, Any]:
    return pod("plugin-x", on=on, namespace="kube-system", labels=LABELS, status=status or READY, **parts)


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, "message": message}}
    return {
        "phase": "Pending",
        "containerStatuses": [{"name": "ctr", "ready": False, "image": "reg/plugin:1", "state": state, **more}],
    }


def daemon_set(selector: dict[str, str] | None = None, tolerations: Any = ()) -> dict[str, Any]:
    spec = {"nodeSelector": selector or {}, "tolerations": list(tolerations)}
    return {"metadata": {"name": "ds"}, "spec": {"template": {"metadata": {"labels": LABELS}, "spec": spec}}}


PENDING = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available: 3 Too many pods."}],
}
PINNED = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["w1"]}]}]
        }
    }
}
CRASHED = waiting("CrashLoopBackOff", restartCount=5)
TAINTED = node("w1", taints=[{"key": "team", "value": "ml", "effect": "NoSchedule"}])
GPU_LABEL = {"nvidia.com/gpu.present": "true"}
NVML_LOG = """I1121 11:00:00.123456       1 main.go:200] Starting FS watcher.
E1121 11:00:00.123457       1 factory.go:112] Incompatible strategy detected auto
I1121 11:00:00.123458       1 main.go:300] No devices found. Waiting indefinitely."""

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
        ["makes no pod here yet"],
        id="cordon does not keep a DaemonSet away",
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
        id="crash without words",
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
    pytest.param(node("w1"), [plugin(waiting("ContainerCreating"))], {}, ["no trouble yet"], id="being created"),
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
        ["has offered no GPU to the kubelet and says: No devices found. Waiting indefinitely."],
        id="no driver in the pod",
    ),
    pytest.param(
        node("w1"),
        [plugin()],
        {"evidence": {"plugin-x": Evidence(log_error="no right; give the verb get on pods/log")}},
        ["has offered no GPU to the kubelet, and its log cannot be read: no right; give the verb get on pods/log"],
        id="no right to read the log",
    ),
    pytest.param(node("w1", 8, 7), [plugin()], {}, ["7 of 8", "1 of 8 unhealthy", "Xid"], id="unhealthy"),
    pytest.param(node("w1", 4), [plugin()], {}, ["4 of 8", "compare the node's GPUs"], id="fewer"),
    pytest.param(node("w1", 16), [plugin()], {}, ["16 of 8"], id="more"),
]


@pytest.mark.parametrize(("given", "pods", "known", "words"), CASES)
def test_reasons(given: Any, pods: Any, known: dict[str, Any], words: list[str]) -> None:
    (report,) = assess([given] if given else [], pods, QUESTION, {"w1": 8}, **known)
    assert not report.ok
    for word in words:
        assert word in report.reason
    assert "\n" not in report.reason
    assert not report.reason.endswith(".;")


def test_as_expected() -> None:
    (report,) = assess([node("w1", 8)], [plugin(), pod("user", on="w1", gpus=3)], QUESTION, {"w1": 8})
    assert (report.ok, report.reason, report.allocated, report.plugin_pod) == (True, "", 3, "plugin-x")


def test_a_cordoned_node_is_ok_with_a_word() -> None:
    (report,) = assess([node("w1", 8, unschedulable=True)], [plugin()], QUESTION, {"w1": 8})
    assert report.ok
    assert not report.schedulable
    assert "cordoned" in report.reason


def test_a_node_without_gpus_needs_no_plugin() -> None:
    (report,) = assess([node("w1")], [], Question(pod_annotations={"sum": "1"}), {"w1": 0})
    assert (report.ok, report.reason) == (True, "")


def test_gpus_where_none_are_expected() -> None:
    (report,) = assess([node("w1", 2)], [], QUESTION, {"w1": 0})
    assert not report.ok
    assert "though no GPU is expected" in report.reason


@pytest.mark.parametrize(
    ("offered", "exact", "ok"), [(8, True, False), (8, False, True), (7, True, True), (6, False, False)]
)
def test_more_than_expected_is_right_where_it_need_not_be_exact(offered: int, exact: bool, ok: bool) -> None:
    (report,) = assess([node("w1", 8, offered)], [plugin()], Question(exact=exact), {"w1": 7})
    assert report.ok is ok


@pytest.mark.parametrize(
    ("annotation", "status", "why"),
    [
        ("new", READY, ""),
        ("old", READY, "still runs the previous configuration"),
        # The kubelet still tells what the former one has offered.
        ("new", waiting("ErrImagePull"), "8 of 8 nvidia.com/gpu allocatable: plugin pod kube-system/plugin-x waits"),
        ("new", {"phase": "Pending"}, "plugin pod kube-system/plugin-x is being created"),
    ],
)
def test_the_plugin_has_to_be_current(annotation: str, status: Any, why: str) -> None:
    question = Question(pod_annotations={"sum": "new"})
    (report,) = assess([node("w1", 8)], [plugin(status, annotations={"sum": annotation})], question, {"w1": 8})
    assert report.ok is (not why)
    assert why in report.reason


@pytest.mark.parametrize(("reported", "ok"), [("now", True), ("before", False), ("", False)])
def test_what_was_reported_before_a_boot_does_not_count(reported: str, ok: bool) -> None:
    booted = node("w1", 8)
    booted["status"]["nodeInfo"] = {"bootID": reported} if reported else {}
    question = Question(boot_ids={"w1": "now"})
    reports = assess([booted, node("w2", 8)], [plugin(), plugin(on="w2")], question, {"w1": 8, "w2": 8})
    assert [report.ok for report in reports] == [ok, True]
    assert ok or reports[0].reason.startswith("its kubelet has not reported since the host was booted")


def test_without_expectation_each_node_offers_what_it_has() -> None:
    nodes = [node("cpu"), node("full", 2), node("ill", 2, 1), node("bare", labels=GPU_LABEL)]
    reports = assess(nodes, [], QUESTION)
    assert [(report.name, report.ok) for report in reports] == [("bare", False), ("full", True), ("ill", False)]


FOLDER = [{"name": "d", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}]


@pytest.mark.parametrize(
    ("rival", "found"),
    [
        (
            pod("g-1", on="w1", namespace="gpu", image="reg/acs/k8s-gpushare-plugin:v2", volumes=FOLDER, owner="g"),
            ["gpu/g"],
        ),
        (pod("n", on="w1", namespace="x", image="nvcr.io/nvidia/k8s-device-plugin:v1", volumes=FOLDER), ["x/n"]),
        (pod("gfd", on="w1", image="nvcr.io/nvidia/k8s-device-plugin:v1"), []),
        (pod("amd", on="w1", image="docker.io/rocm/k8s-device-plugin:1", volumes=FOLDER), []),
        (pod("fpga", on="w1", image="example/fpga-plugin:1", volumes=FOLDER), []),
        (plugin(image="nvcr.io/nvidia/k8s-device-plugin:v1", volumes=FOLDER), []),
    ],
)
def test_foreign_plugins(rival: Any, found: list[str]) -> None:
    (report,) = assess([node("w1", 8)], [rival], QUESTION, {"w1": 8})
    assert report.foreign_plugins == found


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
def test_remedies_name_the_role_of_the_resource(resource: str, labels: Any, taints: Any, remedy: str) -> None:
    question = Question(resource)
    (report,) = assess(
        [node("w1", labels=labels, taints=taints)], [], question, {"w1": 8}, daemon_sets=[daemon_set(GPU_LABEL)]
    )
    assert report.reason.endswith(remedy)
    (report,) = assess([node("w1")], [], question, {"w1": 8})
    roles = {"nvidia.com": "k8s_device_plugin", "aliyun.com": "gpushare"}
    assert report.reason.endswith(f"deploy it with the role {roles.get(resource.partition('/')[0], 'nano_gpu')}")


def test_gpu_operator() -> None:
    (report,) = assess([node("w1", labels={"nvidia.com/gpu.deploy.device-plugin": "true"})], [], QUESTION, {"w1": 0})
    assert report.gpu_operator


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", ""),
        ("one\ntwo\n", "two"),
        ("error: a\nall fine", "error: a"),
        ("2026-01-01T10:00:00.1Z error x", "error x"),
        ("E1121 11:00:00.1 1 a.go:1] b\nFailed to initialize NVML: x\nerror exit", "Failed to initialize NVML: x"),
        ("x" * 400, "x" * 299 + "…"),
        (f"I1121 11:00:00.1 1 a.go:1] Loading NVML\npanic: no map\n\n{TRACE}", "panic: no map"),
        (f"SIGSEGV: segmentation violation\n{TRACE}", "SIGSEGV: segmentation violation"),
        (TRACE, ""),
    ],
)
def test_telling_line(log: str, line: str) -> None:
    assert telling_line(log) == line


def patience(timeout: float = 0) -> tuple[Patience, FakeClock]:
    clock = FakeClock()
    return Patience(timeout, 5, clock, clock.sleep), clock


def test_survey_asks_for_two_lists_when_all_is_well() -> None:
    cluster = FakeCluster([node(f"w{number}", 1) for number in range(50)], [])
    assert all(report.ok for report in survey(cluster, QUESTION, None, patience()[0]))
    assert sorted(cluster.calls) == ["nodes", "pods"]


def test_survey_leaves_other_nodes_alone_when_one_is_asked_about() -> None:
    """A pod that is on no node yet may be meant for it, and is explained."""
    coming = plugin(status={"phase": "Pending"})
    coming["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["w1"]}]}
    ]}}}  # fmt: skip
    del coming["spec"]["nodeName"]
    cluster = FakeCluster(
        [node(f"w{number}", 1) for number in range(50)], [coming, pod("own", on="w1", gpus=1), pod("far", on="w2")]
    )

    def placed(api: FakeCluster) -> None:
        if api.calls == ["node", "pods", "pods"]:
            coming["spec"]["nodeName"] = "w1"

    for _round in range(2):
        cluster.calls.clear()
        (report,) = survey(cluster, QUESTION, {"w1": 1}, patience()[0])
        assert (report.ok, report.allocated, report.plugin_pod) == (True, 1, "plugin-x")
        assert cluster.calls == ["node", "pods", "pods"]
        cluster.on_list = placed
    (report,) = survey(cluster, QUESTION, {"gone": 1}, patience()[0])
    assert (report.known, "nodes" in cluster.calls) == (False, False)
    assert "is not in the cluster" in report.reason


def test_survey_explains_with_log_and_events() -> None:
    cluster = FakeCluster([node("w1")], [plugin()])
    cluster.logs["plugin-x"] = NVML_LOG
    (report,) = survey(cluster, QUESTION, {"w1": 8}, patience()[0])
    assert "No devices found" in report.reason
    assert cluster.calls.count("events") == 1
    assert cluster.calls.count("log") == 1
    assert "daemon_sets" not in cluster.calls


def test_survey_waits_until_the_gpus_appear() -> None:
    cluster = FakeCluster([node("w1")], [plugin()])
    held, clock = patience(60)

    def appear(api: FakeCluster) -> None:
        if clock.time >= 10:
            api.store_nodes["w1"] = node("w1", 8)

    cluster.on_list = appear
    (report,) = survey(cluster, QUESTION, {"w1": 8}, held)
    assert report.ok
    assert clock.time == 10


@pytest.mark.parametrize(("status", "passing"), [(0, True), (503, True), (403, False)])
def test_survey_waits_for_a_server_that_is_away(status: int, passing: bool) -> None:
    cluster = FakeCluster([node("w1", 8)], [plugin()])
    held, clock = patience(60)

    def away(_api: FakeCluster) -> None:
        if clock.time < 10:
            raise ApiError("away", status)

    cluster.on_list = away
    if passing:
        assert [report.ok for report in survey(cluster, QUESTION, {"w1": 8}, held)] == [True]
        assert clock.time == 10
    else:
        with pytest.raises(ApiError):
            survey(cluster, QUESTION, {"w1": 8}, held)


def test_survey_gives_up_when_time_is_up() -> None:
    cluster = FakeCluster([node("w1")], [])
    cluster.daemon_set_list = [daemon_set(GPU_LABEL)]
    held, clock = patience(12)
    (report,) = survey(cluster, QUESTION, {"w1": 8}, held)
    assert "lacks the label" in report.reason
    assert clock.time == 12


def test_survey_explains_as_well_as_it_may() -> None:
    cluster = FakeCluster([node("w1"), node("w2")], [plugin()])

    def forbid(_namespace: str) -> Any:
        raise ApiError("forbidden", 403)

    cluster.daemon_sets = cluster.warning_events = forbid  # type: ignore[method-assign, assignment]
    reports = survey(cluster, QUESTION, {"w1": 8, "w2": 8}, patience()[0])
    assert ["has offered no GPU" in reports[0].reason, "no plugin pod" in reports[1].reason] == [True, True]
