# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, Callable

import pytest
from fakes.kubernetes_api import FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.cluster import read_cluster
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.judge import judge
from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.plan import ANNOTATION, Maintenance

NOW = datetime(2026, 11, 27, 12, 0, 0, tzinfo=timezone.utc)
VOLUME = {"name": "plugins", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}
PLUGIN = {"image": "nvcr.io/nvidia/k8s-device-plugin:v0.18.0", "owner": "nvidia-device-plugin", "volumes": [VOLUME]}


class DoctorCluster(FakeCluster):
    """A fake API server that also has events and further kinds, and refuses the kinds of ``forbidden``."""

    server_time = NOW

    def __init__(self, nodes: list[Any], pods: list[Any] | None = None, **lists: list[Any]) -> None:
        super().__init__(nodes, pods)
        self.lists = {"RuntimeClass": [{"metadata": {"name": "nvidia"}, "handler": "nvidia"}], **lists}
        self.leases = [
            {"metadata": {"name": item["metadata"]["name"]}, "spec": {"renewTime": "2026-11-27T11:59:55.000000Z"}}
            for item in nodes
        ]
        self.forbidden: set[str] = set()

    def gather(self, resource: str, keep: Callable[[Any], Any], fields: str = "") -> list[Any]:
        if resource != "events":
            return super().gather(resource, keep, fields)
        self._record_call("events")
        return [some for some in map(keep, self.lists.get("Event", [])) if some is not None]

    def objects(self, api_version: str, kind: str, *_arguments: Any, **_more: Any) -> list[Any]:
        self._record_call(kind)
        if kind in self.forbidden:
            raise ApiError(f"cannot list {kind}", 403)
        return self.lists.get(kind, [])

    def pod_log(self, namespace: str, name: str, lines: int, previous: bool = False) -> str:
        self._record_call(f"log {name}")
        return self.logs.get(name, "")


def plugin(name: str, on: str, **parts: Any) -> Any:
    return pod(name, on=on, namespace="kube-system", **{**PLUGIN, **parts})


def event(about: str, message: str, on: str = "", reason: str = "Failed") -> Any:
    return {
        "type": "Warning",
        "reason": reason,
        "message": message,
        "source": {"host": on},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": about},
        "lastTimestamp": "2026-11-27T11:59:00Z",
    }


def find(cluster: DoctorCluster, verdict: str = "fail") -> list[tuple[str, str, str]]:
    report = judge([], read_cluster(cluster))  # type: ignore[arg-type]
    groups = [report["cluster"], *report["hosts"]]
    results = [result for group in groups for result in group["checks"] if result["verdict"] == verdict]
    return [(result["id"], result["host"], result["details"][0]) for result in results]


LABELS = {"nvidia.com/gpu.present": "true"}


def test_read_cluster_of_healthy_cluster_finds_nothing() -> None:
    cluster = DoctorCluster([node("w1", 2), node("cp1")], [plugin("p1", "w1"), pod("job", on="w1", gpus=1)])
    observed = read_cluster(cluster)  # type: ignore[arg-type]
    assert list(observed["nodes"]) == ["w1"]
    assert observed["nodes"]["w1"]["allocated"] == {"nvidia.com/gpu": 1}
    assert observed["nodes"]["w1"]["lease_age_seconds"] == 5.0
    assert observed["nodes"]["w1"]["pods"] == ["uid-job"]
    assert observed["errors"] == {}
    assert find(cluster) == find(cluster, "warn") == []


@pytest.mark.parametrize("count", [1, 40])
def test_read_cluster_makes_as_many_calls_for_many_nodes(count: int) -> None:
    nodes = [node(f"w{number}", 2) for number in range(count)]
    pods = [plugin(f"p{number}", f"w{number}") for number in range(count)]
    cluster = DoctorCluster(nodes, pods)
    read_cluster(cluster)  # type: ignore[arg-type]
    assert cluster.calls == ["nodes", "pods", "leases", "events", "DaemonSet", "RuntimeClass"]


def test_read_cluster_reads_at_most_five_logs() -> None:
    nodes = [node(f"w{number}", labels=LABELS) for number in range(9)]
    cluster = DoctorCluster(nodes, [plugin(f"p{number}", f"w{number}") for number in range(9)])
    cluster.logs = {"p0": "I1127 12:00:00.0 1 main.go:1] No devices found. Waiting indefinitely."}
    found = find(cluster)
    assert sum(call.startswith("log") for call in cluster.calls) == 5
    assert ("pl.log", "w0", "the device plugin reports: No devices found. Waiting indefinitely.") in found


def test_node_with_gpus_of_another_vendor_needs_no_plugin_of_nvidia() -> None:
    other = node("w1")
    other["status"].update(capacity={"amd.com/gpu": "2"}, allocatable={"amd.com/gpu": "1"})
    limits = [{"name": "c", "resources": {"limits": {"amd.com/gpu": "1"}}}]
    cluster = DoctorCluster([other], [pod("job", on="w1", containers=limits)])
    assert read_cluster(cluster)["nodes"]["w1"]["pods"] == ["uid-job"]  # type: ignore[arg-type]
    assert find(cluster) == [("kl.unhealthy", "w1", "1 of 2 amd.com/gpu are healthy")]


