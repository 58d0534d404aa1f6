# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``site`` takes a node from gpushare to nano-gpu and on to whole GPUs again, each by one command. The tests are one way, in their order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from kubernetes.client.exceptions import ApiException

testinfra_hosts = ["ansible://kube_control_plane"]

CONFIG = "/etc/kubernetes/gpu-kubernetes-scheduler.yaml"
GPU, MEMORY, COUNT, PERCENT = "nvidia.com/gpu", "aliyun.com/gpu-mem", "aliyun.com/gpu-count", "nano-gpu/gpu-percent"
#: Strategy -> what a node with eight A100 offers, its labels of those that count, and what kube-scheduler asks an extender of.
STRATEGIES: dict[str, tuple[dict[str, str], set[str], list[list[str]]]] = {
    "exclusive": ({GPU: "8"}, set(), []),
    "gpushare": ({MEMORY: "320", COUNT: "8"}, {"gpushare"}, [[MEMORY]]),
    "nano_gpu": ({PERCENT: "800"}, {"gpu-kubernetes/nano-gpu"}, [[PERCENT]]),
}
#: Leave to evict pods that nobody starts again.
EVICTING = {"gpu_sharing_migrate": True, "gpu_node_maintenance_force": True}
FIRST_ALONE = {"gpu_nodes_group": "gpu_nodes[0]"}
#: All that a change takes; the rest of site is the scenario default's.
TAGS = ("--tags", "device_plugin,gpushare,nano_gpu,scheduler")


@pytest.fixture(scope="session")
def workers(inventory: dict[str, Any]) -> list[str]:
    """The node that changes, and the other one."""
    return list(inventory["all"]["children"]["gpu_nodes"]["hosts"])


@pytest.fixture
def site(playbook: Any) -> Callable[..., tuple[int, int, str]]:
    """Run site with variables: exit code, count of changes, what was said in one line."""

    def run(**variables: Any) -> tuple[int, int, str]:
        code, recap, said = playbook("site", *TAGS, "-e", json.dumps({**FIRST_ALONE, **variables}))
        return code, sum(counts["changed"] for counts in recap.values()), " ".join(said.split())

    return run


@pytest.fixture
def seen(
    api: Any, host: Any, offered: Any, workers: list[str]
) -> Callable[[], tuple[dict[str, str], set[str], list[list[str]]]]:
    """Which strategy the first node has, told as STRATEGIES does. The other one is as it was."""

    def look() -> tuple[dict[str, str], set[str], list[list[str]]]:
        assert offered(workers[1]) == {GPU: "2"}
        labels = set(api.read_node(workers[0]).metadata.labels) & {"gpushare", "gpu-kubernetes/nano-gpu"}
        config = host.file(CONFIG)
        asked = yaml.safe_load(config.content_string)["extenders"] if config.exists else []
        return offered(workers[0]), labels, [[each["name"] for each in one["managedResources"]] for one in asked]

    return look


def gone(api: Any, pod: Any) -> bool:
    try:
        return bool(api.read_namespaced_pod(pod.metadata.name, "default").metadata.deletion_timestamp)
    except ApiException as error:
        return bool(error.status == 404)


def test_from_whole_gpus_to_gpushare(seen: Any, site: Any, api: Any, gpu_pods: Any, workers: list[str]) -> None:
    """By the scenario's converge."""
    code, changed, said = site(gpu_sharing_strategy="gpushare")
    assert (code, changed) == (0, 0), said
    assert seen() == STRATEGIES["gpushare"]
    assert not api.read_node(workers[0]).spec.unschedulable
    pod = gpu_pods(3, MEMORY, workers[0])
    assert (pod.status.phase, pod.metadata.annotations["ALIYUN_COM_GPU_MEM_IDX"]) == ("Running", "0")


def test_nothing_is_touched_where_it_is_refused(
    seen: Any, site: Any, api: Any, gpu_pods: Any, workers: list[str]
) -> None:
    pod = gpu_pods(3, MEMORY, workers[0])
    code, changed, said = site(gpu_sharing_strategy="nano_gpu")
    assert (code != 0, changed) == (True, 0), said
    assert "its GPUs are shared as gpushare, nano_gpu is asked for, and pods hold GPUs; end them first" in said
    both = f"{{{{ 'gpushare' if inventory_hostname == '{workers[0]}' else 'nano_gpu' }}}}"
    code, changed, said = site(gpu_sharing_strategy=both, gpu_nodes_group="gpu_nodes")
    assert (code != 0, changed) == (True, 0), said
    assert f"gpushare, which {workers[0]} would have, and nano_gpu, which {workers[1]} would have, each need" in said
    assert not gone(api, pod)
    assert seen() == STRATEGIES["gpushare"]


def test_from_gpushare_to_nano_gpu_by_a_run_that_is_cut_off(
    seen: Any, site: Any, killed_at: Any, api: Any, gpu_pods: Any, workers: list[str]
) -> None:
    """Killed when the one plugin has gone and the other has not come."""
    pod = gpu_pods(3, MEMORY, workers[0])
    wish = {**FIRST_ALONE, **EVICTING, "gpu_sharing_strategy": "nano_gpu"}
    killed_at("playbooks/site.yml", "nano_gpu : Extender | Deploy it", *TAGS, "-e", json.dumps(wish))
    assert gone(api, pod)
    # NVIDIA's device plugin may be back already, and nobody gets its GPUs.
    assert seen()[1:] == (set(), [])
    assert api.read_node(workers[0]).spec.unschedulable
    code, changed, said = site(**wish)
    assert (code, changed > 0) == (0, True), said
    assert seen() == STRATEGIES["nano_gpu"]
    assert not api.read_node(workers[0]).spec.unschedulable
    code, changed, said = site(**wish)
    assert (code, changed) == (0, 0), said


def test_pods_share_by_percent(seen: Any, gpu_pods: Any, machine_named: Any, workers: list[str]) -> None:
    assert seen() == STRATEGIES["nano_gpu"]
    pods = [gpu_pods(amount, PERCENT, workers[0]) for amount in (60, 60, 40)]
    assert [pod.status.phase for pod in pods] == ["Running"] * 3
    assert [pod.metadata.annotations["nano-gpu/container-gpu"] for pod in pods] == ["0", "1", "0"]
    # The agent has linked each container to its GPU.
    links = machine_named(workers[0]).check_output("readlink /dev/nano-gpu-*").split()
    assert sorted(links) == ["/dev/nvidia0", "/dev/nvidia0", "/dev/nvidia1"]
    waiting = gpu_pods(101, PERCENT, workers[0])
    assert waiting.spec.node_name is None
    assert any(
        "no GPU has as much nano-gpu/gpu-percent free" in (each.message or "") for each in waiting.status.conditions
    )


def test_and_back_to_whole_gpus(seen: Any, site: Any, host: Any, api: Any, gpu_pods: Any, workers: list[str]) -> None:
    pod = gpu_pods(20, PERCENT, workers[0])
    code, _changed, said = site(gpu_sharing_strategy="exclusive", **EVICTING)
    assert code == 0, said
    assert gone(api, pod)
    assert seen() == STRATEGIES["exclusive"]
    assert not api.read_node(workers[0]).spec.unschedulable
    compared = "cmp /root/kube-scheduler-before.yaml /etc/kubernetes/manifests/kube-scheduler.yaml && echo same"
    assert host.check_output(compared) == "same"
    assert gpu_pods(1, GPU, workers[0]).status.phase == "Running"
    code, changed, said = site(gpu_sharing_strategy="exclusive")
    assert (code, changed) == (0, 0), said
