# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node changes from whole GPUs to gpushare, then to nano-gpu and back. Each test depends on the tests before it.

In ``make test-all``, it has MIG devices before gpushare, and the other node changes from whole GPUs to gpushare and back; otherwise the other node keeps
NVIDIA's device plugin. The real kube-scheduler calls fakes of the extenders, and fakes of the plugins report the resources.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fakes.admission_cases import GPUSHARE, OTHER, OWN, POD, Case
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from lab import fingerprint as prints
from lab import strategies
from lab.wait import until

CONFIG = "/etc/kubernetes/gpu-kubernetes-scheduler.yaml"
CONTROL_PLANE, SHARED, WHOLE = "molecule-control-plane", "molecule-worker-1", "molecule-worker-2"
GPU, MEMORY, COUNT, PERCENT = "nvidia.com/gpu", "aliyun.com/gpu-mem", "aliyun.com/gpu-count", "nano-gpu/gpu-percent"
#: Strategy -> allocatable of a node with eight A100, its labels of the strategies, and the resources of each extender in kube-scheduler's configuration.
STRATEGIES: dict[str, tuple[dict[str, str], set[str], list[list[str]]]] = {
    "exclusive": ({GPU: "8"}, set(), []),
    "gpushare": ({MEMORY: "320", COUNT: "8"}, {"gpushare"}, [[MEMORY]]),
    "nano_gpu": ({PERCENT: "800"}, {"gpu-kubernetes/nano-gpu"}, [[PERCENT]]),
}
#: Permission to evict pods without a controller.
EVICTION = {"gpu_sharing_migrate": True, "gpu_node_maintenance_force": True}
FIRST_NODE = {"gpu_nodes_group": "gpu_nodes[0]"}
#: The tags of a change of the strategy, without and with the smoke test; the scenario default tests the rest of site.
TAGS = ("--tags", "device_plugin,sharing,scheduler")
TESTED = ("--tags", "device_plugin,sharing,scheduler,smoke_test")
#: The second node keeps whole GPUs.
TO_GPUSHARE = strategies.by_node(strategies.variables("gpushare"), strategies.WHOLE)
TO_MIG = strategies.by_node(strategies.SINGLE, strategies.WHOLE)
Run = Callable[..., tuple[int, int, str]]


@pytest.fixture(scope="module", autouse=True)
def before(settings: Any) -> dict[str, str]:
    """Nodes and cluster as they are before the first test."""
    return prints.take(settings)


@pytest.fixture
def control_plane(get_machine: Callable[[str], Any]) -> Any:
    """The machine of kube-scheduler. Not testinfra's `host`: pytest would take the tests that have it first."""
    return get_machine(CONTROL_PLANE)


@pytest.fixture
def apply(playbook: Any) -> Run:
    """Run a playbook with variables: exit code, count of changes, output in one line."""

    def run(name: str, *words: str, **variables: Any) -> tuple[int, int, str]:
        code, recap, printed = playbook(name, *words, "-e", json.dumps(variables))
        return code, sum(counts["changed"] for counts in recap.values()), " ".join(printed.split())

    return run


@pytest.fixture
def change(apply: Run, watch_owners: Any) -> Run:
    """Change the strategy of the first node with share_gpus. At no time two plugins own its GPUs."""

    def run(strategy: str, words: tuple[str, ...] = TAGS, **more: Any) -> tuple[int, int, str]:
        with watch_owners(SHARED):
            return apply("share_gpus", *words, **FIRST_NODE, gpu_sharing_strategy=strategy, **more)

    return run


def list_smoke_test_pods(api: Any) -> list[Any]:
    return api.list_pod_for_all_namespaces(label_selector="app.kubernetes.io/name=gpu-smoke-test").items