def test_node_that_this_collection_left_cordoned_warns_with_time_and_reason() -> None:
    record = Maintenance(True, "driver 580", "2026-11-27T07:00:00Z").as_text()
    left = node("w1", 2, annotations={ANNOTATION: record}, unschedulable=True)
    [(check, host, detail)] = find(DoctorCluster([left], [plugin("p1", "w1")]), "warn")
    assert (check, host) == ("sc.maintenance", "w1")
    assert (
        "cordoned, and in maintenance by this collection since 2026-11-27T07:00:00Z for driver 580; run the" in detail
    )


FAULTS = [
    ("pl.daemonset", "w1", "no device plugin of GPUs runs on the node", {"pods": []}),
    ("kl.unhealthy", "w1", "1 of 2 nvidia.com/gpu are healthy", {"nodes": [node("w1", 2, allocatable=1)]}),
    ("kl.ready", "w1", "the node is not Ready: CNI is missing", {"nodes": [node("w1", 2, ready=False)]}),
    (
        "pl.twice",
        "w1",
        "2 device plugins offer the same GPUs: kube-system/nvidia-device-plugin, kube-system/other",
        {"pods": [plugin("p1", "w1"), plugin("p2", "w1", owner="other")]},
    ),
    (
        "pl.preferred",
        "w1",
        "default/job: GetPreferredAllocation rpc failed: GPU is lost",
        {"Event": [event("job", "GetPreferredAllocation rpc failed: GPU is lost", "w1")]},
    ),
    (
        "kl.checkpoint",
        "w1",
        None,
        {
            "Event": [
                event(
                    "job",
                    "Allocate failed due to requested number of devices unavailable for nvidia.com/gpu. Requested: 1, Available: 0",
                    "w1",
                )
            ]
        },
    ),
    (
        "sc.extender",
        "",
        "default/job: failed to run extender http://10.0.0.9: connection refused",
        {"Event": [event("job", "failed to run extender http://10.0.0.9: connection refused")]},
    ),
    (
        "pod.runtime_class",
        "",
        "DaemonSet kube-system/plugin uses the RuntimeClass nvidia, which does not exist",
        {
            "RuntimeClass": [],
            "DaemonSet": [
                {
                    "metadata": {"name": "plugin", "namespace": "kube-system"},
                    "spec": {"template": {"spec": {"runtimeClassName": "nvidia"}}},
                }
            ],
        },
    ),
]


