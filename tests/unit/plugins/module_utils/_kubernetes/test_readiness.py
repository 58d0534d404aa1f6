# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each reason why a node lacks allocatable GPUs, and its message."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.kubernetes_api import FakeClock, FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.pod_failures import Evidence, find_error_line
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.readiness import Query, assess_nodes
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.retries import Timing, Wait
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.survey import survey_nodes

LABELS = {"name": "nvidia-device-plugin-ds"}
QUERY = Query()
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


def test_assess_nodes_as_expected_has_no_reason() -> None:
    (report,) = assess_nodes([node("w1", 8)], [plugin(), pod("user", on="w1", gpus=3)], QUERY, {"w1": 8})
    assert (report.ok, report.reason, report.allocated, report.plugin_pod) == (True, "", 3, "plugin-x")


def test_assess_nodes_in_maintenance_names_time_and_reason() -> None:
    text = '{"was_schedulable": true, "reason": "driver 580", "since": "2026-08-23T07:00:00Z"}'
    cordoned = node("w1", 2, annotations={"gpu-kubernetes/maintenance": text}, unschedulable=True)
    [report] = assess_nodes([cordoned], [plugin()], QUERY, {"w1": 2})
    assert report.ok
    assert report.maintenance is not None
    assert report.reason == report.maintenance["message"]
    assert "since 2026-08-23T07:00:00Z for driver 580; run its playbook again" in report.reason
    [lacking] = assess_nodes([cordoned], [plugin()], QUERY, {"w1": 3})
    assert (lacking.ok, lacking.maintenance) == (False, report.maintenance)
    [free] = assess_nodes([node("w1", 2)], [plugin()], QUERY, {"w1": 2})
    assert free.maintenance is None


def test_assess_nodes_without_control_characters_in_texts() -> None:
    bad = "\x1b]0;x\x07"
    failing_pod = plugin(waiting(bad, bad))
    failing_pod["status"]["containerStatuses"][0]["image"] = bad
    shown = node("w1", 2, 1)
    shown["status"]["nodeInfo"] = {"containerRuntimeVersion": bad * 1000}
    [report] = assess_nodes([shown], [failing_pod], QUERY, {"w1": 2})
    assert "waits (\\x1b]0;x\\x07)" in report.reason
    assert report.reason.isprintable()
    assert len(report.container_runtime_version) <= 300
    assert report.container_runtime_version.isprintable()


def test_find_error_line_of_a_long_line_returns() -> None:
    """The pattern of a stack trace must not backtrack exponentially."""
    assert find_error_line("a." * 100000).startswith("a.a.")


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


def test_assess_nodes_without_expectation_compares_capacity() -> None:
    nodes = [node("cpu"), node("full", 2), node("ill", 2, 1), node("bare", labels=GPU_LABEL)]
    reports = assess_nodes(nodes, [], QUERY)
    assert [(report.name, report.ok) for report in reports] == [("bare", False), ("full", True), ("ill", False)]


FOLDER = [{"name": "d", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}]


@pytest.mark.parametrize(
    ("other_plugin", "found"),
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
def test_find_other_plugins_by_image(other_plugin: Any, found: list[str]) -> None:
    (report,) = assess_nodes([node("w1", 8)], [other_plugin], QUERY, {"w1": 8})
    assert report.unmanaged_plugins == found


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


def test_survey_nodes_reads_the_cluster_policy_if_a_reported_node_has_a_label_of_the_operator() -> None:
    label = "nvidia.com/gpu.deploy.device-plugin"
    cluster = FakeCluster([node("w1", labels={label: "true"}), node("w2", labels={label: "false"}), node("w3")])
    cluster.policies = [{"spec": {"driver": {"enabled": False}}}]
    reports = survey_nodes(cluster, QUERY, {"w1": 0, "w2": 0}).reports
    assert [report.gpu_operator for report in reports] == [
        ["toolkit", "device_plugin", "feature_discovery", "mig_manager"],
        ["toolkit", "feature_discovery", "mig_manager"],
    ]
    assert cluster.calls.count("cluster_policies") == 1
    [report] = survey_nodes(cluster, QUERY, {"w3": 0}).reports
    assert (report.gpu_operator, cluster.calls.count("cluster_policies")) == ([], 1)
    # An operator that was removed has left its labels.
    cluster.policies = []
    assert survey_nodes(cluster, QUERY, {"w1": 0}).reports[0].gpu_operator == []


@pytest.mark.parametrize(
    ("log", "line"),
    [
        ("", ""),
        ("one\ntwo\n", "two"),
        ("error: a\nall fine", "error: a"),
        ("error: no answer of http://me:opensesame@p", "error: no answer of http://********@p"),
        ("2026-01-01T10:00:00.1Z error x", "error x"),
        ("E1121 11:00:00.1 1 a.go:1] b\nFailed to initialize NVML: x\nerror exit", "Failed to initialize NVML: x"),
        ("x" * 400, "x" * 299 + "…"),
        (f"I1121 11:00:00.1 1 a.go:1] Loading NVML\npanic: no map\n\n{TRACE}", "panic: no map"),
        (f"SIGSEGV: segmentation violation\n{TRACE}", "SIGSEGV: segmentation violation"),
        (TRACE, ""),
    ],
)
def test_find_error_line_of_each_log(log: str, line: str) -> None:
    assert find_error_line(log) == line


def start_wait(seconds: float) -> tuple[Wait, FakeClock]:
    clock = FakeClock()
    return Wait(Timing(clock, clock.sleep), seconds, 5, 5), clock


def test_survey_nodes_as_expected_makes_two_lists() -> None:
    cluster = FakeCluster([node(f"w{number}", 1) for number in range(50)], [])
    assert all(report.ok for report in survey_nodes(cluster, QUERY, None).reports)
    assert sorted(cluster.calls) == ["nodes", "pods"]


def test_survey_nodes_of_one_node_does_not_list_others() -> None:
    """A pod without a node may belong to this one, so it is reported."""
    pending_pod = plugin(status={"phase": "Pending"})
    pending_pod["spec"]["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["w1"]}]}
    ]}}}  # fmt: skip
    del pending_pod["spec"]["nodeName"]
    cluster = FakeCluster(
        [node(f"w{number}", 1) for number in range(50)], [pending_pod, pod("own", on="w1", gpus=1), pod("far", on="w2")]
    )

    def schedule(api: FakeCluster) -> None:
        if api.calls == ["node", "pods", "pods"]:
            pending_pod["spec"]["nodeName"] = "w1"

    for _round in range(2):
        cluster.calls.clear()
        (report,) = survey_nodes(cluster, QUERY, {"w1": 1}).reports
        assert (report.ok, report.allocated, report.plugin_pod) == (True, 1, "plugin-x")
        assert cluster.calls == ["node", "pods", "pods"]
        cluster.on_list = schedule
    (report,) = survey_nodes(cluster, QUERY, {"gone": 1}).reports
    assert (report.known, "nodes" in cluster.calls) == (False, False)
    assert "is not in the cluster" in report.reason


