# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs in pods of this test; and the role gpu_smoke_test has deleted its pods."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from lab.settings import ROOT
from lab.wait import until

IMAGE = "lab.local/fake/cuda-sample:vectoradd"


@pytest.fixture
def run_pod(api: Any) -> Iterator[Callable[[dict[str, Any]], tuple[str, str]]]:
    """Run one pod from a spec to its end: its phase and its log. It is deleted after the test."""
    created: list[str] = []

    def run(spec: dict[str, Any]) -> tuple[str, str]:
        pod = api.create_namespaced_pod(
            "default", {"metadata": {"generateName": "gpu-"}, "spec": {"restartPolicy": "Never", **spec}}
        )
        name = pod.metadata.name
        created.append(name)
        phase = until(
            lambda: api.read_namespaced_pod(name, "default").status.phase,
            lambda phase: phase in ("Succeeded", "Failed"),
        )
        return phase, api.read_namespaced_pod_log(name, "default")

    yield run
    for name in created:
        api.delete_namespaced_pod(name, "default", grace_period_seconds=0)


def _container(**more: Any) -> list[dict[str, Any]]:
    return [{"name": "gpu", "image": IMAGE, **more}]


def test_pod_with_one_gpu_has_only_that_one(run_pod: Callable[..., Any]) -> None:
    phase, log = run_pod(
        {"runtimeClassName": "nvidia", "containers": _container(resources={"limits": {"nvidia.com/gpu": "1"}})}
    )
    assert phase == "Succeeded", log
    assert len(re.findall(r"device node /dev/nvidia\d+", log)) == 1
    assert len(re.findall(r"NVML: GPU-", log)) == 1


def test_pod_without_the_runtime_class_has_no_gpu(run_pod: Callable[..., Any]) -> None:
    phase, log = run_pod({"containers": _container()})
    assert phase == "Failed"
    assert "Test FAILED" in log
    assert not re.findall(r"device node /dev/nvidia\d+", log)


def test_pod_of_the_quick_start_passes(run_pod: Callable[..., Any]) -> None:
    """As the page has it, with the fake image."""
    page = (ROOT / "docs" / "docsite" / "rst" / "guide_quickstart.rst").read_text(encoding="utf-8")
    blocks = re.findall(r"^( +)\.\. code-block:: yaml\n\n((?:\1 .*\n)+)", page, re.MULTILINE)
    [pod] = [block for _indent, text in blocks if (block := yaml.safe_load(text)).get("kind") == "Pod"]
    [container] = pod["spec"]["containers"]
    limits = {name: str(amount) for name, amount in container["resources"]["limits"].items()}  # as the client wants it
    container |= {"image": IMAGE, "resources": {"limits": limits}}
    phase, log = run_pod(pod["spec"])
    assert (phase, pod["metadata"]["name"]) == ("Succeeded", "cuda-test"), log
    assert "Test PASSED" in log


def test_smoke_test_pods_are_deleted(api: Any) -> None:
    left = [
        pod.metadata.name
        for pod in api.list_pod_for_all_namespaces(label_selector="app.kubernetes.io/managed-by=gpu.kubernetes").items
    ]
    assert not [name for name in left if "smoke" in name]
