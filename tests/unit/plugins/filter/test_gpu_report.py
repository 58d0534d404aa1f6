# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter import gpu_report


def test_gpu_report_without_hosts_is_empty() -> None:
    report = gpu_report.FilterModule().filters()["gpu_report"]([], {"resource_name": "nvidia.com/gpu"}, ["A note."])
    assert report["summary"] == {"nodes": 0, "gpus": 0, "problems": 0}
    assert report["notes"] == ["A note."]


@pytest.mark.parametrize("observations", [[{}], ["text"], [{"host": "a", "node": "a", "nvml": None, "runtime": {}}]])
def test_gpu_report_with_invalid_observation_raises(observations: list[object]) -> None:
    with pytest.raises(AnsibleFilterError, match="gpu_report cannot read"):
        gpu_report.gpu_report(observations, {})  # type: ignore[arg-type]


REPORT = {"schema": "gpu.kubernetes/report/v1", "nodes": []}


@pytest.mark.parametrize("earlier", ["", "\n", '{"schema": "gpu.kuber', "[1]", "null", '{"a": 1}', ["list"], None, {}])
def test_gpu_report_ignores_other_earlier_data(earlier: object) -> None:
    assert gpu_report.gpu_report([], {}, earlier=earlier) == gpu_report.gpu_report([], {})


@pytest.mark.parametrize("read", [json.dumps, dict])
def test_gpu_report_accepts_earlier_report_as_text_and_data(read: Any) -> None:
    problem = {"host": "left-out", "sentence": "left-out: broken; mend it."}
    report = gpu_report.gpu_report([], {"limited": True}, earlier=read({**REPORT, "problems": [problem]}))
    assert report["problems"] == [problem]


@pytest.mark.parametrize("earlier", [json.dumps({**REPORT, "nodes": [{}]}), {**REPORT, "nodes": [{}]}])
def test_gpu_report_with_invalid_earlier_report_raises(earlier: object) -> None:
    with pytest.raises(AnsibleFilterError, match="remove the earlier report"):
        gpu_report.gpu_report([], {}, earlier=earlier)