@pytest.fixture
def read_strategy(
    api: Any, control_plane: Any, read_allocatable: Any
) -> Callable[[], tuple[dict[str, str], set[str], list[list[str]]]]:
    """Read the strategy of the first node in the form of STRATEGIES, and check that the other node is as before."""

    def read() -> tuple[dict[str, str], set[str], list[list[str]]]:
        assert read_allocatable(WHOLE) == {GPU: "2"}
        labels = set(api.read_node(SHARED).metadata.labels) & {"gpushare", "gpu-kubernetes/nano-gpu"}
        config = control_plane.file(CONFIG)
        extenders = yaml.safe_load(config.content_string)["extenders"] if config.exists else []
        return (
            read_allocatable(SHARED),
            labels,
            [[each["name"] for each in one["managedResources"]] for one in extenders],
        )

    return read


@pytest.fixture(scope="module")
def shared_pod(start_lasting_gpu_pod: Any) -> Any:
    """A pod with a share of a GPU, until it is evicted."""
    return start_lasting_gpu_pod(3, MEMORY, SHARED)


def is_gone(api: Any, pod: Any) -> bool:
    try:
        return bool(api.read_namespaced_pod(pod.metadata.name, "default").metadata.deletion_timestamp)
    except ApiException as error:
        return bool(error.status == 404)


def list_extender_pods(api: Any) -> list[Any]:
    return api.list_namespaced_pod("kube-system", label_selector="component=gpushare-schd-extender").items


@pytest.mark.thorough
def test_node_has_mig_devices_first(apply: Run, read_allocatable: Any) -> None:
    """They are tested in the scenario nvidia_sharing; here gpushare replaces them."""
    code, _changed, printed = apply("share_gpus", *TAGS, **TO_MIG, **strategies.RESET)
    assert code == 0, printed
    assert (read_allocatable(SHARED), read_allocatable(WHOLE)) == ({GPU: "56"}, {GPU: "2"})


def test_site_changes_the_node_to_gpushare(
    read_strategy: Any, apply: Run, watch_owners: Any, control_plane: Any, api: Any
) -> None:
    """From whole GPUs; in ``make test-all`` from MIG devices, for which the GPUs may be reset."""
    assert read_strategy()[1:] == STRATEGIES["exclusive"][1:]
    with watch_owners(SHARED):
        code, changed, printed = apply("site", *TESTED, **TO_GPUSHARE, **strategies.RESET)
    assert (code, changed > 0) == (0, True), printed
    assert "SKIPPED" not in printed
    assert list_smoke_test_pods(api) == []
    assert read_strategy() == STRATEGIES["gpushare"]
    assert not api.read_node(SHARED).spec.unschedulable
    [pod] = list_extender_pods(api)
    assert pod.spec.node_name == CONTROL_PLANE
    assert "http://127.0.0.1:12345/gpushare-scheduler" in control_plane.file(CONFIG).content_string


@pytest.mark.thorough
def test_mig_has_left_the_node(get_machine: Any) -> None:
    """Neither MIG mode nor compute mode is set, and no unit applies a layout at boot."""
    machine = get_machine(SHARED)
    state = machine.check_output("cat /run/nvml-fake/state")
    assert set(re.findall(r"^gpu \S+ (\d \d \d)$", state, re.MULTILINE)) == {"0 0 0"}
    assert not machine.file("/etc/systemd/system/gpu-kubernetes-mig.service").exists


@pytest.mark.thorough
def test_gpushare_repeated_changes_nothing(change: Run) -> None:
    code, changed, printed = change("gpushare")
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
def test_accounts_have_the_required_permissions(
    api: Any, account: str, verb: str, resource: str, allowed: bool
) -> None:
    name, _slash, part = resource.partition("/")
    attributes = {"verb": verb, "resource": name, "subresource": part, "namespace": "default"}
    review = client.AuthorizationV1Api(api.api_client).create_subject_access_review(
        {"spec": {"user": f"system:serviceaccount:kube-system:{account}", "resourceAttributes": attributes}}
    )
    assert review.status.allowed is allowed


