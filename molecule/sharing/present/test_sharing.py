# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``site`` takes a node from whole GPUs to gpushare, on to nano-gpu and back. The tests are one story, in their order.

The other node keeps NVIDIA's device plugin. The real kube-scheduler asks fakes of the extenders, and fakes of the plugins offer the resources.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes.admission_cases import GPUSHARE, OTHER, OWN, POD, Case
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from lab import fingerprint as prints
from lab.wait import until

CONFIG = "/etc/kubernetes/gpu-kubernetes-scheduler.yaml"
CONTROL_PLANE, SHARED, WHOLE = "molecule-control-plane", "molecule-worker-1", "molecule-worker-2"
GPU, MEMORY, COUNT, PERCENT = "nvidia.com/gpu", "aliyun.com/gpu-mem", "aliyun.com/gpu-count", "nano-gpu/gpu-percent"
#: Strategy -> what a node with eight A100 offers, its labels of those that count, and the resources that kube-scheduler asks an extender about.
STRATEGIES: dict[str, tuple[dict[str, str], set[str], list[list[str]]]] = {
    "exclusive": ({GPU: "8"}, set(), []),
    "gpushare": ({MEMORY: "320", COUNT: "8"}, {"gpushare"}, [[MEMORY]]),
    "nano_gpu": ({PERCENT: "800"}, {"gpu-kubernetes/nano-gpu"}, [[PERCENT]]),
}
#: Permission to evict pods that nobody starts again.
EVICTING = {"gpu_sharing_migrate": True, "gpu_node_maintenance_force": True}
FIRST_ALONE = {"gpu_nodes_group": "gpu_nodes[0]"}
#: All that a change takes; the rest of site is the scenario default's.
TAGS = ("--tags", "device_plugin,sharing,scheduler")
Run = Callable[..., tuple[int, int, str]]


@pytest.fixture(scope="module", autouse=True)
def before(settings: Any) -> dict[str, str]:
    """Nodes and cluster as they are before the first test."""
    return prints.take(settings)


@pytest.fixture
def control_plane(machine_named: Callable[[str], Any]) -> Any:
    """The machine of kube-scheduler. Not testinfra's `host`: pytest would take the tests that have it first."""
    return machine_named(CONTROL_PLANE)


@pytest.fixture
def apply(playbook: Any) -> Run:
    """Run a playbook with variables: exit code, count of changes, all that it printed in one line."""

    def run(name: str, *words: str, **variables: Any) -> tuple[int, int, str]:
        code, recap, printed = playbook(name, *words, "-e", json.dumps(variables))
        return code, sum(counts["changed"] for counts in recap.values()), " ".join(printed.split())

    return run


@pytest.fixture
def site(apply: Run) -> Run:
    """The same for what a change of the first node's strategy takes of site."""
    return lambda strategy, **more: apply("site", *TAGS, **FIRST_ALONE, gpu_sharing_strategy=strategy, **more)


@pytest.fixture
def smoke_test(apply: Run, api: Any) -> Callable[[str], None]:
    """Run the smoke test of a strategy on the first node, which passes and leaves no pod."""

    def run(strategy: str) -> None:
        code, changed, printed = apply("smoke_test_gpu_nodes", **FIRST_ALONE, gpu_sharing_strategy=strategy)
        assert (code, changed) == (0, 0), printed
        assert "SKIPPED" not in printed
        left = api.list_pod_for_all_namespaces(label_selector="app.kubernetes.io/name=gpu-smoke-test").items
        assert left == []

    return run


@pytest.fixture
def seen(api: Any, control_plane: Any, offered: Any) -> Callable[[], tuple[dict[str, str], set[str], list[list[str]]]]:
    """Which strategy the first node has, as STRATEGIES has it. The other one is as it was."""

    def look() -> tuple[dict[str, str], set[str], list[list[str]]]:
        assert offered(WHOLE) == {GPU: "2"}
        labels = set(api.read_node(SHARED).metadata.labels) & {"gpushare", "gpu-kubernetes/nano-gpu"}
        config = control_plane.file(CONFIG)
        extenders = yaml.safe_load(config.content_string)["extenders"] if config.exists else []
        return offered(SHARED), labels, [[each["name"] for each in one["managedResources"]] for one in extenders]

    return look


