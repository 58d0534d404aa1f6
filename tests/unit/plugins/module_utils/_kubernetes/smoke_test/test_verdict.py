# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node can be tested, and the verdict on a pod."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest
from fakes.kubernetes_api import GPU, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.pod_failures import Evidence
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_test.pod import SmokeTest
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.smoke_test.verdict import (
    check_node,
    find_leftovers,
    fit_to_edge,
    judge_pod,
)

TEST = SmokeTest(image="reg/sample:1", expected_output="Test PASSED", timeout=60)
NOW = datetime(2026, 1, 1, 1, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("given", "pods", "skipped", "word"),
    [
        (None, [], False, "not in the cluster"),
        (node("w1", 1, unschedulable=True), [], True, "cordoned"),
        (node("w1", 1, ready=False), [], False, "is not Ready: CNI is missing"),
        (node("w1", 1, taints=[{"key": "t", "effect": "NoSchedule"}]), [], False, "taint t:NoSchedule"),
        (node("w1"), [], False, "has 0 allocatable nvidia.com/gpu"),
        (node("w1", 2, 0), [], False, "has 0 allocatable nvidia.com/gpu"),
        (node("w1", 2), [pod("a", on="w1", gpus=2)], True, "busy: 2 of 2 nvidia.com/gpu are in use by default/a"),
        (node("w1", 5), [pod(f"p{n}", on="w1", gpus=1) for n in range(5)], True, "default/p2 and 2 more"),
    ],
)
def test_check_node_that_cannot_be_tested_returns_the_reason(given: Any, pods: Any, skipped: bool, word: str) -> None:
    result = check_node("w1", given, pods, TEST)
    assert result is not None
    assert (result.passed, result.skipped) == (False, skipped)
    assert word in result.reason


def test_check_node_with_cordoned_test_accepts_a_cordon() -> None:
    assert check_node("w1", node("w1", 1, unschedulable=True), [], replace(TEST, cordoned=True)) is None


@pytest.mark.parametrize(
    "taints",
    [[], [{"key": GPU, "effect": "NoSchedule"}], [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]],
)
def test_check_node_that_can_be_tested_returns_none(taints: Any) -> None:
    assert check_node("w1", node("w1", 2, taints=taints), [pod("a", on="w1", gpus=1)], TEST) is None


UUID = "GPU-00000000-1111-2222-3333-444444444444"
INSUFFICIENT = [{"type": "PodScheduled", "status": "False", "message": f"0/2 nodes: 1 Insufficient {GPU}."}]


@pytest.mark.parametrize(
    ("status", "log", "passed", "skipped", "word"),
    [
        ({"phase": "Succeeded"}, "a\nTest PASSED\nDone\n", True, False, ""),
        ({"phase": "Succeeded"}, "no GPU here\n", False, False, "its last line is: no GPU here"),
        ({"phase": "Succeeded"}, "", False, False, "(no output)"),
        (
            {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no device"},
            "",
            False,
            False,
            "no device",
        ),
        ({"phase": "Failed"}, "CUDA driver version is insufficient\n", False, False, "CUDA driver version"),
        ({"phase": "Pending", "conditions": INSUFFICIENT}, "", False, True, "busy: no free nvidia.com/gpu within 60 s"),
        ({"phase": "Running"}, "hello\n", False, False, "still running, and its last line is: hello (after 60 s)"),
        ({"phase": "Running"}, "", False, False, "has printed nothing"),
        ({}, "", False, False, "the pod"),
    ],
)
def test_judge_pod_returns_result_and_reason(status: Any, log: str, passed: bool, skipped: bool, word: str) -> None:
    on = "" if "conditions" in status else "w1"
    result = judge_pod("w1", pod("p", on=on, status=status), TEST, Evidence(log))
    assert (result.passed, result.skipped) == (passed, skipped)
    assert word in result.reason
    assert bool(result.reason) is not passed


NO_RIGHT = 'pods "p" is forbidden; give this account the verb get on pods/log'


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"phase": "Succeeded"}, "the pod succeeded, but its log cannot be read: "),
        ({"phase": "Failed"}, "the pod failed (container ended): its log cannot be read: "),
        ({"phase": "Running"}, "the pod is still running, and its log cannot be read: "),
    ],
)
def test_judge_pod_without_readable_log_reports_the_missing_right(status: Any, words: str) -> None:
    result = judge_pod("w1", pod("p", on="w1", status=status), TEST, Evidence(log_error=NO_RIGHT))
    assert not result.passed
    assert words + NO_RIGHT in result.reason
    assert "printed" not in result.reason


