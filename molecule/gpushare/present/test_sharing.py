# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node shares its GPU by memory, the other does not; the real kube-scheduler asks stand-ins of gpushare's programs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

testinfra_hosts = ["ansible://kube_control_plane"]

CONVERGE = str(Path(__file__).parents[1] / "converge.yml")
SHARED, WHOLE = "molecule-worker-1", "molecule-worker-2"
SHARES = {"aliyun.com/gpu-mem": "320", "aliyun.com/gpu-count": "8"}
MEMORY, COUNT, GPU = "aliyun.com/gpu-mem", "aliyun.com/gpu-count", "nvidia.com/gpu"
Apply = Callable[..., tuple[int, dict[str, dict[str, int]], str]]


@pytest.fixture
def apply(playbook: Any) -> Apply:
    """Run the playbook with other variables, and without the proof: exit code, recap, what was said in one line."""

    def run(
        name: str = CONVERGE, *words: str, skipped: str = "smoke_test", **variables: Any
    ) -> tuple[int, dict[str, dict[str, int]], str]:
        code, recap, said = playbook(name, "--skip-tags", skipped, "-e", json.dumps(variables), *words)
        return code, recap, " ".join(said.split())

    return run


@pytest.fixture
def pods(gpu_pods: Any) -> Callable[..., Any]:
    """Start a pod that asks for an amount of memory, or of another resource on another node."""
    return lambda amount, resource=MEMORY, node=SHARED: gpu_pods(amount, resource, node)


def extenders(api: Any) -> list[Any]:
    return api.list_namespaced_pod("kube-system", label_selector="component=gpushare-schd-extender").items


def test_each_node_offers_what_it_was_told_to(api: Any, offered: Any) -> None:
    assert offered(SHARED) == SHARES
    assert offered(WHOLE) == {GPU: "2"}
    assert api.read_node(SHARED).metadata.labels["gpushare"] == "true"
    assert "gpushare" not in api.read_node(WHOLE).metadata.labels


def test_the_extender_is_beside_the_scheduler(api: Any, host: Any) -> None:
    [pod] = extenders(api)
    assert pod.spec.node_name == host.backend.get_hostname()
    assert (
        "http://127.0.0.1:12345/gpushare-scheduler"
        in host.file("/etc/kubernetes/gpu-kubernetes-scheduler.yaml").content_string
    )


@pytest.mark.parametrize(
    ("account", "verb", "resource", "allowed"),
    [
        ("gpushare-schd-extender", "create", "pods/binding", True),
        ("gpushare-schd-extender", "delete", "pods", False),
        ("gpushare-schd-extender", "get", "secrets", False),
        ("gpushare-schd-extender", "patch", "nodes", False),
        ("gpushare-device-plugin", "patch", "nodes/status", True),
        ("gpushare-device-plugin", "get", "nodes/proxy", False),
        ("gpushare-device-plugin", "list", "configmaps", False),
        ("gpushare-device-plugin", "create", "pods/binding", False),
    ],
)
def test_accounts_may_do_what_they_must(api: Any, account: str, verb: str, resource: str, allowed: bool) -> None:
    name, _slash, part = resource.partition("/")
    attributes = {"verb": verb, "resource": name, "subresource": part, "namespace": "default"}
    review = client.AuthorizationV1Api(api.api_client).create_subject_access_review(
        {"spec": {"user": f"system:serviceaccount:kube-system:{account}", "resourceAttributes": attributes}}
    )
    assert review.status.allowed is allowed


def test_two_pods_share_the_gpu_and_the_report_says_so(pods: Any, apply: Apply, tmp_path: Path) -> None:
    both = [pods(3), pods(5)]
    for pod in both:
        assert pod.status.phase == "Running", pod.status
        assert pod.metadata.annotations["ALIYUN_COM_GPU_MEM_IDX"] == "0"
    report = tmp_path / "allocation.json"
    asked = {"gpushare_report_format": "json", "gpushare_report_path": str(report), "gpushare_report_details": True}
    code, _recap, said = apply("show_gpu_allocation", **asked)
    assert code == 0, said
    told = json.loads(report.read_text())
    [node] = told["nodes"]
    assert (node["name"], node["gpus"][0]) == (SHARED, {"index": 0, "total": 40, "allocated": 8})
    assert (node["allocated"], node["total"], told["unit"], told["findings"]) == (8, 320, "GiB", [])
    assert {each["name"] for each in node["pods"]} == {pod.metadata.name for pod in both}


