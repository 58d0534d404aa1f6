# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``site`` offers GPUs of AMD on one node and of Intel on the other, then of both on one, then of Intel alone.

Each test depends on the tests before it. API server, kubelet, scheduler and containerd are real. The GPUs are fake trees of sysfs and null devices; the
device plugins, AMD's node labeller, rocminfo and clinfo are fakes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fakes.gpu_sysfs import RENDER_GROUP
from lab import cluster, vendors
from lab import fingerprint as prints
from lab.fakes.build import CLINFO, ROCMINFO
from lab.strategies import FIRST, GPU, SECOND
from lab.wait import until

AMD, INTEL, PARTITION = "amd.com/gpu", "gpu.intel.com/i915", "amd.com/cpx_nps4"
PRESENT = {AMD: "gpu-kubernetes/amd.present", INTEL: "gpu-kubernetes/intel.present"}
TAGS = ("--tags", "driver,labels,device_plugin,sharing")
REMOVED = ("--tags", "device_plugin,labels")
LABELLER = {"gpu_feature_discovery_components": ["amd_labeller"]}
#: The kind by which AMD's GPU operator owns the device plugin, without its schema, and an object of it.
OPERATOR_KIND: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "deviceconfigs.amd.com"},
    "spec": {
        "group": "amd.com",
        "names": {
            "kind": "DeviceConfig",
            "listKind": "DeviceConfigList",
            "plural": "deviceconfigs",
            "singular": "deviceconfig",
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
OPERATOR = {
    "apiVersion": "amd.com/v1alpha1",
    "kind": "DeviceConfig",
    "metadata": {"name": "default", "namespace": "default"},
}
Run = Callable[..., tuple[int, int, str]]


@pytest.fixture(scope="module", autouse=True)
def before(settings: Any) -> dict[str, str]:
    """Nodes and cluster as they are before the first test."""
    return prints.take(settings)


@pytest.fixture
def set_gpus(settings: Any) -> Callable[..., None]:
    """Give the two nodes the GPUs of two cases of tests/fakes/gpu_sysfs.py, beside those of NVIDIA."""

    def set_both(first: str, second: str) -> None:
        machines = {node.name: node for node in settings.nodes}
        vendors.set_gpus(machines[FIRST], first)
        vendors.set_gpus(machines[SECOND], second)

    return set_both


@pytest.fixture
def run(playbook: Any) -> Run:
    """Run a playbook that finds the fake GPUs: exit code, count of changes, output in one line."""

    def execute(name: str, *words: str, **variables: Any) -> tuple[int, int, str]:
        code, recap, printed = playbook(name, *words, "-e", json.dumps({"gpu_devices_root": vendors.ROOT, **variables}))
        return code, sum(counts["changed"] for counts in recap.values()), " ".join(printed.split())

    return execute


@pytest.fixture
def read_granted(api: Any) -> Iterator[Callable[..., tuple[set[str], str]]]:
    """Run a pod with one device, not as root: the device nodes that it was granted, and its output."""
    created: list[str] = []

    def read(image: str, command: str, resource: str, node: str) -> tuple[set[str], str]:
        container = {"name": "gpu", "image": image, "command": [command], "resources": {"limits": {resource: "1"}}}
        spec = {
            "restartPolicy": "Never",
            "nodeSelector": {"kubernetes.io/hostname": node},
            "securityContext": {"runAsUser": 65534, "supplementalGroups": [RENDER_GROUP]},
            "containers": [container],
        }
        metadata = {"generateName": "granted-"}
        name = api.create_namespaced_pod("default", {"metadata": metadata, "spec": spec}).metadata.name
        created.append(name)
        until(
            lambda: api.read_namespaced_pod(name, "default").status.phase,
            lambda phase: phase in {"Succeeded", "Failed"},
        )
        printed = api.read_namespaced_pod_log(name, "default")
        return set(re.findall(r"^granted (\S+)$", printed, re.MULTILINE)), printed

    yield read
    for name in created:
        api.delete_namespaced_pod(name, "default", grace_period_seconds=0)


def read_present(api: Any) -> dict[str, list[str]]:
    """Vendor's resource -> the nodes with the label of its GPUs."""
    nodes = api.list_node().items
    return {
        resource: sorted(node.metadata.name for node in nodes if node.metadata.labels.get(label) == "true")
        for resource, label in PRESENT.items()
    }


def list_labels_of_amd(api: Any, node: str) -> list[str]:
    """The labels that AMD's labeller writes."""
    return [name for name in api.read_node(node).metadata.labels if "amd.com/gpu." in name]


def test_check_mode_reports_the_plugins_and_changes_nothing(set_gpus: Any, run: Run, fingerprint: Any) -> None:
    set_gpus("amd", "intel-i915")
    former = fingerprint()
    code, changed, printed = run("site", *TAGS, "--check")
    assert (code, changed > 0) == (0, True), printed
    assert prints.compare(former, fingerprint()) == []


def test_site_offers_the_gpus_of_each_vendor(run: Run, api: Any, read_allocatable: Any) -> None:
    code, changed, printed = run("site", *TAGS)
    assert (code, changed > 0) == (0, True), printed
    assert read_allocatable(FIRST) == {GPU: "8", AMD: "2"}
    assert read_allocatable(SECOND) == {GPU: "2", INTEL: "1"}
    assert read_present(api) == {AMD: [FIRST], INTEL: [SECOND]}


def test_plugin_images_are_fakes(apps: Any) -> None:
    for name in ("amdgpu-device-plugin-daemonset", "intel-gpu-plugin"):
        daemon_set = apps.read_namespaced_daemon_set(name, "kube-system")
        assert "/fake/" in daemon_set.spec.template.spec.containers[0].image
        assert daemon_set.status.number_ready == 1


def test_labeller_labels_the_node_of_amd(run: Run, api: Any, apps: Any) -> None:
    code, changed, printed = run("deploy_feature_discovery", **LABELLER)
    assert (code, changed > 0) == (0, True), printed
    labels = until(
        lambda: api.read_node(FIRST).metadata.labels, lambda found: found.get("beta.amd.com/gpu.vram.192G") == "2"
    )
    assert (labels["amd.com/gpu.vram"], labels["amd.com/gpu.cu-count"]) == ("192G", "304")
    assert list_labels_of_amd(api, SECOND) == []
    (daemon_set,) = apps.list_namespaced_daemon_set("node-feature-discovery").items
    assert "/fake/" in daemon_set.spec.template.spec.containers[0].image
    code, changed, printed = run("deploy_feature_discovery", **LABELLER)
    assert (code, changed) == (0, 0), printed


@pytest.mark.parametrize("words", [(), ("--check",)], ids=["run", "check"])
def test_second_run_changes_nothing(run: Run, words: tuple[str, ...]) -> None:
    code, changed, printed = run("site", *TAGS, *words)
    assert (code, changed) == (0, 0), printed


def test_pod_of_amd_gets_one_gpu_and_kfd(read_granted: Any) -> None:
    granted, printed = read_granted(ROCMINFO, "rocminfo", AMD, FIRST)
    number = min(granted).removeprefix("/dev/dri/card")
    assert granted == {"/dev/kfd", f"/dev/dri/card{number}", f"/dev/dri/renderD{128 + int(number)}"}
    assert "ROCk module is loaded" in printed


def test_pod_of_intel_gets_one_gpu(read_granted: Any) -> None:
    granted, printed = read_granted(CLINFO, "clinfo", INTEL, SECOND)
    assert granted == {"/dev/dri/card0", "/dev/dri/renderD128"}
    assert re.search(r"Number of devices +1$", printed, re.MULTILINE)


def test_smoke_test_passes_on_both_nodes(run: Run, api: Any) -> None:
    code, changed, printed = run("smoke_test_gpu_nodes")
    assert (code, changed) == (0, 0), printed
    left = api.list_pod_for_all_namespaces(label_selector="app.kubernetes.io/name=gpu-smoke-test").items
    assert left == []


def test_report_has_the_gpus_of_all_vendors(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    for written in (1, 0):
        code, changed, printed = run("verify_gpu_cluster", gpu_verify_report_path=str(path))
        assert (code, changed) == (0, written), printed
    nodes = {node["node"]: node for node in json.loads(path.read_text())["nodes"]}
    offered = {name: node["kubernetes"]["resources"] for name, node in nodes.items()}
    assert offered == {FIRST: {GPU: 8, AMD: 2}, SECOND: {GPU: 2, INTEL: 1}}
    assert {name: node["gpus"]["count"] for name, node in nodes.items()} == {FIRST: 10, SECOND: 3}
    products = {product["name"]: product["count"] for product in nodes[FIRST]["gpus"]["products"]}
    assert products["AMD Instinct MI300X OAM"] == 2


def test_labels_go_with_the_labeller(run: Run, api: Any) -> None:
    code, _changed, printed = run("deploy_feature_discovery", **LABELLER, gpu_feature_discovery_state="absent")
    assert code == 0, printed
    assert list_labels_of_amd(api, FIRST) == []
    assert "node-feature-discovery" not in {each.metadata.name for each in api.list_namespace().items}


def test_partitions_are_offered_in_both_namings(set_gpus: Any, run: Run, read_allocatable: Any) -> None:
    """AMD's plugin is restarted, since it reads the partitions when it starts."""
    set_gpus("amd-cpx", "intel-i915")
    for words in (("--check",), ()):
        code, changed, printed = run("deploy_device_plugin", *words)
        assert (code, changed) == (0, 1), printed
    assert read_allocatable(FIRST) == {GPU: "8", AMD: "4"}
    code, changed, printed = run("deploy_device_plugin", k8s_device_plugin_amd_naming="mixed")
    assert (code, changed > 0) == (0, True), printed
    assert read_allocatable(FIRST) == {GPU: "8", PARTITION: "4"}


def test_gpus_partitioned_differently_are_refused_with_one_name(set_gpus: Any, run: Run) -> None:
    """AMD's device plugin would end with status 1."""
    set_gpus("amd-heterogeneous", "intel-i915")
    code, changed, printed = run("deploy_device_plugin")
    assert (code, changed) == (2, 0), printed
    assert "cpx_nps4" in printed
    assert "spx_nps1" in printed


def test_second_advertiser_is_refused(set_gpus: Any, run: Run, settings: Any, tmp_path: Path) -> None:
    set_gpus("amd", "intel-i915")
    for name, manifest in (("kind", OPERATOR_KIND), ("object", OPERATOR)):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(manifest))
        cluster.kubectl(settings, "apply", "-f", str(path))
        cluster.kubectl(settings, "wait", "crd/deviceconfigs.amd.com", "--for=condition=Established", "--timeout=60s")
    try:
        code, changed, printed = run("deploy_device_plugin")
    finally:
        cluster.kubectl(settings, "delete", "crd/deviceconfigs.amd.com")
    assert (code, changed) == (2, 0), printed
    assert "DeviceConfig" in printed


def test_node_with_gpus_of_both_vendors_offers_both(set_gpus: Any, run: Run, api: Any, read_allocatable: Any) -> None:
    set_gpus("amd", "mixed")
    code, changed, printed = run("site", *TAGS)
    assert (code, changed > 0) == (0, True), printed
    assert read_allocatable(FIRST) == {GPU: "8", AMD: "2"}
    assert read_allocatable(SECOND) == {GPU: "2", AMD: "2", INTEL: "1"}
    assert read_present(api) == {AMD: [FIRST, SECOND], INTEL: [SECOND]}
    for words in ((), ("--check",)):
        code, changed, printed = run("site", *TAGS, *words)
        assert (code, changed) == (0, 0), printed


def test_removal_leaves_no_plugin_and_no_label(run: Run, apps: Any, api: Any) -> None:
    code, _changed, printed = run("remove_gpu_nodes", *REMOVED)
    assert code == 0, printed
    assert [each.metadata.name for each in apps.list_daemon_set_for_all_namespaces().items] == ["kube-proxy"]
    assert read_present(api) == {AMD: [], INTEL: []}


def test_node_of_intel_alone_needs_nothing_of_nvidia(
    set_gpus: Any, run: Run, api: Any, read_allocatable: Any, settings: Any
) -> None:
    node = next(node for node in settings.nodes if node.name == SECOND)
    try:
        vendors.take_nvidia(settings, node)
        set_gpus("amd", "intel-i915")
        for words, changes in (((), True), ((), False), (("--check",), False)):
            code, changed, printed = run("site", *TAGS, *words)
            assert (code, changed > 0) == (0, changes), printed
        assert read_allocatable(FIRST) == {GPU: "8", AMD: "2"}
        assert read_allocatable(SECOND) == {INTEL: "1"}
        assert [name for name in api.read_node(SECOND).metadata.labels if "nvidia" in name] == []
        code, changed, printed = run("smoke_test_gpu_nodes")
        assert (code, changed) == (0, 0), printed
        code, _changed, printed = run("remove_gpu_nodes", *REMOVED)
        assert code == 0, printed
        assert read_present(api) == {AMD: [], INTEL: []}
    finally:
        vendors.return_nvidia(settings, node)


def test_undo_leaves_nothing(set_gpus: Any, run: Run, before: dict[str, str], settings: Any) -> None:
    set_gpus("none", "none")
    code, _changed, printed = run("site", *TAGS)  # NVIDIA's as before
    assert code == 0, printed
    assert prints.remaining(before, settings) == []
