# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of every annotation, status and log that a kubelet, a pod or an API server can send.

The code raises only exceptions that callers handle. Its texts are printable, and texts and lists have a limited length.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, Callable

import pytest
from fakes.kubernetes_api import FakeCluster, node, pod
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation import extract, resources
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.allocation import allocate
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.render import render_lines
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain import plan as drain
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.plan import check_labels, plan_labels
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.record import (
    RECORD_ANNOTATION,
    LabelError,
    Ownership,
    is_reserved,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.node_reports import assess_nodes
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.pod_failures import Evidence
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.readiness import Query
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.survey import read_sharing_state
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.build import build_report
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.render import render_lines as render_report
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.node_state import Cluster
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plan import plan_sharing, render_plan
from ansible_collections.gpu.kubernetes.plugins.module_utils._text import make_printable
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report import observations

# A sentence has a few parts of at most 300 characters, each of which can be an escape.
LONGEST = 4000

TEXTS = st.one_of(
    st.text(max_size=40), st.sampled_from(["\x1b[2J\x07", "a; b\n", "\u202e", "\ud800", "x" * 5000, "a." * 2000, "["])
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
NESTED = st.sampled_from(["[" * 100000, '{"a":' * 50000, "[" * 300 + "]" * 300, "9" * 5000])
LABELS = st.sampled_from(
    ["a", "accelerator", "nvidia.com/gpu.count", "tenant", "node-restriction.kubernetes.io/t", "x.k8s.io/y", "bad name"]
)
VALUES = st.none() | st.sampled_from(["", "1", "payments", "has blank", "x" * 64]) | JSON
RECORDS = st.dictionaries(
    st.sampled_from(["me", "you", "\x1b]0;\x07"]),
    st.dictionaries(LABELS, st.fixed_dictionaries({"set": VALUES, "was": VALUES}), max_size=5),
    max_size=3,
)
ANNOTATIONS = st.one_of(TEXTS, JSON.map(json.dumps), NESTED)


def attempt(call: Callable[[], Any], refusal: type[Exception]) -> tuple[Any, str]:
    """Return the result, or None and the sentence of the expected exception."""
    try:
        return call(), ""
    except refusal as error:
        message = str(error)
    assert message.isprintable()
    assert 0 < len(message) < LONGEST
    return None, message


@given(
    record=st.one_of(RECORDS.map(json.dumps), ANNOTATIONS),
    labels=st.dictionaries(LABELS, st.sampled_from(["", "1", "payments"]), max_size=5),
    desired=st.dictionaries(st.sampled_from(["a", "accelerator"]), st.sampled_from(["1", "2"]) | st.none(), max_size=2),
    patterns=st.sampled_from([["*"], ["accelerator", "nvidia.com/gpu.*"], ["node-restriction.kubernetes.io/t"], []]),
)
def test_no_record_sets_a_label_that_the_owner_does_not_set(
    record: str, labels: dict[str, str], desired: dict[str, Any], patterns: list[str]
) -> None:
    ownership = Ownership(patterns, frozenset(desired))
    labelled = node("w1", labels=labels, annotations={RECORD_ANNOTATION: record})
    plan, refusal = attempt(lambda: plan_labels(labelled, desired, "me", ownership=ownership), LabelError)
    if plan is None:
        assert refusal.startswith("Node w1: ")
        return
    for label, value in plan.after.items():
        check_labels("w1", {label: value})
        if value is not None and desired.get(label) != value:
            assert not is_reserved(label)
            assert ownership.can_restore(label)
        if value is None and label not in desired:
            assert ownership.can_remove(label)
    assert all(text.isprintable() and len(text) < LONGEST for text in plan.warnings)


@given(
    annotation=st.one_of(
        st.fixed_dictionaries({"was_schedulable": st.booleans(), "reason": JSON, "since": JSON}).map(json.dumps),
        ANNOTATIONS,
    )
)
def test_no_maintenance_annotation_breaks_a_plan_or_a_report(annotation: str) -> None:
    cordoned = node("w1", annotations={drain.ANNOTATION: annotation}, unschedulable=True)
    attempt(lambda: drain.plan_begin(cordoned, "driver", "2026-08-23T07:00:00Z"), drain.MaintenanceError)
    attempt(lambda: drain.plan_end(cordoned, "x"), drain.MaintenanceError)
    [report] = assess_nodes([cordoned], [], Query(), {"w1": 0})
    assert report.maintenance is not None
    assert report.reason == report.maintenance["message"]
    assert report.reason.isprintable()
    assert len(report.reason) < LONGEST


AMOUNTS = st.one_of(
    st.integers(-2, 200).map(str), st.sampled_from(["2000000000", "9" * 40, "1E99", "1Ei", "-3", "x"]), TEXTS
)


@given(
    amounts=st.lists(AMOUNTS, min_size=4, max_size=4),
    index=st.one_of(AMOUNTS, st.none()),
    allocation=st.one_of(
        st.dictionaries(AMOUNTS, st.dictionaries(AMOUNTS, st.integers() | JSON, max_size=5), max_size=3).map(
            json.dumps
        ),
        ANNOTATIONS,
    ),
)
def test_no_count_or_annotation_of_gpushare_makes_long_tables(
    amounts: list[str], index: str | None, allocation: str
) -> None:
    names = ("aliyun.com/gpu-mem", "aliyun.com/gpu-count")
    shared = {
        "metadata": {"name": "w1"},
        "status": {
            "allocatable": dict(zip(names, amounts)),
            "capacity": dict(zip(names, amounts[2:])),
            "addresses": [{"type": "InternalIP", "address": allocation[:5000]}],
        },
    }
    annotations = {
        "scheduler.framework.gpushare.allocation": allocation,
        **({"ALIYUN_COM_GPU_MEM_IDX": index} if index else {}),
    }
    holder = pod(
        "p", on="w1", annotations=annotations, containers=[{"name": "c", "resources": {"limits": {names[0]: "2"}}}]
    )
    share = extract.extract_pod(holder)
    assert share is not None
    result = allocate([extract.extract_node(shared)], [share])
    for row in result["nodes"]:
        assert len(row["gpus"]) <= resources.MAX_GPUS + len(share.amounts)
    for details in (False, True):
        lines = render_lines(result, details=details)
        assert len(lines) < resources.MAX_GPUS + len(share.amounts) + 50
        assert all(make_printable(line).isprintable() for line, _tone in lines)
    assert all(found["message"].isprintable() for found in result["findings"])


@given(
    amounts=st.lists(AMOUNTS, min_size=3, max_size=3),
    labels=st.fixed_dictionaries({"nvidia.com/gpu.count": AMOUNTS, "nvidia.com/device-plugin.config": TEXTS}),
    annotation=st.one_of(AMOUNTS, st.lists(AMOUNTS, max_size=300).map(",".join), TEXTS),
)
def test_no_amount_label_or_annotation_makes_long_tables_of_resources(
    amounts: list[str], labels: dict[str, str], annotation: str
) -> None:
    names = ("nvidia.com/gpu", "nano-gpu/gpu-percent")
    offering = node("w1", labels=labels)
    offering["status"].update(allocatable=dict(zip(names, amounts)), capacity=dict(zip(names, amounts)))
    container = {"name": "c", "resources": {"limits": {names[0]: amounts[2], names[1]: "30"}}}
    holder = pod("p", on="w1", annotations={"nano-gpu/container-c": annotation}, containers=[container])
    share = extract.extract_pod(holder)
    assert share is not None
    result = allocate([extract.extract_node(offering)], [share])
    assert {row["resource"] for row in result["resources"]} <= {*names}
    for details in (False, True):
        lines = render_lines(result, details=details)
        assert len(lines) < 3 * resources.MAX_GPUS + 50
        assert all(make_printable(line).isprintable() for line, _tone in lines)


RESOURCES = [name for row in STRATEGIES.values() for name in (*row.counted.values(), *row.in_capacity_until_removed)]
STATES = st.fixed_dictionaries(
    {"waiting": st.fixed_dictionaries({"reason": TEXTS, "message": TEXTS}), "terminated": st.none()}
) | st.fixed_dictionaries(
    {"terminated": st.fixed_dictionaries({"exitCode": st.integers(0, 255), "message": TEXTS, "reason": TEXTS})}
)
CONTAINERS = st.fixed_dictionaries(
    {"name": TEXTS, "image": TEXTS, "ready": st.booleans(), "restartCount": st.integers(0, 9), "state": STATES}
)
PHASES = st.sampled_from(["Pending", "Running", "Failed", "Unknown", ""])


@given(
    message=TEXTS,
    version=TEXTS,
    ready=st.booleans(),
    phase=PHASES,
    reason=TEXTS,
    containers=st.lists(CONTAINERS, max_size=3),
    log=st.one_of(TEXTS, st.lists(TEXTS, max_size=5).map("\n".join)),
    units=AMOUNTS,
)
def test_no_status_or_log_breaks_the_report_of_a_node(
    message: str, version: str, ready: bool, phase: str, reason: str, containers: list[Any], log: str, units: str
) -> None:
    shown = node("w1", ready=ready)
    shown["status"]["conditions"][0]["message"] = message
    shown["status"]["nodeInfo"] = {"containerRuntimeVersion": version, "bootID": message}
    shown["status"]["capacity"] = shown["status"]["allocatable"] = {"nvidia.com/gpu": units}
    status = {"phase": phase, "reason": reason, "message": message, "containerStatuses": containers}
    plugin = pod("plugin", on="w1", namespace="kube-system", labels={"name": "nvidia-device-plugin-ds"}, status=status)
    [report] = assess_nodes([shown], [plugin], Query(), {"w1": 2}, evidence={"plugin": Evidence(log, (message,))})
    for text in (report.reason, report.container_runtime_version):
        assert text.isprintable()
        assert len(text) < LONGEST


@given(
    texts=st.lists(TEXTS, min_size=4, max_size=4),
    annotations=st.fixed_dictionaries({RECORD_ANNOTATION: ANNOTATIONS, drain.ANNOTATION: ANNOTATIONS}),
    labels=st.dictionaries(st.sampled_from([key for row in STRATEGIES.values() for key in row.label]), TEXTS),
    amounts=st.dictionaries(st.sampled_from(RESOURCES) | TEXTS, AMOUNTS, max_size=4),
    strategy=st.sampled_from(["", *STRATEGIES]),
)
def test_no_node_breaks_the_sharing_plan_or_the_report(
    texts: list[str], annotations: Any, labels: Any, amounts: Any, strategy: str
) -> None:
    shared = node("w1", labels=labels, annotations=annotations, taints=[{"key": texts[0], "effect": texts[1]}])
    shared["status"].update(capacity=amounts, allocatable=amounts)
    holder = pod("p", on="w1", containers=[{"name": texts[2], "resources": {"limits": amounts}}])
    cluster: Any = FakeCluster([shared], [holder])
    state = read_sharing_state(cluster, {"w1": strategy})
    requests = [{"host": "w1", "node": "w1", "strategy": strategy}]
    lines = render_plan(plan_sharing(requests, state.nodes, Cluster(state.labelled, schedulers=state.schedulers)))
    runtime = {"ok": False, "cause": texts[3], "log": texts}
    observed = observations.host("w1", [observations.gpu(0, texts[0])], nvml={"error": texts[2]}, runtime=runtime)
    report = build_report([observed], observations.cluster(nodes=state.nodes))
    lines += [make_printable(line) for line, _tone in render_report(report)]  # as the action show_report
    lines += [*(problem["sentence"] for problem in report["problems"]), *(row["reason"] for row in state.nodes)]
    assert all(line.isprintable() for line in lines)


@given(
    answer=st.one_of(st.binary(max_size=40), JSON.map(lambda value: json.dumps(value).encode()), NESTED.map(str.encode))
)
def test_no_answer_of_an_api_server_raises_another_error(answer: bytes) -> None:
    pytest.importorskip("ansible.module_utils.basic")
    pytest.importorskip("kubernetes")
    from ansible_collections.gpu.kubernetes.plugins.module_utils import _kube_api as api

    client = SimpleNamespace(
        configuration=SimpleNamespace(host="https://api.test"),
        request=lambda *_given, **_options: SimpleNamespace(data=answer),
    )
    cluster = api.Cluster(client)
    attempt(lambda: cluster.node("w1"), api.ApiError)
    attempt(lambda: cluster._page("/api/v1/nodes", None, {}), api.ApiError)


@given(st.one_of(st.text(), JSON))
def test_make_printable_leaves_no_control_character(text: Any) -> None:
    shown = make_printable(text)
    assert shown.isprintable()
    assert shown == str(text) or not str(text).isprintable()
