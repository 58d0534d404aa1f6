# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each expression of each panel returns data from a real Prometheus of each version, which has samples of the normalised series."""

from __future__ import annotations

import json
import subprocess

import pytest
from lab import dashboards

from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.dashboards.render import (
    Options,
    build_dashboards,
)
from ansible_collections.gpu.kubernetes.tests.unit import prometheus_server
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._monitoring.dashboard_samples import (
    MINUTES,
    NOW,
    list_samples,
)

pytestmark = prometheus_server.needs_prometheus

CHOSEN = {"__range": "1h", "node": "gpu01", "resource": "nvidia.com/gpu", "price": "0.5"}
QUERIES = dashboards.list_queries(build_dashboards(Options({"*A100*": 2.5})), CHOSEN)


@pytest.fixture(scope="module", params=prometheus_server.FOLDERS)
def programs(request):
    """The folder with prometheus and promtool."""
    return request.param


@pytest.fixture(scope="module")
def address(programs, tmp_path_factory):
    """The address of a Prometheus with the samples."""
    with prometheus_server.serve(tmp_path_factory.mktemp("prometheus"), list_samples(), programs) as url:
        yield url


@pytest.fixture(scope="module")
def find_now(address):
    """The series of an expression now."""
    return lambda expression: dashboards.run(address, dashboards.Query("", expression, instant=True), NOW, NOW, 60)


def test_expressions_are_valid_in_rules(programs, tmp_path):
    rules = [{"record": f"panel:{number}", "expr": each.expression} for number, each in enumerate(QUERIES)]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(
        [f"{programs}/promtool", "check", "rules", str(path)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(QUERIES)} rules found" in done.stdout


@pytest.mark.parametrize("query", QUERIES, ids=[each.name for each in QUERIES])
def test_query_returns_data(address, query):
    assert dashboards.run(address, query, NOW - MINUTES * 60, NOW, 60)


@pytest.fixture
def read(find_now):
    """The values of a panel's expression now, by the label of a name, or the only value."""

    def values(name, label=""):
        expression = next(each.expression for each in QUERIES if each.name == f"gpu-kubernetes-{name}")
        by_label = {each["metric"].get(label, ""): float(each["value"][1]) for each in find_now(expression)}
        return by_label if label else by_label[""]

    return values


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fleet Nodes A", 4),
        ("fleet GPUs A", 6),
        ("fleet Idle GPUs A", 4),
        ("fleet GPUs with a finding A", 2),
        ("node GPUs A", 2),
        ("cost Allocated and existing GPUs A", 6),
        ("node Temperature margin A", 3),
        ("node Pods A", 1),
        ("allocation Pods with GPUs A", 3),
        ("allocation Pending pods A", 1),
        ("allocation Namespaces A", 3),
        ("allocation Nodes in use A", 3),
        ("allocation Free nodes A", 1),
        ("allocation Allocated and idle nodes A", 2),
        ("health Recovery action A", 1),
        ("health Recent Xid A", 1),
        ("health Throttled A", 1),
    ],
)
def test_number_is_that_of_the_samples(read, name, value):
    assert read(name) == value


@pytest.mark.parametrize(
    ("name", "label", "values"),
    [
        ("fleet Nodes and models A", "node", {"gpu01": 2, "gpu02": 2, "gpu03": 1, "gpu04": 1}),
        ("cost Nodes A", "node", {"gpu01": 2, "gpu02": 2, "gpu03": 1.5, "gpu04": 1}),
    ],
)
def test_gpu_that_two_jobs_report_counts_once(read, name, label, values):
    assert read(name, label) == {key: pytest.approx(value, rel=0.09) for key, value in values.items()}


def test_gpu_that_two_jobs_report_has_one_row_and_one_model(find_now):
    expressions = {each.name: each.expression for each in QUERIES}
    rows = find_now(expressions["gpu-kubernetes-node GPUs of the node A"])
    assert sorted(each["metric"]["gpu_uuid"] for each in rows) == ["GPU-0", "GPU-1"]
    by_model = find_now(expressions["gpu-kubernetes-fleet GPUs by model A"])
    assert sum(float(each["value"][1]) for each in by_model) == 6


def test_gone_gpu_is_listed(read):
    assert read("health GPUs that are gone A", "gpu_uuid") == {"GPU-5": 1}


def test_hours_and_costs_are_those_of_the_samples(read):
    # Prometheus 2 counts both ends of the hour: 13 samples at five minutes, where Prometheus 3 counts 12.
    def near(value):
        return pytest.approx(value, rel=0.09)

    hours = read("cost Allocated GPU hours by namespace A", "namespace")
    assert hours == {"team-a": near(2), "team-b": near(1), "team-c": near(1)}
    costs = read("cost Cost by namespace A", "namespace")
    assert costs == {"team-a": near(2 * 2.5), "team-b": near(0.5), "team-c": near(0.5)}
    wasted = read("cost Nodes C", "node")
    assert wasted == {"gpu01": near(2 * 0.2), "gpu02": near(1), "gpu04": near(1)}


def test_findings_of_a_node_without_any_are_zero(find_now):
    names = ("Recovery action", "Recent Xid", "Row remap failed", "Row remap pending", "ECC errors", "Throttled")
    panels = {panel["title"]: panel for panel in build_dashboards(Options())[3]["panels"]}
    for name in names:
        expression = panels[name]["targets"][0]["expr"]
        for node, expected in (("gpu02", ["0"]), ("gpu01", ["1"]), ("no-such-node", [])):
            found = find_now(expression.replace("$node", node))
            assert [each["value"][1] for each in found] == expected, (name, node)