def test_a_pod_that_no_gpu_has_room_for_waits_and_says_why(pods: Any) -> None:
    pod = pods(41)
    assert pod.spec.node_name is None
    assert any("Insufficient GPU Memory in one device" in (each.message or "") for each in pod.status.conditions)


def test_without_the_extender_only_pods_that_share_wait(pods: Any, api: Any, apps: Any, apply: Apply) -> None:
    [before] = extenders(api)
    apps.delete_namespaced_daemon_set("gpushare-schd-extender", "kube-system", propagation_policy="Foreground")
    for _ in range(60):
        if not extenders(api):
            break
        time.sleep(0.5)
    assert pods(1, resource=GPU, node=WHOLE).status.phase == "Running"
    waiting = pods(1)
    assert waiting.spec.node_name is None
    assert any("connection refused" in (each.message or "") for each in waiting.status.conditions)
    code, _recap, said = apply("deploy_gpushare", gpu_nodes_group=SHARED)
    assert code == 0, said
    [after] = extenders(api)
    assert after.metadata.uid != before.metadata.uid
    assert pods(1).status.phase == "Running"


def test_another_node_starts_the_extender_anew_and_leaves_the_first_alone_when_it_goes(
    api: Any, offered: Any, apply: Apply
) -> None:
    [before] = extenders(api)
    both = {"gpu_nodes_group": "gpu_nodes", "gpushare_allow_unequal_gpus": True}
    code, _recap, said = apply("deploy_gpushare", **both)
    assert code == 0, said
    assert offered(WHOLE) == {MEMORY: "80", COUNT: "2"}
    [between] = extenders(api)
    assert between.metadata.uid != before.metadata.uid
    code, _recap, said = apply("remove_gpushare", gpu_nodes_group=WHOLE)
    assert code == 0, said
    assert f"extender and device plugin, which {SHARED} still needs." in said
    for _ in range(60):
        if offered(WHOLE) == {GPU: "2"}:
            break
        time.sleep(0.5)
    assert (offered(SHARED), offered(WHOLE)) == (SHARES, {GPU: "2"})


def test_a_wrong_address_leaves_a_scheduler_that_schedules(pods: Any, apply: Apply) -> None:
    code, _recap, said = apply(
        gpushare_extender_url="http://127.0.0.1:1/gpushare-scheduler", gpushare_smoke_test_timeout=30, skipped="none"
    )
    assert code != 0
    assert "connection refused" in said
    assert pods(1, resource=GPU, node=WHOLE).status.phase == "Running"
    code, _recap, said = apply()
    assert code == 0, said


def test_what_cannot_be_shared_is_refused_before_anything_is_touched(pods: Any, offered: Any, apply: Apply) -> None:
    code, recap, said = apply(gpu_nodes_group=WHOLE)
    assert code != 0
    assert "gpushare takes the memory of the first for that of each" in said
    code, recap, said = apply(gpushare_memory_unit="MiB")
    assert code != 0
    assert "has 327680 MiB of GPU memory, and the kubelet refuses messages of more than 4 MiB" in said
    pod = pods(1, resource=GPU, node=WHOLE)
    assert pod.status.phase == "Running"
    code, recap, said = apply(gpu_nodes_group=WHOLE, gpushare_allow_unequal_gpus=True)
    assert code != 0
    assert f"Node {WHOLE}: pods hold whole GPUs" in said
    assert sum(counts["changed"] for counts in recap.values()) == 0
    assert offered(WHOLE) == {GPU: "2"}


def test_it_does_not_go_while_pods_share(pods: Any, offered: Any, apply: Apply) -> None:
    pods(1)
    code, recap, said = apply("remove_gpushare", gpu_nodes_group=SHARED)
    assert code != 0
    assert f"Node {SHARED}: pods hold aliyun.com/gpu-mem" in said
    assert sum(counts["changed"] for counts in recap.values()) == 0
    assert offered(SHARED) == SHARES