@pytest.fixture(scope="module")
def held(lasting_gpu_pods: Any) -> Any:
    """A pod that has a share of a GPU from here on, until something evicts it."""
    return lasting_gpu_pods(3, MEMORY, SHARED)


def gone(api: Any, pod: Any) -> bool:
    try:
        return bool(api.read_namespaced_pod(pod.metadata.name, "default").metadata.deletion_timestamp)
    except ApiException as error:
        return bool(error.status == 404)


def extenders(api: Any) -> list[Any]:
    return api.list_namespaced_pod("kube-system", label_selector="component=gpushare-schd-extender").items


def test_from_whole_gpus_to_gpushare(seen: Any, site: Run, control_plane: Any, api: Any) -> None:
    assert seen() == STRATEGIES["exclusive"]
    code, changed, printed = site("gpushare")
    assert (code, changed > 0) == (0, True), printed
    assert seen() == STRATEGIES["gpushare"]
    assert not api.read_node(SHARED).spec.unschedulable
    [pod] = extenders(api)
    assert pod.spec.node_name == CONTROL_PLANE
    assert "http://127.0.0.1:12345/gpushare-scheduler" in control_plane.file(CONFIG).content_string


@pytest.mark.thorough
def test_gpushare_again_changes_nothing(site: Run) -> None:
    code, changed, printed = site("gpushare")
    assert (code, changed) == (0, 0), printed


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


@pytest.fixture
def patch_as(api: Any) -> Callable[[Case, str], str]:
    """Try a change as the account of a case, on a pod or its node, as a dry run: the reason why an admission policy refuses it, else empty."""

    def change(case: Case, pod: str) -> str:
        other = client.ApiClient(api.api_client.configuration)
        other.set_default_header("Impersonate-User", f"system:serviceaccount:kube-system:{case.account}")
        node = {OWN: SHARED, OTHER: WHOLE}.get(case.token, "")
        if node:
            other.set_default_header("Impersonate-Extra-authentication.kubernetes.io%2Fnode-name", node)
        core = client.CoreV1Api(other)
        try:
            if case.resource == "pods":
                core.patch_namespaced_pod(pod, "default", case.patch, dry_run="All")
            else:
                core.patch_node_status(SHARED, case.patch, dry_run="All")
        except ApiException as error:
            return str(json.loads(error.body)["message"])
        return ""

    return change


@pytest.fixture
def changed_pod(api: Any) -> Iterator[str]:
    """The name of a pod on the first node that has the labels and annotations of the cases. It need not run."""
    metadata = {key: POD["metadata"][key] for key in ("name", "labels", "annotations")}
    spec = {"nodeName": SHARED, "containers": [{"name": "main", "image": "lab.local/none:none"}]}
    api.create_namespaced_pod("default", {"metadata": metadata, "spec": spec})
    yield metadata["name"]
    api.delete_namespaced_pod(metadata["name"], "default", grace_period_seconds=0)
    until(
        lambda: [pod.metadata.name for pod in api.list_namespaced_pod("default").items],
        lambda names: "pod" not in names,
    )


def test_admission_policies_allow_only_annotations_of_the_strategy(changed_pod: str, patch_as: Any) -> None:
    refusals = {name: patch_as(case, changed_pod) for name, case in GPUSHARE.items()}
    policies = {name: "ValidatingAdmissionPolicy" in reason for name, reason in refusals.items()}
    assert policies == {name: not case.allowed for name, case in GPUSHARE.items()}, refusals
    assert [reason for name, reason in refusals.items() if reason and not policies[name]] == []