@pytest.fixture
def patch_as(api: Any) -> Callable[[Case, str], str]:
    """Dry-run a change of a pod or its node as the account of a case. Returns the error message, or an empty string."""

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


def test_two_pods_share_a_gpu_and_the_report_lists_them(start_gpu_pod: Any, apply: Run, tmp_path: Path) -> None:
    both = [start_gpu_pod(amount, MEMORY, SHARED) for amount in (3, 5)]
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


@pytest.mark.thorough
def test_missing_extender_and_wrong_url_block_only_pods_that_share(
    start_gpu_pod: Any, api: Any, apps: Any, apply: Run
) -> None:
    """The run with the wrong URL creates the missing extender; the next test's run corrects the URL."""
    [former] = list_extender_pods(api)
    apps.delete_namespaced_daemon_set("gpushare-schd-extender", "kube-system", propagation_policy="Foreground")
    until(lambda: [pod.metadata.name for pod in list_extender_pods(api)], lambda names: not names)
    start_gpu_pod(1, GPU, WHOLE)
    start_gpu_pod(1, MEMORY, SHARED, pending_reason="connection refused")
    wrong = {
        "gpushare_extender_url": "http://127.0.0.1:1/gpushare-scheduler",
        "gpu_smoke_test_timeout": 30,  # the test waits for it
    }
    code, _changed, printed = apply(
        "share_gpus", "--skip-tags", "labels", gpu_nodes_group=SHARED, gpu_sharing_strategy="gpushare", **wrong
    )
    assert code != 0
    assert "connection refused" in printed
    [present] = list_extender_pods(api)
    assert present.metadata.uid != former.metadata.uid
    start_gpu_pod(1, GPU, WHOLE)


@pytest.mark.thorough
def test_second_node_is_added_and_removed_beside_the_first(api: Any, read_allocatable: Any, apply: Run) -> None:
    [former] = list_extender_pods(api)
    both = {"gpu_nodes_group": "gpu_nodes", "gpushare_allow_unequal_gpus": True}
    code, _changed, printed = apply("share_gpus", *TAGS, gpu_sharing_strategy="gpushare", **both)
    assert code == 0, printed
    assert read_allocatable(WHOLE) == {MEMORY: "80", COUNT: "2"}
    [present] = list_extender_pods(api)
    assert present.metadata.uid != former.metadata.uid
    code, _changed, printed = apply("remove_gpu_nodes", "--tags", "sharing,scheduler", gpu_nodes_group=WHOLE)
    assert code == 0, printed
    assert f"extender and device plugin; {SHARED} still needs them." in printed
    shares = STRATEGIES["gpushare"][0]
    until(lambda: (read_allocatable(SHARED), read_allocatable(WHOLE)), lambda found: found == (shares, {GPU: "2"}))


def test_change_is_refused_while_pods_hold_gpus(
    shared_pod: Any, read_strategy: Any, change: Run, apply: Run, api: Any
) -> None:
    """By the run that would change the node, and by the playbook that prints the plan only."""
    for code, changed, printed in (
        change("nano_gpu"),
        apply("plan", *TAGS, **FIRST_NODE, gpu_sharing_strategy="nano_gpu"),
    ):
        assert (code != 0, changed) == (True, 0), printed
        assert f"{SHARED} {SHARED} gpushare nano_gpu cordon, leave gpushare, enter nano_gpu, uncordon" in printed
        assert (
            f"BLOCKED: Host {SHARED} (node {SHARED}): its GPUs are shared as gpushare, nano_gpu is requested" in printed
        )
        assert "pods hold GPUs" in printed
        assert "gpu_sharing_migrate" in printed
    assert not is_gone(api, shared_pod)
    assert read_strategy() == STRATEGIES["gpushare"]


