# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the doctor reads of Prometheus. The answers have the form of Prometheus' HTTP API."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.observe import PATHS, read_answers
from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.rules import GROUPS


def answer(*rows: tuple[dict[str, str], str]) -> dict[str, Any]:
    result = [{"metric": labels, "value": [1780000000.0, value]} for labels, value in rows]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def up(node: str, value: str, port: int = 9835) -> tuple[dict[str, str], str]:
    return {"job": "gpu", "node": node, "instance": f"{node}:{port}"}, value


def rules(*names: str) -> dict[str, Any]:
    return {"status": "success", "data": {"groups": [{"name": name, "rules": []} for name in names]}}


HEALTHY = {
    "targets": answer(up("n1", "1")),
    "failing": answer(),
    "refused": answer(),
    "rules": rules(*GROUPS, "others"),
}


def test_queries_name_the_series_and_the_groups() -> None:
    queries = {name: parse_qs(urlsplit(path).query) for name, path in PATHS.items()}
    assert queries["targets"] == {"query": ['up{job="gpu"}']}
    assert queries["failing"] == {"query": ["gpu:collection:success == 0"]}
    assert queries["refused"] == {"query": ["prometheus_config_last_reload_successful == 0"]}
    assert queries["rules"] == {"rule_group[]": list(GROUPS)}


def test_answers_of_healthy_monitoring() -> None:
    assert read_answers(HEALTHY) == {
        "targets": {"n1": {"instance": "n1:9835", "up": True}},
        "failing": [],
        "refused": False,
        "missing": [],
    }


@pytest.mark.parametrize(
    ("name", "given", "part", "expected"),
    [
        ("targets", answer(up("n1", "0")), "targets", {"n1": {"instance": "n1:9835", "up": False}}),
        # One exporter of two answers, in both orders.
        ("targets", answer(up("n1", "0"), up("n1", "1", 9400)), "targets", {"n1": {"instance": "n1:9400", "up": True}}),
        ("targets", answer(up("n1", "1", 9400), up("n1", "0")), "targets", {"n1": {"instance": "n1:9400", "up": True}}),
        ("targets", answer(({"instance": "x:1"}, "1")), "targets", {}),
        ("failing", answer(({"node": "n1"}, "0")), "failing", ["n1"]),
        ("refused", answer(({"instance": "p:9090"}, "0")), "refused", True),
        ("rules", rules("gpu_series"), "missing", ["gpu_cluster_series", "gpu_alerts"]),
    ],
)
def test_answers_of_a_fault(name: str, given: Any, part: str, expected: Any) -> None:
    found = read_answers({**HEALTHY, name: given})
    assert found[part] == expected
    assert {key: value for key, value in found.items() if key != part} == {
        key: value for key, value in read_answers(HEALTHY).items() if key != part
    }


@pytest.mark.parametrize(
    "given", [None, "<html>", {"status": "error", "error": "x"}, {"data": None}, {"data": {"result": [{}]}}]
)
def test_answer_of_another_server_is_an_error(given: Any) -> None:
    found = read_answers({**HEALTHY, "targets": given})
    assert list(found) == ["error"]
    assert found["error"].startswith("Prometheus did not answer as expected")
