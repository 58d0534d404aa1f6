# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter.gpu_html_report import FilterModule, gpu_html_report
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.fleet import (
    make_allocation,
    make_cost,
    make_earlier,
    make_report,
)


def test_gpu_html_report_accepts_text_and_data() -> None:
    given = {"allocation": make_allocation(), "cost": make_cost(), "earlier": make_earlier()}
    page = FilterModule().filters()["gpu_html_report"](make_report(), **given)
    assert gpu_html_report(json.dumps(make_report()), **{key: json.dumps(data) for key, data in given.items()}) == page
    assert page.startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(
    ("report", "options", "message"),
    [
        ("{", {}, "cannot read the report, which is not JSON"),
        ("[]", {}, "cannot read the report, which is not a JSON object"),
        ("{}", {}, "The report has the schema None, not gpu.kubernetes/report/v1"),
        ("", {}, "The report has the schema None"),
        ({"schema": "gpu.kubernetes/report/v1"}, {}, "cannot read what it was given"),
        (make_report(), {"earlier": '{"schema": "v0"}'}, "The earlier report has the schema 'v0'"),
        (make_report(), {"allocation": {"nodes": []}}, "cannot read what it was given"),
        (make_report(), {"cost": {"currency": "EUR", "rows": [{"cost": "much"}]}}, "cannot read what it was given"),
        (make_report(), {"language": "de"}, "has no language de; choose one of en, zh-CN"),
    ],
)
def test_gpu_html_report_names_what_it_cannot_read(report: Any, options: Any, message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message):
        gpu_html_report(report, **options)
