# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``share_gpus`` slices the GPUs of two nodes, each with its own number of replicas, and changes them. Each test depends on the tests before it.

A fake of NVIDIA's device plugin and of its config-manager reads the configurations; kubelet, scheduler and API server are real.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from lab import fingerprint as prints
from lab.wait import until

FIRST, SECOND = "molecule-worker-1", "molecule-worker-2"
GPU, SHARED, LABEL = "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/device-plugin.config"
PLUGIN = "name=nvidia-device-plugin-ds"
Run = Callable[..., tuple[int, int, str]]


@pytest.fixture(scope="module", autouse=True)
def before(settings: Any) -> dict[str, str]:
    """Nodes and cluster as they are before the first test."""
    return prints.take(settings)


@pytest.fixture
def share(playbook: Any) -> Run:
    """Run share_gpus with variables by node: exit code, count of changes, output in one line."""

    def run(first: dict[str, Any], second: dict[str, Any], *words: str, **more: Any) -> tuple[int, int, str]:
        hosts = {FIRST: first, SECOND: second}
        names = {name for variables in hosts.values() for name in variables}
        chosen = {
            name: f"{{{{ { ({host: variables[name] for host, variables in hosts.items() if name in variables})!r}[inventory_hostname] }}}}"
            for name in sorted(names)
        }
        code, recap, printed = playbook("share_gpus", *words, "-e", json.dumps({**chosen, **more}))
        return code, sum(counts["changed"] for counts in recap.values()), " ".join(printed.split())

    return run


def slices(replicas: int, rename: bool = False) -> dict[str, Any]:
    return {"gpu_sharing_strategy": "time_slicing", "gpu_sharing_replicas": replicas, "gpu_sharing_rename": rename}


WHOLE = {"gpu_sharing_strategy": "exclusive", "gpu_sharing_replicas": 0, "gpu_sharing_rename": False}


def list_plugins(api: Any) -> dict[str, str]:
    """The device plugin's pod on each node."""
    pods = api.list_namespaced_pod("kube-system", label_selector=PLUGIN).items
    return {pod.spec.node_name: pod.metadata.name for pod in pods}


def read_names(api: Any) -> tuple[list[str], list[str]]:
    """The names of configurations on nodes, and in the ConfigMap."""
    labels = [api.read_node(node).metadata.labels.get(LABEL, "") for node in (FIRST, SECOND)]
    data = api.read_namespaced_config_map("nvidia-device-plugin-config", "kube-system").data
    return labels, sorted(data)


def test_two_nodes_have_two_numbers_of_replicas(share: Run, read_allocatable: Any, api: Any) -> None:
    code, changed, printed = share(slices(4), slices(3, rename=True))
    assert (code, changed > 0) == (0, True), printed
    assert read_allocatable(FIRST) == {GPU: "32"}
    assert read_allocatable(SECOND) == {SHARED: "6"}
    labels, keys = read_names(api)
    assert keys == sorted(["default", *labels])
    assert all(labels)


def test_unchanged_numbers_change_nothing(share: Run) -> None:
    code, changed, printed = share(slices(4), slices(3, rename=True))
    assert (code, changed) == (0, 0), printed


def test_pod_gets_one_replica(api: Any, start_gpu_pod: Any) -> None:
    start_gpu_pod(1, GPU, FIRST)
    container = {"name": "gpu", "image": "lab.local/fake/cuda-sample:vectoradd", "resources": {"limits": {GPU: "2"}}}
    spec = {"nodeSelector": {"kubernetes.io/hostname": FIRST}, "containers": [container], "restartPolicy": "Never"}
    api.create_namespaced_pod("default", {"metadata": {"name": "two"}, "spec": spec})
    try:
        until(
            lambda: api.read_namespaced_pod("two", "default").status,
            lambda status: status.reason == "UnexpectedAdmissionError",
        )
    finally:
        api.delete_namespaced_pod("two", "default", grace_period_seconds=0)


def test_another_number_is_refused_while_a_pod_holds_a_replica(
    share: Run, read_allocatable: Any, start_gpu_pod: Any
) -> None:
    start_gpu_pod(1, GPU, FIRST)
    code, changed, printed = share(slices(2), slices(3, rename=True))
    assert (code, changed) == (2, 0), printed
    assert "shared as time_slicing, time_slicing is requested, and pods hold GPUs; end these pods first" in printed
    assert read_allocatable(FIRST) == {GPU: "32"}


@pytest.mark.thorough
def test_another_number_restarts_the_plugin_of_its_node_alone(
    share: Run, read_allocatable: Any, start_gpu_pod: Any, api: Any
) -> None:
    pod, plugins = start_gpu_pod(1, GPU, FIRST), list_plugins(api)
    evicted = {"gpu_sharing_migrate": True, "gpu_node_maintenance_force": True}
    code, _changed, printed = share(slices(2), slices(3, rename=True), **evicted)
    assert code == 0, printed
    assert read_allocatable(FIRST) == {GPU: "16"}
    assert not [each for each in api.list_namespaced_pod("default").items if each.metadata.uid == pod.metadata.uid]
    assert list_plugins(api)[SECOND] == plugins[SECOND]
    assert list_plugins(api)[FIRST] != plugins[FIRST]
    labels, keys = read_names(api)
    # The former configuration of the first node is gone.
    assert keys == sorted(["default", *labels])


def test_exclusive_removes_names_and_configurations(share: Run, read_allocatable: Any, api: Any) -> None:
    code, _changed, printed = share(WHOLE, WHOLE)
    assert code == 0, printed
    assert (read_allocatable(FIRST), read_allocatable(SECOND)) == ({GPU: "8"}, {GPU: "2"})
    assert read_names(api) == (["", ""], ["config.yaml"])


def test_nodes_and_cluster_are_as_before(before: dict[str, str], settings: Any) -> None:
    assert prints.remaining(before, settings) == []
