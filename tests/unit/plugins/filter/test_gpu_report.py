# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter import gpu_report


def test_no_hosts_make_an_empty_report() -> None:
    report = gpu_report.FilterModule().filters()["gpu_report"]([], {"resource_name": "nvidia.com/gpu"}, ["A note."])
    assert report["summary"] == {"nodes": 0, "gpus": 0, "problems": 0}
    assert report["notes"] == ["A note."]


@pytest.mark.parametrize("observations", [[{}], ["text"], [{"host": "a", "node": "a", "nvml": None, "runtime": {}}]])
def test_a_wrong_shape_is_named(observations: list[object]) -> None:
    with pytest.raises(AnsibleFilterError, match="gpu_report cannot read"):
        gpu_report.gpu_report(observations, {})  # type: ignore[arg-type]


@pytest.mark.parametrize("earlier", [["list"], {"schema": "gpu.kubernetes/report/v1", "nodes": [{}]}])
def test_an_earlier_report_of_a_wrong_shape_is_named(earlier: object) -> None:
    with pytest.raises(AnsibleFilterError, match="remove the earlier report"):
        gpu_report.gpu_report([], {}, earlier=earlier)  # type: ignore[arg-type]