def test_two_pods_share_the_gpu_and_the_report_says_so(gpu_pods: Any, apply: Run, tmp_path: Path) -> None:
    both = [gpu_pods(amount, MEMORY, SHARED) for amount in (3, 5)]
    assert [pod.metadata.annotations["ALIYUN_COM_GPU_MEM_IDX"] for pod in both] == ["0", "0"]
    path = tmp_path / "allocation.json"
    options = {"gpushare_report_format": "json", "gpushare_report_path": str(path), "gpushare_report_details": True}
    code, _changed, printed = apply("show_gpu_allocation", **options)
    assert code == 0, printed
    report = json.loads(path.read_text())
    [node] = report["nodes"]
    assert (node["name"], node["gpus"][0]) == (SHARED, {"index": 0, "total": 40, "allocated": 8})
    assert (node["allocated"], node["total"], report["unit"], report["findings"]) == (8, 320, "GiB", [])
    assert {each["name"] for each in node["pods"]} == {pod.metadata.name for pod in both}


def test_smoke_test_of_shared_memory_passes(smoke_test: Callable[[str], None]) -> None:
    smoke_test("gpushare")


@pytest.mark.thorough
def test_without_the_extender_only_pods_that_share_are_pending(gpu_pods: Any, api: Any, apps: Any, site: Run) -> None:
    [former] = extenders(api)
    apps.delete_namespaced_daemon_set("gpushare-schd-extender", "kube-system", propagation_policy="Foreground")
    until(lambda: [pod.metadata.name for pod in extenders(api)], lambda names: not names)
    gpu_pods(1, GPU, WHOLE)
    gpu_pods(1, MEMORY, SHARED, waits="connection refused")
    code, _changed, printed = site("gpushare")
    assert code == 0, printed
    [present] = extenders(api)
    assert present.metadata.uid != former.metadata.uid
    gpu_pods(1, MEMORY, SHARED)


@pytest.mark.thorough
def test_another_node_restarts_the_extender_and_leaves_the_first_alone_when_it_goes(
    api: Any, offered: Any, apply: Run
) -> None:
    [former] = extenders(api)
    both = {"gpu_nodes_group": "gpu_nodes", "gpushare_allow_unequal_gpus": True}
    code, _changed, printed = apply("share_gpus", "--skip-tags", "smoke_test", gpu_sharing_strategy="gpushare", **both)
    assert code == 0, printed
    assert offered(WHOLE) == {MEMORY: "80", COUNT: "2"}
    [present] = extenders(api)
    assert present.metadata.uid != former.metadata.uid
    code, _changed, printed = apply("remove_gpu_nodes", "--tags", "sharing,scheduler", gpu_nodes_group=WHOLE)
    assert code == 0, printed
    assert f"extender and device plugin; {SHARED} still needs them." in printed
    shares = STRATEGIES["gpushare"][0]
    until(lambda: (offered(SHARED), offered(WHOLE)), lambda found: found == (shares, {GPU: "2"}))


def test_a_change_is_refused_while_pods_hold_gpus(held: Any, seen: Any, site: Run, apply: Run, api: Any) -> None:
    code, changed, printed = site("nano_gpu")
    assert (code != 0, changed) == (True, 0), printed
    assert "pods hold GPUs" in printed
    assert "gpu_sharing_migrate" in printed
    assert not gone(api, held)
    assert seen() == STRATEGIES["gpushare"]
    code, changed, printed = apply("plan", **FIRST_ALONE, gpu_sharing_strategy="nano_gpu")
    assert (code != 0, changed) == (True, 0), printed
    assert f"{SHARED} {SHARED} gpushare nano_gpu cordon, leave gpushare, enter nano_gpu, uncordon" in printed
    assert f"BLOCKED: Host {SHARED} (node {SHARED}): its GPUs are shared as gpushare, nano_gpu is requested" in printed


