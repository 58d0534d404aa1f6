# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of the role gpu_sharing pass their input on and turn errors into Ansible's."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter import sharing_conflicts, sharing_decisions

DECIDE = sharing_decisions.FilterModule().filters()["sharing_decisions"]
CONFLICTS = sharing_conflicts.FilterModule().filters()["sharing_conflicts"]
HELD = {
    "name": "n",
    "known": True,
    "gpu_operator": False,
    "foreign_plugins": [],
    "gpu_capacity": {"nvidia.com/gpu": 1},
    "gpu_allocated": {"nvidia.com/gpu": 1},
}
GPUSHARE, NANO_GPU = ({"host": "h", "node": "n", "strategy": name} for name in ("gpushare", "nano_gpu"))


def test_decisions_take_all_arguments() -> None:
    refused = DECIDE([GPUSHARE], [HELD])["hosts"]["h"]["error"]
    assert "pods hold GPUs" in refused
    assert "this run leaves out gpushare" in DECIDE([GPUSHARE], [HELD], ["device_plugin"], False)["hosts"]["h"]["error"]
    two = [GPUSHARE, {**NANO_GPU, "host": "i"}]
    assert "gpushare, which h would have" in DECIDE(two, [], [], True)["error"]
    assert DECIDE(two, [], [], True, "nano_gpu")["error"] == ""


def test_conflicts_take_all_arguments() -> None:
    joining = [{"host": "h", "node": "n", "expected": 1}]
    assert CONFLICTS(joining, "gpushare", [HELD])["error"].startswith("Node n: pods hold whole GPUs")
    assert CONFLICTS(joining, "gpushare", [HELD], emptied=["n"]) == {"error": "", "whole_resources": ["nvidia.com/gpu"]}
    assert "nano_gpu" in CONFLICTS(joining, "gpushare", [HELD], labelled=["w9"], emptied=["n"])["error"]
    assert "DRA driver" in CONFLICTS(joining, "gpushare", [HELD], claimed=["n"])["error"]
    more = {"labelled": ["w9"], "leaving": ["n"], "second_scheduler": "nano_gpu", "resource_name": "example.com/gpu"}
    assert CONFLICTS(joining, "gpushare", [{**HELD, "gpu_allocated": {"example.com/gpu": 1}}], **more)["error"] != ""
    assert CONFLICTS(joining, "gpushare", [{**HELD, "gpu_allocated": {}}], **more)["error"] == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ([{"node": "n"}], []),
        ([{**GPUSHARE, "strategy": "other"}], []),
        ("text", []),
        ([GPUSHARE], [{}]),
        (None, []),
    ],
)
def test_decisions_name_input_of_another_form(arguments: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="sharing_decisions cannot read its input"):
        DECIDE(*arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ([{"host": "h", "node": "n"}], "gpushare", []),
        ([], "other", []),
        ([], "mps", []),
        (None, "gpushare", []),
        ([{"host": "h", "node": "n", "expected": 1}], "gpushare", [{"name": "n"}]),
    ],
)
def test_conflicts_name_input_of_another_form(arguments: Any) -> None:
    with pytest.raises(AnsibleFilterError, match="sharing_conflicts cannot read its input"):
        CONFLICTS(*arguments)
