# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The parts of an earlier report that a report keeps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._report import build
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.observations import (
    MISMATCH,
    cluster,
    from_file,
    gpu,
    host,
)

PASSED = [{"node": "worker-1", "passed": True, "skipped": False}]
SKIPPED = [{"node": "worker-1", "passed": False, "skipped": True, "reason": "busy"}]
FAILED = [{"node": "worker-1", "passed": False, "skipped": False, "reason": "exit code 1; read", "log_tail": ["bad"]}]


@pytest.mark.parametrize("smoke", [PASSED, SKIPPED, FAILED, []])
def test_build_report_by_site_and_verify_is_equal(smoke: list[dict[str, Any]]) -> None:
    hosts = [host(), host("worker-2")]
    site = build.build_report(hosts, cluster(smoke=smoke))
    verify = build.build_report(hosts, cluster(smoke=[]), earlier=from_file(site))
    again = build.build_report(hosts, cluster(smoke=smoke), earlier=from_file(verify))
    assert json.dumps(site) == json.dumps(verify) == json.dumps(again)


def test_build_report_prefers_smoke_test_of_this_run() -> None:
    earlier = from_file(build.build_report([host()], cluster(smoke=FAILED)))
    report = build.build_report([host()], cluster(smoke=PASSED), earlier=earlier)
    assert (report["ok"], report["nodes"][0]["smoke_test"]) == (True, {"result": "passed"})


@pytest.mark.parametrize(
    "observation",
    [
        host(nvml={"driver_version": "580.65.06"}),
        host(gpus=[gpu(), gpu(1)]),
        host(runtime={"runtime_version": "2.5.0"}),
        {**host(), "node": "another"},
    ],
)
def test_build_report_of_changed_node_drops_earlier_smoke_test(observation: dict[str, Any]) -> None:
    earlier = from_file(build.build_report([host()], cluster()))
    report = build.build_report([observation], cluster(smoke=[]), earlier=earlier)
    assert report["nodes"][0]["smoke_test"] == {"result": "not run"}


def test_build_report_of_limited_run_keeps_other_hosts() -> None:
    faulty = host("worker-2", nvml={"gpus": [], "source": "none"})
    result = cluster(smoke=[{"node": "worker-2", "passed": False, "skipped": True, "reason": "busy"}])
    full = build.build_report([host(), faulty], {**result, "hosts": ["worker-1", "worker-2", "worker-9"]})
    limited = build.build_report([host()], cluster(smoke=[], hosts=["worker-1"], limited=True), earlier=from_file(full))
    assert json.dumps(limited) == json.dumps(full)
    assert [problem["host"] for problem in limited["problems"]] == ["worker-2", "worker-9"]
    assert limited["notes"] == ["worker-2: smoke test skipped, busy"]
    assert limited["summary"] == {"nodes": 2, "gpus": 1, "problems": 2}


def test_build_report_of_unreachable_host_drops_its_entry() -> None:
    earlier = from_file(build.build_report([host(), host("worker-2")], cluster()))
    result = cluster(hosts=["worker-1", "worker-2"], limited=True)
    report = build.build_report([host()], result, earlier=earlier)
    assert [node["host"] for node in report["nodes"]] == ["worker-1"]
    assert [problem["code"] for problem in report["problems"]] == ["unreachable"]


def test_build_report_of_full_run_drops_removed_hosts() -> None:
    earlier = from_file(build.build_report([host(), host("worker-2", nvml=MISMATCH)], cluster()))
    report = build.build_report([host()], cluster(), earlier=earlier)
    assert json.dumps(report) == json.dumps(build.build_report([host()], cluster()))


@pytest.mark.parametrize("earlier", [None, {}, {"schema": "other", "nodes": 3}])
def test_build_report_ignores_other_data(earlier: Any) -> None:
    result = cluster(smoke=[], limited=True)
    assert build.build_report([host()], result, earlier=earlier) == build.build_report([host()], result)
