# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module

OSTYPE = Path("/proc/sys/kernel/ostype")  # read-only, and the same on every Linux


def test_nothing_to_do() -> None:
    answer = node_module.run("kernel_settings", {"modules": [], "sysctl": {"kernel.ostype": "Linux"}})
    assert (answer["changed"], answer["loaded"], answer["set"]) == (False, [], {})


def test_check_mode_tells_what_would_be_done() -> None:
    arguments = {"modules": ["no_such_module"], "sysctl": {"kernel.ostype": "Plan9"}}
    answer = node_module.run("kernel_settings", arguments, check=True)
    assert answer["changed"]
    assert answer["loaded"] == ["no_such_module"]
    assert answer["set"] == {"kernel.ostype": "Plan9"}
    assert answer["diff"]["before"] == "kernel.ostype = Linux\nno_such_module is not loaded\n"
    assert answer["diff"]["after"] == "kernel.ostype = Plan9\nno_such_module is loaded\n"
    assert OSTYPE.read_text().strip() == "Linux"


def test_a_module_that_cannot_be_loaded_is_one_sentence(tmp_path: Path) -> None:
    modprobe = tmp_path / "modprobe"
    modprobe.write_text('#!/bin/sh\n[ "$1" = -- ] && echo "FATAL: Module $2 not found." >&2\nexit 1\n')
    modprobe.chmod(0o755)
    answer = node_module.run("kernel_settings", {"modules": ["no_such_module"]}, folder=str(tmp_path))
    assert answer["failed"]
    assert answer["msg"].startswith(
        "The kernel module no_such_module cannot be loaded (FATAL: Module no_such_module not"
    )
    assert "load it on the host if this is a container" in answer["msg"]


def test_a_value_that_the_kernel_refuses_is_one_sentence() -> None:
    answer = node_module.run("kernel_settings", {"sysctl": {"kernel.ostype": "Plan9"}})
    assert answer["failed"]
    assert answer["msg"].startswith("The kernel refuses kernel.ostype = Plan9 (")


@pytest.mark.parametrize("check", [False, True])
def test_a_name_that_the_kernel_does_not_know_is_one_sentence(check: bool) -> None:
    answer = node_module.run("kernel_settings", {"sysctl": {"kernel.no_such_setting": "1"}}, check=check)
    assert answer["failed"]
    assert answer["msg"].startswith("The kernel knows no sysctl kernel.no_such_setting: look for a misspelt name")


def test_in_check_mode_a_module_that_is_to_be_loaded_may_bring_the_name() -> None:
    arguments = {"modules": ["no_such_module"], "sysctl": {"kernel.no_such_setting": "1"}}
    answer = node_module.run("kernel_settings", arguments, check=True)
    assert (answer["changed"], answer["set"]) == (True, {"kernel.no_such_setting": "1"})