@pytest.mark.thorough
def test_a_wrong_extender_url_leaves_a_scheduler_that_schedules(gpu_pods: Any, apply: Run) -> None:
    wrong = {
        "gpushare_extender_url": "http://127.0.0.1:1/gpushare-scheduler",
        "gpu_smoke_test_timeout": 30,  # which has to run out
    }
    code, _changed, printed = apply("share_gpus", gpu_nodes_group=SHARED, gpu_sharing_strategy="gpushare", **wrong)
    assert code != 0
    assert "connection refused" in printed
    gpu_pods(1, GPU, WHOLE)


#: A task at which the run is killed, one that waits; and the node's label and kube-scheduler's extenders then.
STEPS = {
    "old-plugin-leaves": ("Node absent | Wait until the nodes report no shares", {"gpushare"}, [[MEMORY]]),
    "extender-starts": ("Extender | Wait until all pods of the extender are ready", {"gpushare"}, [[MEMORY]]),
    "new-plugin-comes": ("Node present | Wait until every node reports", {"gpu-kubernetes/nano-gpu"}, [[PERCENT]]),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("task", "labels", "extenders"), STEPS.values(), ids=STEPS)
def test_change_from_gpushare_to_nano_gpu_is_interrupted(
    held: Any,
    seen: Any,
    killed_at: Any,
    api: Any,
    offered: Any,
    task: str,
    labels: set[str],
    extenders: list[list[str]],
) -> None:
    """Each run resumes the one before, and comes one step further."""
    extra = {**FIRST_ALONE, **EVICTING, "gpu_sharing_strategy": "nano_gpu"}
    killed_at("site", task, *TAGS, "-e", json.dumps(extra))
    assert gone(api, held)
    # Whichever plugin is there, the node is cordoned, so that no pod gets its GPUs.
    assert seen()[1:] == (labels, extenders)
    assert api.read_node(SHARED).spec.unschedulable
    assert GPU not in offered(SHARED)


def test_from_gpushare_to_nano_gpu(held: Any, seen: Any, site: Run, api: Any) -> None:
    """In ``make test-all``, this run resumes the interrupted ones."""
    code, changed, printed = site("nano_gpu", **EVICTING)
    assert (code, changed > 0) == (0, True), printed
    assert gone(api, held)
    assert seen() == STRATEGIES["nano_gpu"]
    assert not api.read_node(SHARED).spec.unschedulable


@pytest.mark.thorough
def test_nano_gpu_again_changes_nothing(site: Run) -> None:
    code, changed, printed = site("nano_gpu", **EVICTING)
    assert (code, changed) == (0, 0), printed


def test_pods_share_by_percent(gpu_pods: Any, machine_named: Any) -> None:
    pods = [gpu_pods(amount, PERCENT, SHARED) for amount in (60, 60, 40)]
    assert [pod.metadata.annotations["nano-gpu/container-gpu"] for pod in pods] == ["0", "1", "0"]
    # The agent has linked each container to its GPU.
    links = machine_named(SHARED).check_output("readlink /dev/nano-gpu-*").split()
    assert sorted(links) == ["/dev/nvidia0", "/dev/nvidia0", "/dev/nvidia1"]
    gpu_pods(101, PERCENT, SHARED, waits="no GPU has as much nano-gpu/gpu-percent free")


def test_smoke_test_of_shared_percents_passes(smoke_test: Callable[[str], None]) -> None:
    smoke_test("nano_gpu")


def test_and_back_to_whole_gpus(seen: Any, site: Run, api: Any, gpu_pods: Any) -> None:
    pod = gpu_pods(20, PERCENT, SHARED)
    code, _changed, printed = site("exclusive", **EVICTING)
    assert code == 0, printed
    assert gone(api, pod)
    assert seen() == STRATEGIES["exclusive"]
    assert not api.read_node(SHARED).spec.unschedulable
    gpu_pods(1, GPU, SHARED)


def test_nodes_and_cluster_are_as_before(before: dict[str, str], settings: Any) -> None:
    """Among them the manifest of kube-scheduler, to the byte."""
    assert prints.remaining(before, settings) == []
