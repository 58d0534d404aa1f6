# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each expression of each panel returns data from a real Prometheus, which has samples of the normalised series.

PROMETHEUS, set by the gates, is a folder with prometheus and promtool.
"""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

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

#: What Grafana writes for the variables, in the order of their replacement.
VALUES = {"$__range": "1h", "$node": ".*", "$namespace": ".*", "$units": "1", "$price": "0.5"}
BY_DASHBOARD = {"gpu-kubernetes-node": {"$node": "gpu01"}, "gpu-kubernetes-cost": {"$resource": "nvidia.com/gpu"}}


def replace_variables(uid, expression):
    for name, value in {"$resource": ".*", **VALUES, **BY_DASHBOARD.get(uid, {})}.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


TARGETS = [
    (f"{each['uid']} {panel['title']} {target['refId']}", target, replace_variables(each["uid"], target["expr"]))
    for each in build_dashboards(Options({"*A100*": 2.5}))
    for panel in each["panels"]
    for target in panel["targets"]
]


@pytest.fixture(scope="module")
def query(tmp_path_factory):
    """Query a Prometheus with the samples: a function of path and parameters that returns the result."""
    with prometheus_server.serve(tmp_path_factory.mktemp("prometheus"), list_samples()) as address:

        def find(path, **parameters):
            url = f"{address}{path}?{urllib.parse.urlencode(parameters)}"
            try:
                with urllib.request.urlopen(url) as reply:  # noqa: S310 - of the loopback
                    answer = json.load(reply)
            except urllib.error.HTTPError as error:
                answer = json.load(error)
            assert answer["status"] == "success", answer
            return answer["data"]["result"]

        yield find


def test_expressions_are_valid_in_rules(tmp_path):
    rules = [{"record": f"panel:{number}", "expr": each[-1]} for number, each in enumerate(TARGETS)]
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run(
        [f"{prometheus_server.FOLDER}/promtool", "check", "rules", str(path)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(TARGETS)} rules found" in done.stdout


@pytest.mark.parametrize(("target", "expression"), [each[1:] for each in TARGETS], ids=[each[0] for each in TARGETS])
def test_expression_returns_data(query, target, expression):
    if target["instant"]:
        assert query("/api/v1/query", query=expression, time=NOW)
    else:
        start = NOW - MINUTES * 60
        assert query("/api/v1/query_range", query=expression, start=start, end=NOW, step=60)


@pytest.fixture
def read(query):
    """The values of a panel's expression now, by the label of a name, or the only value."""

    def values(name, label=""):
        expression = next(each[-1] for each in TARGETS if each[0] == f"gpu-kubernetes-{name}")
        found = query("/api/v1/query", query=expression, time=NOW)
        by_label = {each["metric"].get(label, ""): float(each["value"][1]) for each in found}
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


def test_gpu_that_two_jobs_report_has_one_row_and_one_model(query):
    expressions = {each[0]: each[-1] for each in TARGETS}
    rows = query("/api/v1/query", query=expressions["gpu-kubernetes-node GPUs of the node A"], time=NOW)
    assert sorted(each["metric"]["gpu_uuid"] for each in rows) == ["GPU-0", "GPU-1"]
    by_model = query("/api/v1/query", query=expressions["gpu-kubernetes-fleet GPUs by model A"], time=NOW)
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


def test_findings_of_a_node_without_any_are_zero(query):
    names = ("Recovery action", "Recent Xid", "Row remap failed", "Row remap pending", "ECC errors", "Throttled")
    panels = {panel["title"]: panel for panel in build_dashboards(Options())[3]["panels"]}
    for name in names:
        expression = panels[name]["targets"][0]["expr"]
        for node, expected in (("gpu02", ["0"]), ("gpu01", ["1"]), ("no-such-node", [])):
            found = query("/api/v1/query", query=expression.replace("$node", node), time=NOW)
            assert [each["value"][1] for each in found] == expected, (name, node)