def test_survey_nodes_with_failure_reads_log_and_events() -> None:
    cluster = FakeCluster([node("w1")], [plugin()])
    cluster.logs["plugin-x"] = NVML_LOG
    (report,) = survey_nodes(cluster, QUERY, {"w1": 8}).reports
    assert "No devices found" in report.reason
    assert cluster.calls.count("events") == 1
    assert cluster.calls.count("log") == 1
    assert "daemon_sets" not in cluster.calls


def test_survey_nodes_with_wait_returns_once_gpus_appear() -> None:
    cluster = FakeCluster([node("w1")], [plugin()])
    wait, clock = start_wait(60)

    def appear(api: FakeCluster) -> None:
        if clock.time >= 10:
            api.store_nodes["w1"] = node("w1", 8)

    cluster.on_list = appear
    (report,) = survey_nodes(cluster, QUERY, {"w1": 8}, wait).reports
    assert report.ok
    assert clock.time == 10


@pytest.mark.parametrize(("status", "is_transient"), [(0, True), (503, True), (403, False)])
def test_survey_nodes_with_unreachable_server_retries(status: int, is_transient: bool) -> None:
    cluster = FakeCluster([node("w1", 8)], [plugin()])
    wait, clock = start_wait(60)

    def fail(_api: FakeCluster) -> None:
        if clock.time < 10:
            raise ApiError("cannot be reached", status)

    cluster.on_list = fail
    if is_transient:
        assert [report.ok for report in survey_nodes(cluster, QUERY, {"w1": 8}, wait).reports] == [True]
        assert clock.time == 10
    else:
        with pytest.raises(ApiError):
            survey_nodes(cluster, QUERY, {"w1": 8}, wait)


def test_survey_nodes_after_timeout_reports_failure() -> None:
    cluster = FakeCluster([node("w1")], [])
    cluster.daemon_set_list = [daemon_set(GPU_LABEL)]
    wait, clock = start_wait(12)
    (report,) = survey_nodes(cluster, QUERY, {"w1": 8}, wait).reports
    assert "lacks the label" in report.reason
    assert clock.time == 12


def test_survey_nodes_without_rights_explains_the_rest() -> None:
    cluster = FakeCluster([node("w1"), node("w2")], [plugin()])

    def forbid(_namespace: str) -> Any:
        raise ApiError("forbidden", 403)

    cluster.daemon_sets = cluster.warning_events = forbid  # type: ignore[method-assign, assignment]
    reports = survey_nodes(cluster, QUERY, {"w1": 8, "w2": 8}).reports
    assert ["has registered no GPU" in reports[0].reason, "no plugin pod" in reports[1].reason] == [True, True]


def test_survey_nodes_names_others_in_maintenance_without_further_requests() -> None:
    text = '{"since": "2026-08-23T07:00:00Z", "reason": "driver", "was_schedulable": true}'
    annotations = {"gpu-kubernetes/maintenance": text}
    nodes = [
        node("w1", 8),
        node("w3", annotations=annotations, unschedulable=True),
        node("w2", annotations=annotations),
        node("w4", unschedulable=True),
    ]
    cluster = FakeCluster(nodes, [plugin()])
    others = survey_nodes(cluster, QUERY, {"w1": 8, "w9": 1}, explain=False).others_in_maintenance
    assert [(each["name"], each["schedulable"]) for each in others] == [("w2", True), ("w3", False)]
    assert "driver" in others[0]["maintenance"]["message"]
    assert len(cluster.calls) == 2


def test_assess_nodes_without_the_pod_of_the_mps_daemon() -> None:
    """The pods of NVIDIA's chart have the same labels."""
    daemon = pod(
        "mps-x",
        on="w1",
        namespace="kube-system",
        labels=LABELS,
        status=READY,
        owner="nvidia-device-plugin-mps-control-daemon",
    )
    [report] = assess_nodes([node("w1", 1)], [daemon, plugin(owner="nvidia-device-plugin")], QUERY, {"w1": 1})
    assert (report.as_dict()["plugin_pod"], report.ok) == ("plugin-x", True)
    [report] = assess_nodes([node("w1", 1)], [daemon], QUERY, {"w1": 1})
    assert report.as_dict()["plugin_pod"] == ""
