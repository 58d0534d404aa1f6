# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module gpu_driver_info on a fake tree."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

from fakes.gpu_sysfs import intel_cards, intel_tree

from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module


def test_driver_and_verdict_are_returned_in_check_mode_too(tmp_path: Path) -> None:
    intel_tree(tmp_path, intel_cards("i915", "", device="56a0"))
    (tmp_path / "proc/sys/kernel").mkdir(parents=True)
    (tmp_path / "proc/sys/kernel/osrelease").write_text("5.15.0-60-generic\n")
    arguments = {"vendor": "intel", "root": str(tmp_path), "kernel_log": "/dev/null"}
    answers = [node_module.run("gpu_driver_info", arguments, check=check) for check in (False, True)]
    assert answers[0] == answers[1]
    answer = answers[0]
    assert (answer["changed"], answer["reboot_required"], answer["users"]) == (False, False, [])
    assert [gpu["driver"] for gpu in answer["state"]["gpus"]] == ["i915", ""]
    (problem,) = answer["problems"]
    assert problem.startswith(
        "GPU 0000:04:00.0 (56a0) has no driver: the driver of Linux supports Arc A-Series from 6.2 on"
    )


def test_tree_without_a_kernel_has_the_running_one(tmp_path: Path) -> None:
    """As with a simulator's tree, which has only sys and dev."""
    intel_tree(tmp_path, intel_cards("", device="56c0"))
    answer = node_module.run("gpu_driver_info", {"vendor": "intel", "root": str(tmp_path), "kernel_log": "/dev/null"})
    assert answer["state"]["kernel"] == os.uname().release