#: A waiting task at which the run is killed; and the node's label and kube-scheduler's extenders at that moment.
STEPS = {
    "old-plugin-is-removed": ("Node absent | Wait until the nodes report no shares", {"gpushare"}, [[MEMORY]]),
    "scheduler-restarts": ("Wait | Wait until the kubelet has restarted the scheduler", {"gpushare"}, [[PERCENT]]),
    "new-plugin-starts": ("Node present | Wait until every node reports", {"gpu-kubernetes/nano-gpu"}, [[PERCENT]]),
}


@pytest.mark.thorough
@pytest.mark.parametrize(("task", "labels", "extenders"), STEPS.values(), ids=STEPS)
def test_interrupted_change_to_nano_gpu_keeps_the_node_cordoned(
    shared_pod: Any,
    read_strategy: Any,
    kill_run_at: Any,
    api: Any,
    read_allocatable: Any,
    task: str,
    labels: set[str],
    extenders: list[list[str]],
) -> None:
    """Each run resumes the former one, and gets one step further."""
    extra = {**FIRST_NODE, **EVICTION, "gpu_sharing_strategy": "nano_gpu"}
    kill_run_at("share_gpus", task, *TAGS, "-e", json.dumps(extra))
    assert is_gone(api, shared_pod)
    # The node is cordoned with either plugin: no pod gets its GPUs.
    assert read_strategy()[1:] == (labels, extenders)
    assert api.read_node(SHARED).spec.unschedulable
    assert GPU not in read_allocatable(SHARED)


def test_gpushare_is_left_for_nano_gpu(shared_pod: Any, read_strategy: Any, change: Run, api: Any) -> None:
    """In ``make test-all``, this run resumes the interrupted ones."""
    code, changed, printed = change("nano_gpu", TESTED, **EVICTION)
    assert (code, changed > 0) == (0, True), printed
    assert "SKIPPED" not in printed
    assert list_smoke_test_pods(api) == []
    assert is_gone(api, shared_pod)
    assert read_strategy() == STRATEGIES["nano_gpu"]
    assert not api.read_node(SHARED).spec.unschedulable


@pytest.mark.thorough
def test_nano_gpu_repeated_changes_nothing(change: Run) -> None:
    code, changed, printed = change("nano_gpu", **EVICTION)
    assert (code, changed) == (0, 0), printed


def list_links(machine: Any) -> Counter[str]:
    """The links of nano-gpu's agent to GPUs, by target. The agent keeps those of deleted pods."""
    return Counter(machine.check_output("find /dev -name 'nano-gpu-*' -printf '%l\n'").split())


def test_pods_share_by_percent(start_gpu_pod: Any, get_machine: Any) -> None:
    former = list_links(get_machine(SHARED))
    pods = [start_gpu_pod(amount, PERCENT, SHARED) for amount in (60, 60, 40)]
    assert [pod.metadata.annotations["nano-gpu/container-gpu"] for pod in pods] == ["0", "1", "0"]
    # The agent has linked each container to its GPU.
    assert list_links(get_machine(SHARED)) - former == {"/dev/nvidia0": 2, "/dev/nvidia1": 1}
    start_gpu_pod(101, PERCENT, SHARED, pending_reason="no GPU has as much nano-gpu/gpu-percent free")


def test_nano_gpu_is_left_for_whole_gpus(read_strategy: Any, change: Run, api: Any, start_gpu_pod: Any) -> None:
    pod = start_gpu_pod(20, PERCENT, SHARED)
    code, _changed, printed = change("exclusive", **EVICTION)
    assert code == 0, printed
    assert is_gone(api, pod)
    assert read_strategy() == STRATEGIES["exclusive"]
    assert not api.read_node(SHARED).spec.unschedulable
    start_gpu_pod(1, GPU, SHARED)


def test_nodes_and_cluster_are_as_before(before: dict[str, str], settings: Any) -> None:
    """This includes the manifest of kube-scheduler."""
    assert prints.remaining(before, settings) == []
