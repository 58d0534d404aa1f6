# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter gpu_lint checks objects of a playbook by the rules of the module."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter import gpu_lint

LINT = gpu_lint.FilterModule().filters()["gpu_lint"]
NODE = {"metadata": {"name": "a"}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}}


def make_pod(amount: str) -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": amount}}}
    return {"kind": "Pod", "metadata": {"name": "train"}, "spec": {"containers": [container]}}


def find(result: dict[str, Any]) -> list[str]:
    return [each["rule"] for each in result["findings"]]


def test_object_list_and_kubernetes_list_give_the_same() -> None:
    pod = make_pod("0.5")
    results = [LINT(given) for given in (pod, [pod], iter([pod]), {"kind": "List", "items": [pod]})]
    assert [find(result) for result in results] == [["GPU003"]] * 4
    assert [result["summary"]["workloads"] for result in results] == [1] * 4
    assert "GPU014" in results[0]["skipped"]


def test_context_is_compared_with() -> None:
    result = LINT([make_pod("2")], {"nodes": [NODE], "pods": [], "default_runtime": "runc", "runtime_classes": []})
    assert find(result) == ["GPU014"]
    assert set(result["skipped"]) == {"GPU019"}


@pytest.mark.parametrize(
    ("objects", "context", "words"),
    [
        ("kind: Pod", {}, "read a text with from_yaml_all"),
        (None, {}, "needs a list"),
        ([make_pod("1"), "x"], {}, "needs a list"),
        ([], {"node": []}, "does not know node of its context; use nodes, pods"),
    ],
)
def test_other_shapes_are_refused(objects: Any, context: Any, words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        LINT(objects, context)