@pytest.mark.parametrize(("check", "host", "detail", "changes"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_read_cluster_of_one_fault_fails_one_check(
    check: str, host: str, detail: str | None, changes: dict[str, Any]
) -> None:
    given = {"nodes": [node("w1", 2)], "pods": [plugin("p1", "w1")], **changes}
    found = find(DoctorCluster(given.pop("nodes"), given.pop("pods"), **given))
    if check == "kl.checkpoint":  # it reads the kubelet's file too
        assert found == []
        return
    assert found == [(check, host, detail)]


def pending(name: str, message: str, gpus: int = 1, **parts: Any) -> Any:
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    return pod(name, gpus=gpus, status={"phase": "Pending", "conditions": [condition]}, **parts)


@pytest.mark.parametrize(
    ("gpus", "message", "check", "verdict", "detail"),
    [
        (
            2,
            "2 Insufficient nvidia.com/gpu.",
            "sc.free",
            "warn",
            "pod default/job requests 2 nvidia.com/gpu: 2 are free and at most 1 on one node; w1 has the most",
        ),
        (
            9,
            "2 Insufficient nvidia.com/gpu.",
            "sc.free",
            "info",
            "pod default/job requests 9 nvidia.com/gpu: 2 are free in the cluster",
        ),
        (
            1,
            "1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 Insufficient cpu.",
            "sc.other",
            "warn",
            "pod default/job waits: 1 node(s) had untolerated taint {node-role.kubernetes.io/control-plane: }, 2 Insufficient cpu.",
        ),
        (
            1,
            'Post "http://x/filter": failed to run extender: connection refused',
            "sc.extender",
            "fail",
            'Post "http://x/filter": failed to run extender: connection refused',
        ),
    ],
)
def test_read_cluster_of_pending_pod_says_why(gpus: int, message: str, check: str, verdict: str, detail: str) -> None:
    held = [pod("a", on="w1", gpus=1), pod("b", on="w2", gpus=1)]
    plugins = [plugin("p1", "w1"), plugin("p2", "w2")]
    cluster = DoctorCluster([node("w1", 2), node("w2", 2)], [*plugins, *held, pending("job", message, gpus)])
    assert find(cluster, verdict) == [(check, "", detail)]


@pytest.mark.parametrize(
    ("taints", "tolerations", "check"),
    [
        (["a", "a"], [], "sc.taint"),
        (["a", ""], [], "sc.other"),
        (["a", "a"], [{"key": "a", "operator": "Exists"}], "sc.other"),
    ],
)
def test_read_cluster_of_pending_pod_compares_taints_of_nodes_with_room(
    taints: list[str], tolerations: list[Any], check: str
) -> None:
    nodes = [
        node(f"w{number}", 1, taints=[{"key": key, "effect": "NoSchedule"}] if key else [])
        for number, key in enumerate(taints)
    ]
    full = node("w9", 1)
    pods = [plugin(f"p{item['metadata']['name']}", item["metadata"]["name"]) for item in [*nodes, full]]
    waiting = pending("job", "3 node(s) are not available.", tolerations=tolerations)
    cluster = DoctorCluster([*nodes, full], [*pods, pod("holder", on="w9", gpus=1), waiting])
    assert find(cluster, "warn") == [(check, "", "pod default/job waits: 3 node(s) are not available.")]


@pytest.mark.parametrize(
    ("times", "ready_since", "counts"),
    [
        ({"lastTimestamp": "2026-11-27T11:51:00Z"}, None, True),
        ({"lastTimestamp": "2026-11-27T11:49:00Z"}, None, False),
        ({"lastTimestamp": "2026-11-27T11:49:00Z", "series": {"lastObservedTime": "2026-11-27T11:58:00Z"}}, None, True),
        ({"lastTimestamp": "2026-11-27T11:58:00Z"}, "2026-11-27T11:59:00Z", False),
        ({"lastTimestamp": "2026-11-27T11:58:00Z"}, "2026-11-27T11:57:00Z", True),
        ({"lastTimestamp": "2026-11-27T12:58:00Z"}, "2026-11-27T11:57:00Z", True),
        ({"lastTimestamp": None}, "2026-11-27T11:59:00Z", True),
        ({"lastTimestamp": "yesterday"}, None, True),
    ],
)
def test_read_cluster_leaves_out_old_events(times: dict[str, Any], ready_since: str | None, counts: bool) -> None:
    worker = node("w1", 2)
    worker["status"]["conditions"][0]["lastTransitionTime"] = ready_since
    old = {**event("job", "GetPreferredAllocation rpc failed: GPU is lost", "w1"), **times}
    found = find(DoctorCluster([worker], [plugin("p1", "w1")], Event=[old]))
    assert [check for check, _host, _detail in found] == (["pl.preferred"] if counts else [])


def test_read_cluster_names_pods_that_bypass_kubernetes() -> None:
    miner = pod("miner", on="w1")
    miner["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    exporter = pod("exporter", on="w1", owner="dcgm-exporter")
    exporter["spec"]["containers"][0]["env"] = [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    found = find(DoctorCluster([node("w1", 2)], [plugin("p1", "w1"), miner, exporter]), "warn")
    assert found == [("pod.bypass", "", "pod default/miner has NVIDIA_VISIBLE_DEVICES and requests no GPU")]


def test_read_cluster_without_rights_names_what_is_missing() -> None:
    cluster = DoctorCluster([node("w1", 2)], [plugin("p1", "w1")])
    cluster.forbidden = {"RuntimeClass", "DaemonSet"}
    observed = read_cluster(cluster)  # type: ignore[arg-type]
    assert observed["errors"] == {"daemon_sets": "cannot list DaemonSet", "runtime_classes": "cannot list RuntimeClass"}
    assert ("pod.runtime_class", "", "the RuntimeClasses cannot be read") in find(cluster, "unknown")


def test_read_cluster_has_no_environment_and_no_credentials() -> None:
    job = pod("job", on="w1", gpus=1)
    job["spec"]["containers"][0]["env"] = [{"name": "DB_PASSWORD", "value": "hunter22"}]
    message = "exceeded quota: gpus https://me:hunter22@x/ requests.nvidia.com/gpu=1"
    cluster = DoctorCluster([node("w1", 2)], [plugin("p1", "w1"), job], Event=[event("a", message)])
    observed = read_cluster(cluster)  # type: ignore[arg-type]
    assert "hunter22" not in str(observed)
    assert observed["events"]["quota"]


def test_read_cluster_ignores_runtime_classes_of_others() -> None:
    template = {"spec": {"template": {"spec": {"runtimeClassName": "gvisor"}}}}
    sandbox = {"metadata": {"name": "sandbox", "namespace": "default"}, **template}
    cluster = DoctorCluster(
        [node("w1", 2)], [plugin("p1", "w1"), pod("x", on="w1", runtimeClassName="kata")], DaemonSet=[sandbox]
    )
    assert read_cluster(cluster)["class_users"] == {}  # type: ignore[arg-type]
    job = pod("job", on="w1", gpus=1, runtimeClassName="gvisor")
    cluster = DoctorCluster([node("w1", 2)], [plugin("p1", "w1"), job])
    assert find(cluster) == [
        ("pod.runtime_class", "", "pod default/job uses the RuntimeClass gvisor, which does not exist")
    ]