def test_judge_pod_without_expected_output_needs_no_log() -> None:
    test = SmokeTest(image="i", expected_output="")
    assert judge_pod("w1", pod("p", status={"phase": "Succeeded"}), test, Evidence(log_error=NO_RIGHT)).passed


EDGE_NODE = node("w1", 1, labels={"superedge.io/node-edge": "enable"})
EDGE_TEST = fit_to_edge(TEST, EDGE_NODE)


def test_fit_to_edge_of_another_node_changes_nothing() -> None:
    assert fit_to_edge(TEST, node("w1", 1)) == fit_to_edge(TEST, None) == TEST


def ended(phase: str, message: str) -> dict[str, Any]:
    """The status of a pod whose container has left a termination message."""
    terminated = {"exitCode": int(phase == "Failed"), "message": message}
    return {"phase": phase, "containerStatuses": [{"name": "c", "state": {"terminated": terminated}}]}


@pytest.mark.parametrize(
    ("status", "evidence", "passed", "word"),
    [
        (ended("Succeeded", ""), Evidence(log_error="no route to host"), True, ""),
        # Where the log can be read, it counts.
        (ended("Succeeded", ""), Evidence("no GPU here\n"), False, "never printed 'Test PASSED'"),
        (ended("Failed", "no CUDA-capable device"), Evidence(log_error="no route to host"), False, "no CUDA-capable"),
        ({"phase": "Running"}, Evidence(log_error="no route to host"), False, "log cannot be read: no route to host"),
    ],
)
def test_judge_pod_at_the_edge_needs_phase_and_termination_message(
    status: Any, evidence: Evidence, passed: bool, word: str
) -> None:
    result = judge_pod("w1", pod("p", on="w1", status=status), EDGE_TEST, evidence)
    assert (result.passed, result.skipped) == (passed, False)
    assert word in result.reason
    assert bool(result.reason) is not passed


def test_judge_pod_at_the_edge_without_log_says_so_and_shows_the_termination_message() -> None:
    status = ended("Succeeded", "3 GPUs\npassword=secret\n")
    result = judge_pod("w1", pod("p", on="w1", status=status), EDGE_TEST, Evidence(log_error="no tunnel"))
    assert result.log_tail[:2] == ["not read (no tunnel); the pod has succeeded", "3 GPUs"]
    assert "secret" not in str(result.log_tail)


def test_check_node_that_is_offline_at_the_edge_is_not_judged() -> None:
    offline = node("w1", 1, ready=False, labels={"superedge.io/node-edge": "enable"})
    offline["status"]["conditions"][0].update(status="Unknown", message="Kubelet stopped posting node status.")
    result = check_node("w1", offline, [], EDGE_TEST)
    assert result is not None
    assert result.skipped
    assert result.reason.startswith("not judged: ")
    # One whose kubelet reports a fault is judged, and so is a node that no edge framework manages.
    failing = node("w1", 1, ready=False, labels={"superedge.io/node-edge": "enable"})
    other = {**offline, "metadata": {"name": "w1"}}
    for judged in (failing, other):
        result = check_node("w1", judged, [], EDGE_TEST)
        assert result is not None
        assert not result.skipped


def test_judge_pod_returns_visible_devices() -> None:
    log = f"NVIDIA_VISIBLE_DEVICES={UUID}\n{UUID}\nTest PASSED\n"
    assert judge_pod("w1", pod("p", status={"phase": "Succeeded"}), TEST, Evidence(log)).visible_devices == [UUID]


@pytest.mark.parametrize(
    ("created", "found"), [("2026-01-01T00:00:00Z", ["p"]), ("2026-01-01T00:59:00Z", []), ("nonsense", [])]
)
def test_find_leftovers_returns_expired_pods(created: str, found: list[str]) -> None:
    assert find_leftovers([pod("p", created=created, activeDeadlineSeconds=120)], NOW) == found
