# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
import yaml

pytest.importorskip("ansible.plugins.action")

from ansible.errors import AnsibleActionFail

from ansible_collections.gpu.kubernetes.plugins.action import show_report
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation import render as gpushare
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.allocation import allocate
from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.extract import read_dump
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost import integrate
from ansible_collections.gpu.kubernetes.plugins.module_utils._cost import report as cost
from ansible_collections.gpu.kubernetes.plugins.module_utils._report.build import build_report
from ansible_collections.gpu.kubernetes.plugins.modules import show_report as show_report_module
from ansible_collections.gpu.kubernetes.plugins.plugin_utils import _show


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return show(**arguments): the lines printed with their colours."""
    printed: list[tuple[str, str | None]] = []
    monkeypatch.setattr(_show.display, "display", lambda text, color=None: printed.append((text, color)))
    action = show_report.ActionModule.__new__(show_report.ActionModule)
    monkeypatch.setattr(show_report.ActionBase, "run", lambda *_arguments: {})

    def run(**arguments: Any) -> list[tuple[str, str | None]]:
        def validate(argument_spec: dict[str, Any], **rules: Any) -> tuple[None, dict[str, Any]]:
            assert set(argument_spec) == set(yaml.safe_load(show_report_module.DOCUMENTATION)["options"])
            kinds = [["report", "allocation", "cost", "lines"]]
            assert rules["required_one_of"] == rules["mutually_exclusive"] == kinds
            return None, {**{name: option.get("default") for name, option in argument_spec.items()}, **arguments}

        monkeypatch.setattr(action, "validate_argument_spec", validate, raising=False)
        assert action.run() == {"changed": False}
        return printed

    return run


def test_show_report_prints_report(show: Any) -> None:
    printed = show(report=build_report([], {"error": "away"}, ["A note."]), path="/tmp/r.json")
    texts = [text for text, _color in printed]
    assert texts[0] == "GPU report: 0 nodes, 0 GPUs, 1 problem"
    assert "  - A note." in texts
    assert texts[-1] == "As JSON: /tmp/r.json"
    assert printed[0][1] != printed[texts.index("  - A note.")][1]


def test_show_report_prints_no_control_characters(show: Any) -> None:
    bad = "\x1b[2J\x1b]0;x\x07\u202e"
    printed = show(report=build_report([], {"error": ""}, [bad]))
    assert all(text.isprintable() for text, _color in printed)
    assert ("  - \\x1b[2J\\x1b]0;x\\x07\\u202e") in [text for text, _color in printed]


def test_show_report_prints_allocation(show: Any) -> None:
    gpus = [{"index": 0, "total": 4, "allocated": 5}]
    sums = {"allocated": 5, "total": 4, "percent": 125}
    node = {"name": "w1", "address": "", "gpu_count": 1, "gpus": gpus, "pending": 0, **sums, "pods": []}
    rest = {"unit": "GiB", "findings": [], "resources": [], "totals": []}
    printed = show(allocation={"nodes": [node], "cluster": sums, **rest}, bars=False)
    assert [text for text, _color in printed] == [
        "NAME  IPADDRESS  GPU0(Allocated/Total)  GPU Memory(GiB)",
        "w1    unknown    5/4                    5/4",
        "-------------------------------------------------------",
        "Allocated/Total GPU Memory In Cluster:",
        "5/4 (125%)",
        "",
        gpushare.NOTE,
    ]
    assert printed[1][1] not in (printed[0][1], printed[2][1])


@pytest.mark.parametrize("details", [False, True])
def test_show_report_prints_no_control_characters_of_an_allocation(show: Any, details: bool) -> None:
    bad = "\x1b[2J\u202eknow"
    labels = {"nvidia.com/gpu.count": bad, "nvidia.com/device-plugin.config": bad}
    offered = {"nvidia.com/gpu": "4", f"nvidia.com/mig-{bad}": "7"}
    node = {
        "kind": "Node",
        "metadata": {"name": bad, "labels": labels},
        "status": {"allocatable": offered, "capacity": offered},
    }
    container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    pod = {
        "kind": "Pod",
        "metadata": {"name": bad, "namespace": bad},
        "spec": {"nodeName": bad, "containers": [container]},
        "status": {"phase": "Running"},
    }
    printed = [text for text, _color in show(allocation=allocate(*read_dump([node, pod])), details=details)]
    assert all(text.isprintable() for text in printed)
    escaped = r"\x1b[2J\u202eknow"
    assert sum(text.startswith(escaped) for text in printed) == (3 if details else 2)


def test_show_report_with_invalid_allocation_fails(show: Any) -> None:
    with pytest.raises(
        AnsibleActionFail, match=r"show_report cannot read the allocation .* give it what gpushare_info returns"
    ):
        show(allocation={"nodes": []})


@pytest.mark.parametrize("form", ["table", "csv"])
def test_show_report_prints_hours_without_control_characters(show: Any, form: str) -> None:
    bad = "\x1b[2J\u202eknow"
    held = [integrate.Held(bad, bad, bad, bad, 1, 1)]
    usage = integrate.integrate([integrate.Segment(0, 3600, integrate.State({bad: {bad: 1}}, held))], 0, 3600)
    report = cost.build_report(usage, cost.Request("snapshots", 0, 3600, {}, "", {}), [bad])
    printed = [text for text, _color in show(cost=report, format=form)]
    assert all(text.isprintable() for text in printed)
    assert any(r"\x1b[2J\u202eknow" in text for text in printed)


def test_show_report_with_invalid_hours_fails(show: Any) -> None:
    with pytest.raises(AnsibleActionFail, match=r"show_report cannot read the hours .* give it the report of gpu_cost"):
        show(cost={"nodes": []})


def test_show_report_prints_lines_without_control_characters(show):
    assert show(lines=["first", "\x1b[31mred"]) == [("first", None), ("\\x1b[31mred", None)]
