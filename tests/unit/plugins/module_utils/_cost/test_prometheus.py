# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hours from Prometheus: a real one, and answers of others."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from functools import partial
from typing import Any, Callable, Iterator
from urllib.parse import parse_qs, urlsplit

import pytest
from fakes.gpushare import share_node

from ansible_collections.gpu.kubernetes.plugins.module_utils._cost import prometheus
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.errors import CostError
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.integrate import Usage, integrate
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.shares import Shares, extract_gpus
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES, gpu_resources
from ansible_collections.gpu.kubernetes.tests.unit import cost_samples
from ansible_collections.gpu.kubernetes.tests.unit.prometheus_server import needs_prometheus, serve

START, HOUR = cost_samples.START, cost_samples.HOUR
HOURS = ("gpu", "allocated", "idle", "wasted", "unmeasured")


def read_http(url: str, path: str) -> bytes:
    with urllib.request.urlopen(f"{url}{path}", timeout=60) as answer:  # noqa: S310 - of the loopback
        return bytes(answer.read())


def read_usage(url: str, step: int = 300, hours: float = 4) -> Usage:
    nodes = [extract_gpus(share_node("w1", 16, 1))]
    window = prometheus.align_window(START, START + int(hours * HOUR), step)
    segments = prometheus.list_segments(
        partial(read_http, url), window, 0.05, 60, Shares([node for node in nodes if node])
    )
    return integrate(segments, window.start, window.end)


def sum_nodes(usage: Usage) -> dict[str, list[float]]:
    return {node: [round(getattr(hours, name), 6) for name in HOURS] for (node, _product), hours in usage.nodes.items()}


@pytest.fixture(scope="module", params=[False, True], ids=["labels of the pods", "labels of the target"])
def url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    samples = cost_samples.build_samples(renamed=request.param)
    with serve(tmp_path_factory.mktemp("prometheus"), samples) as address:
        yield address


@needs_prometheus
def test_hours_of_a_real_prometheus(url: str) -> None:
    usage = read_usage(url)
    assert usage.covered == cost_samples.COVERED
    assert sum_nodes(usage) == cost_samples.NODE_HOURS
    found: dict[str, list[float]] = {}
    for (namespace, _node, _product), hours in usage.namespaces.items():
        sums = found.setdefault(namespace, [0, 0])
        sums[0] += hours.allocated
        sums[1] += hours.wasted
    assert {name: pytest.approx(hours) for name, hours in found.items()} == cost_samples.NAMESPACE_HOURS
    assert sorted({product for _node, product in usage.nodes}) == ["NVIDIA-A100-SXM4-40GB", "Tesla-T4"]
    assert usage.resources[("aliyun.com/gpu-mem", "GiB")] == pytest.approx([24, 1.5])


@needs_prometheus
@pytest.mark.parametrize("step", [60, 900])
def test_step_changes_no_hour(url: str, step: int) -> None:
    assert sum_nodes(read_usage(url, step=step)) == cost_samples.NODE_HOURS


@needs_prometheus
def test_steps_are_counted_once_over_several_queries(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "STEPS", 7)
    assert sum_nodes(read_usage(url)) == cost_samples.NODE_HOURS


@needs_prometheus
def test_error_of_a_query_is_read(url: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as raised:
        prometheus.query_range(partial(read_http, url), "sum(", prometheus.Window(START, START + 60, 60), 60)
    assert raised.value.code == 400


def test_pattern_selects_the_resources_of_all_strategies() -> None:
    pattern = re.search(r'resource=~"([^"]+)"', prometheus.build_queries(300, 0.05)["held"])
    assert pattern
    names = [each.replace("?", "x").replace("*", "y") for row in STRATEGIES.values() for each in row.resources]
    names += ["amd.com/gpu", "amd.com/cpx_nps4", "gpu.intel.com/i915", "gpu.intel.com/xe"]
    others = [
        "cpu",
        "memory",
        "nvidia.com/gpux",
        "nvidiaxcom/gpu",
        "nvidia.com/mig-",
        "amd.com/nic",
        "gpu.intel.com/xe_monitoring",
    ]
    for name in (*names, *others):
        assert bool(re.fullmatch(pattern.group(1), name)) is bool(gpu_resources({name: 1})), name


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [(0, 3600, 300, (0, 3600)), (299, 3599, 300, (0, 3300)), (0, 86400, 86400, (0, 86400))],
)
def test_window_is_aligned_to_steps(start: int, end: int, step: int, expected: tuple[int, int]) -> None:
    assert prometheus.align_window(start, end, step)[:2] == expected


@pytest.mark.parametrize(("end", "step"), [(299, 300), (10 * 86400, 86401)])
def test_step_that_does_not_fit_is_refused(end: int, step: int) -> None:
    with pytest.raises(CostError, match="set gpu_cost_step"):
        prometheus.align_window(0, end, step)


# -- answers of others than the real one, as a table


def answer(**series: list[list[Any]]) -> Callable[[str], bytes]:
    """Return read(path), which answers each query; the keyword is the start of its name."""
    queries = prometheus.build_queries(300, 0.05)

    def read(path: str) -> bytes:
        [query] = parse_qs(urlsplit(path).query)["query"]
        name = next(name for name, text in queries.items() if text == query)
        result = [{"metric": labels, "values": values} for labels, values in series.get(name, [])]
        return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()

    return read


def list_states(read: Callable[[str], bytes], end: int = 600) -> list[Any]:
    return list(prometheus.list_segments(read, prometheus.Window(0, end, 300), 0.05, 60, Shares([])))


POD = {"namespace": "a", "node": "n1", "resource": "nvidia.com/gpu"}
BOTH = [[300, "1"], [600, "1"]]


def test_time_without_kube_scheduler_is_not_covered() -> None:
    segments = list_states(answer(covered=[[{}, [[600, "5"]]]], held=[[POD, BOTH]]))
    assert [(segment.start, segment.end) for segment in segments] == [(300, 600)]
    assert [row.gpus for row in segments[0].state.held] == [1]


def test_cluster_without_gpu_pods_is_covered() -> None:
    segments = list_states(answer(covered=[[{}, BOTH]], gpus=[[{"node": "n1", "model": "Tesla T4"}, BOTH]]))
    assert [segment.state for segment in segments] == [({"n1": {"Tesla-T4": 1}}, [], {})] * 2


def test_values_that_are_no_amounts_are_ignored() -> None:
    values = [[300, "NaN"], [600, "-1"], [900, "+Inf"], [1200, "2"]]
    assert prometheus.parse_answer(
        json.dumps({"data": {"resultType": "matrix", "result": [{"metric": {"a": "b"}, "values": values}]}}).encode()
    ) == [({"a": "b"}, [(1200.0, 2.0)])]


@pytest.mark.parametrize(
    "text",
    [
        "<html>Log in</html>",
        "[]",
        '{"status": "success"}',
        '{"data": {"resultType": "vector", "result": []}}',
        '{"data": {"resultType": "matrix", "result": [{"metric": {}, "values": [["now", "x"]]}]}}',
        '{"data": {"resultType": "matrix", "result": [1]}}',
        "[" * 100000,
    ],
)
def test_answers_of_others_are_refused(text: str) -> None:
    with pytest.raises(CostError, match=r"is not one of Prometheus .* ends before /api/v1"):
        prometheus.parse_answer(text.encode())


def test_hostile_labels_stay_text() -> None:
    pod = {**POD, "namespace": "=1+1\n"}
    segments = list_states(answer(covered=[[{}, BOTH]], held=[[pod, BOTH]]))
    assert segments[0].state.held[0].namespace == "=1+1\n"
