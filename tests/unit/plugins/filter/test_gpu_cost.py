# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter import gpu_cost_render
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.integrate import Usage
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.report import Request, build_report

render = gpu_cost_render.FilterModule().filters()["gpu_cost_render"]
REPORT = build_report(Usage(), Request("snapshots", 0, 3600, {}, "", {}))


def test_gpu_cost_render() -> None:
    assert render(REPORT).startswith("GPU hours from 1970-01-01T00:00:00Z to 1970-01-01T01:00:00Z, 0.0 of 1.0 hours")
    assert json.loads(render(REPORT, "json")) == REPORT
    assert render(REPORT, format="csv").startswith("group,name,gpu_hours,")


@pytest.mark.parametrize(
    ("report", "form", "words"),
    [
        (REPORT, "xml", "has no format xml; choose one of table, json, csv."),
        ({}, "table", "cannot read what it was given"),
        ({"namespaces": 1}, "csv", "give it the report of gpu_cost"),
        (["text"], "table", "cannot read"),
    ],
)
def test_gpu_cost_render_of_other_data_raises(report: Any, form: str, words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        render(report, form)
