# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The exact documents that programs get for small fixed inputs, in records/. Another text is a change for these programs: new fields only, within a version."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.judge import judge
from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.registry import select_checks
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.lint import lint
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.model import Context, Document
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.build import build_report
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._checks.healthy import build, put
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.observations import cluster, host
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.sharing_nodes import (
    host as shared_host,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.sharing_nodes import node, plan

FOLDER = Path(__file__).parent / "records"
POD = {
    "kind": "Pod",
    "metadata": {"name": "train", "namespace": "team"},
    "spec": {
        "containers": [{"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": "0.5"}}}],
    },
}


def make_report() -> Any:
    """A host that works, on whose node the smoke test failed."""
    failed = {
        "node": "worker-1",
        "passed": False,
        "reason": "no CUDA; read its log",
        "log_tail": ["x"],
        "image": "a/b:1",
    }
    return build_report([host()], cluster(smoke=[failed]))


def make_plan() -> Any:
    """A node that leaves gpushare, and the blocker of another one, which is in use."""
    hosts = [shared_host("time_slicing", "1", migrate=True), shared_host("mps", "2")]
    return plan(hosts, [node("gpushare"), node("exclusive", allocated=1, name="n2")])


def make_diagnosis() -> Any:
    """A GPU that fell off the bus, and what is unknown because of it."""
    observed, of_cluster = build()
    put(observed, "pci/0/alive", False)
    return judge([observed], of_cluster, select_checks(["hw.pci_count", "hw.pci_alive", "hw.ecc", "sc.free"]))


def make_findings() -> Any:
    """Half a GPU, in a cluster with one node."""
    status = {"allocatable": {"nvidia.com/gpu": "2"}, "runtimeHandlers": []}
    nodes = [{"kind": "Node", "metadata": {"name": "gpu1", "labels": {}}, "spec": {}, "status": status}]
    return lint([Document("pod.yaml", POD)], Context(nodes=nodes, default_runtime="nvidia")).as_dict()


@pytest.mark.parametrize(
    ("name", "make"),
    [("report", make_report), ("plan", make_plan), ("doctor", make_diagnosis), ("lint", make_findings)],
)
def test_document_of_fixed_input_is_the_record(name: str, make: Callable[[], Any]) -> None:
    text = json.dumps(make(), indent=2) + "\n"
    assert text.startswith(f'{{\n  "schema": "gpu.kubernetes/{name}/v1"')
    assert text == (FOLDER / f"gpu-{name}-v1.json").read_text(encoding="utf-8")
