# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module: snapshots on a fake cluster, requests to a fake Prometheus, and the hours of a real one."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Any, Iterator

import pytest
import yaml

pytest.importorskip("kubernetes")

from fakes.gpushare import share_node, share_pod
from fakes.kubernetes_api import FakeCluster
from fakes.loopback_api import serve_in_thread
from fakes.prometheus import FakePrometheus, answer_series

from ansible_collections.gpu.kubernetes.plugins.module_utils._cost import times
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.integrate import State
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.snapshots import Snapshot, encode_snapshot
from ansible_collections.gpu.kubernetes.plugins.modules import gpu_cost
from ansible_collections.gpu.kubernetes.tests.unit import cost_samples
from ansible_collections.gpu.kubernetes.tests.unit.prometheus_server import needs_prometheus, serve

SECRET = "opensesame"


def build_cluster() -> FakeCluster:
    """One GPU of 16 GiB, of which a pod holds a half."""
    node = share_node("w1")
    node["metadata"]["labels"] = {"nvidia.com/gpu.product": "Tesla-T4"}
    return FakeCluster([node], [share_pod("a", amounts=(8,))])


@pytest.fixture
def run(run_module: Any) -> Any:
    return partial(run_module, gpu_cost)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "snapshots.jsonl"


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    with serve_in_thread(FakePrometheus()) as started:
        yield started


def test_first_snapshot_has_no_hours(run: Any, path: Path) -> None:
    result = run(build_cluster(), snapshot_path=str(path))
    assert {*result} - {"changed", "invocation"} == {*yaml.safe_load(gpu_cost.RETURN)} - {"opencost_values"}
    assert result["changed"] is True
    assert result["report"]["covered_hours"] == 0
    assert result["report"]["notes"][-1] == "Hours need two snapshots within 2h; run this playbook regularly."
    assert len(path.read_text().splitlines()) == 1


def test_hours_since_the_last_snapshot(run: Any, path: Path) -> None:
    """The snapshot of an hour ago has no pod, so that the pod of now held its half for half an hour."""
    before = State({"w1": {"Tesla-T4": 1}}, [])
    path.write_bytes(encode_snapshot(Snapshot(int(time.time()) - 3600, FakeCluster.server, before)) + b"torn\n")
    result = run(build_cluster(), snapshot_path=str(path), prices={"*T4": 2}, currency="EUR", opencost_values=True)
    report = result["report"]
    assert report["source"] == "snapshots"
    assert report["covered_hours"] == pytest.approx(1, abs=0.1)
    [row] = report["namespaces"]
    assert (row["name"], row["wasted_hours"]) == ("default", None)
    assert row["allocated_hours"] == pytest.approx(0.25, abs=0.05)
    assert row["allocated_cost"] == pytest.approx(2 * row["allocated_hours"], abs=0.001)
    assert f"1 lines of {path} are not snapshots, and are ignored." in report["notes"]
    values = yaml.safe_load(result["opencost_values"])
    assert values["opencost"]["customPricing"]["costModel"]["GPU"] == "2"


def test_check_mode_reports_and_writes_nothing(run: Any, path: Path) -> None:
    result = run(build_cluster(), snapshot_path=str(path), _ansible_check_mode=True)
    assert (result["changed"], path.exists()) == (True, False)


def test_absent_removes_the_snapshots_once(run: Any, path: Path) -> None:
    run(build_cluster(), snapshot_path=str(path))
    arguments = {"state": "absent", "snapshot_path": str(path)}
    assert run(None, **arguments, _ansible_check_mode=True)["changed"] is True
    assert path.exists()
    assert [run(None, **arguments)["changed"] for _try in range(2)] == [True, False]
    assert not path.exists()
    assert run(None, state="absent")["changed"] is False


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"snapshot_path": ""}, "There is no source of hours; set gpu_cost_prometheus_url, or gpu_cost_snapshot_path"),
        ({"prometheus_url": "prometheus:9090"}, "is not an address that begins with http:// or https://"),
        ({"prometheus_url": f"http://me:{SECRET}@prometheus"}, "gpu_cost_prometheus_url has a user name"),
        ({"window": "1 day"}, "window is '1 day'"),
        ({"start": "2026-11-01T00:00:00"}, "start is '2026-11-01T00:00:00'"),
        ({"max_gap": "long"}, "gpu_cost_max_gap is 'long'"),
        ({"threshold": 5}, "gpu_cost_threshold is 5.0; write a ratio"),
        ({"prices": {"*": 1}}, "gpu_cost_prices needs gpu_cost_currency"),
        ({"prices": {"*A100*": 1}, "currency": "EUR", "opencost_values": True}, "there is none of Tesla-T4"),
    ],
)
def test_invalid_options_fail(run: Any, path: Path, arguments: dict[str, Any], words: str) -> None:
    result = run(build_cluster(), **{"snapshot_path": str(path), **arguments})
    assert result["failed"] is True
    assert words in result["msg"]
    assert SECRET not in result["msg"]


