# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What changed between two reports."""

from __future__ import annotations

import copy
from typing import Any, Callable

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._report.changes import KINDS, compare_reports
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.texts import TEXTS
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._report.fleet import A100, make_report

Edit = Callable[[Any], None]
LOST = {"host": "gpu1", "code": "gpu_lost", "cause": "GPU A-0 is lost", "remedy": "reboot", "sentence": ""}


def test_compare_reports_of_the_same_cluster_finds_nothing() -> None:
    assert compare_reports(make_report(), make_report()) == []


@pytest.mark.parametrize(
    ("edit", "kind", "host", "before", "after"),
    [
        (lambda new: new["problems"].append(LOST), "problem_new", "gpu1", "", "GPU A-0 is lost"),
        (
            lambda new: new["problems"].append({**LOST, "host": "", "code": "api", "cause": "refused"}),
            "problem_new",
            "",
            "",
            "refused",
        ),
        (lambda new: new["nodes"].append({**new["nodes"][0], "host": "gpu5"}), "node_added", "gpu5", "", "4"),
        (lambda new: new["nodes"].pop(0), "node_removed", "gpu1", "4", ""),
        (lambda new: new["nodes"][0]["gpus"]["devices"].pop(), "gpu_removed", "gpu1", f"{A100} A-3", ""),
        (
            lambda new: new["nodes"][0]["gpus"]["devices"].append({"uuid": None, "pci_address": "0:9", "name": None}),
            "gpu_added",
            "gpu1",
            "",
            "0:9",
        ),
        (lambda new: new["nodes"][0]["driver"].update(version=None), "driver", "gpu1", "570.124.06", ""),
        (lambda new: new["nodes"][0]["driver"].update(cuda_version="13.0"), "cuda", "gpu1", "12.8", "13.0"),
        (
            lambda new: new["nodes"][0]["runtime"].update(version="3.0"),
            "runtime",
            "gpu1",
            "containerd 2.4.2+unknown",
            "containerd 3.0",
        ),
        (lambda new: new["nodes"][0]["runtime"].update(toolkit_version="1.18"), "toolkit", "gpu1", "1.17.8", "1.18"),
        (
            lambda new: new["nodes"][0]["kubernetes"]["resources"].update({"nvidia.com/gpu": 2}),
            "resources",
            "gpu1",
            "4 nvidia.com/gpu",
            "2 nvidia.com/gpu",
        ),
        (
            lambda new: new["nodes"][0]["gpus"]["devices"][1].update(mig_mode="enabled", mig_slices={"1g.5gb": 7}),
            "slices",
            "gpu1",
            "",
            "GPU 1: 7 1g.5gb",
        ),
        (lambda new: new["nodes"][0]["smoke_test"].update(result="failed"), "smoke_test", "gpu1", "passed", "failed"),
    ],
)
def test_compare_reports_finds_one_change(edit: Edit, kind: str, host: str, before: str, after: str) -> None:
    old, new = make_report(), copy.deepcopy(make_report())
    edit(new)
    assert compare_reports(old, new) == [{"kind": kind, "host": host, "before": before, "after": after}]


def test_compare_reports_finds_solved_problems_and_sorts_by_kind() -> None:
    new = copy.deepcopy(make_report())
    new["nodes"][0]["driver"]["version"] = "580"
    solved = new["problems"].pop()
    assert compare_reports(make_report(), new) == [
        {"kind": "problem_solved", "host": solved["host"], "before": solved["cause"], "after": ""},
        {"kind": "driver", "host": "gpu1", "before": "570.124.06", "after": "580"},
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_a_text(kind: str) -> None:
    assert f"change_{kind}" in TEXTS