# -- Prometheus


def query(run: Any, url: str, **more: Any) -> dict[str, Any]:
    result: dict[str, Any] = run(build_cluster(), prometheus_url=url, window="1h", **more)
    return result


def answer_pods(options: dict[str, str]) -> Any:
    """A pod that holds a GPU all the time, and no other series."""
    pod = {"namespace": "a", "node": "n1", "resource": "nvidia.com/gpu"}
    first, last, step = (int(options[name]) for name in ("start", "end", "step"))
    values = [[time, "1"] for time in range(first, last + 1, step)]
    return answer_series([{"metric": pod, "values": values}] if "kube_pod_resource_request" in options["query"] else [])


def test_queries_have_the_token_and_a_time_limit(run: Any, server: FakePrometheus) -> None:
    server.reply = answer_pods
    result = query(run, f"{server.url}/", prometheus_token=SECRET, prometheus_timeout=7)
    assert result["changed"] is False
    assert result["report"]["totals"]["allocated_hours"] == 1
    assert result["report"]["totals"]["gpu_hours"] is None
    assert len(server.requests) == 5
    assert {headers["Authorization"] for _options, headers in server.requests} == {f"Bearer {SECRET}"}
    assert {options["timeout"] for options, _headers in server.requests} == {"7s"}
    assert SECRET not in json.dumps(result)


def test_queries_have_user_and_password(run: Any, server: FakePrometheus) -> None:
    server.reply = answer_pods
    result = query(run, server.url, prometheus_username="me", prometheus_password=SECRET)
    assert {headers["Authorization"] for _options, headers in server.requests} == {"Basic bWU6b3BlbnNlc2FtZQ=="}
    assert SECRET not in json.dumps(result)


ANSWERS: dict[str, tuple[Any, str]] = {
    "nothing": (answer_series([]), "has no kube_pod_resource_request in this time; let it scrape /metrics/resources"),
    "an error": (
        (422, {}, b'{"status":"error","error":"too many samples \x1b[31m"}'),
        'answered 422: {"status":"error","error":"too many samples \\x1b[31m"}. Check',
    ),
    "a wrong token": ((401, {}, b""), "answered 401: Unauthorized. Check gpu_cost_prometheus_url and its credentials."),
    "a page": ((200, {}, b"<html>"), "The answer is not one of Prometheus"),
    "less than announced": ((200, {"Content-Length": "100"}, b"{"), "The answer is not one of Prometheus"),
}


@pytest.mark.parametrize(("answer", "words"), ANSWERS.values(), ids=ANSWERS)
def test_answers_that_have_no_hours_fail(run: Any, server: FakePrometheus, answer: Any, words: str) -> None:
    server.reply = lambda _options: answer
    result = query(run, server.url, prometheus_token=SECRET)
    assert result["failed"] is True
    assert words in result["msg"]
    assert len(result["msg"]) < 600


def test_token_is_sent_to_no_other_server(run: Any, server: FakePrometheus) -> None:
    with serve_in_thread(FakePrometheus()) as other:
        server.reply = lambda _options: (302, {"Location": f"{other.url}/api/v1/query_range"}, b"")
        assert "answered 302" in query(run, server.url, prometheus_token=SECRET)["msg"]
        assert other.requests == []


def test_answer_that_does_not_come_fails(run: Any, server: FakePrometheus) -> None:
    def wait(_options: dict[str, str]) -> Any:
        time.sleep(3)
        return answer_series([])

    server.reply = wait
    assert "cannot be read (" in query(run, server.url, prometheus_timeout=1)["msg"]


def test_unreachable_server_fails(run: Any) -> None:
    assert "Prometheus at http://127.0.0.1:1 cannot be read (" in query(run, "http://127.0.0.1:1")["msg"]


@needs_prometheus
def test_report_of_a_real_prometheus(run: Any, tmp_path: Path) -> None:
    with serve(tmp_path, cost_samples.build_samples()) as url:
        result = run(
            build_cluster(),
            prometheus_url=url,
            start=times.format_time(cost_samples.START),
            end=times.format_time(cost_samples.END),
            prices={"*A100*": 2},
            currency="EUR",
        )
    report = result["report"]
    assert (report["covered_hours"], report["window_hours"]) == (cost_samples.COVERED, 4)
    names = ("gpu_hours", "allocated_hours", "idle_hours", "wasted_hours", "unmeasured_hours")
    assert {row["name"]: [row[name] for name in names] for row in report["nodes"]} == cost_samples.NODE_HOURS
    found = {row["name"]: [row["allocated_hours"], row["wasted_hours"]] for row in report["namespaces"]}
    assert found == cost_samples.NAMESPACE_HOURS
    assert report["totals"]["allocated_cost"] == 2 * (14 + 1.5)
    assert [note.partition(";")[0].partition(":")[0] for note in report["notes"]] == [
        "The source covers 3.0 of 4.0 hours",
        "No price in gpu_cost_prices, so that their hours are in no cost",
        "Not in the cluster any more",
    ]
