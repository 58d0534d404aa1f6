# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible.module_utils.basic")

import yaml

from ansible_collections.gpu.kubernetes.plugins.modules import kernel_settings
from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module

RELEASE = platform.release()
OSTYPE = Path("/proc/sys/kernel/ostype")  # read-only, and the same on every Linux


def test_equal_state_changes_nothing() -> None:
    answer = node_module.run("kernel_settings", {"modules": [], "sysctl": {"kernel.ostype": "Linux"}})
    assert (answer["changed"], answer["loaded"], answer["set"]) == (False, [], {})


def test_check_mode_predicts_changes() -> None:
    arguments = {"modules": ["no_such_module"], "sysctl": {"kernel.ostype": "Plan9"}}
    answer = node_module.run("kernel_settings", arguments, check=True)
    assert answer["changed"]
    assert answer["loaded"] == ["no_such_module"]
    assert answer["set"] == {"kernel.ostype": "Plan9"}
    (difference,) = answer["diff"]
    assert difference["before"] == "kernel.ostype = Linux\nno_such_module is not loaded\n"
    assert difference["after"] == "kernel.ostype = Plan9\nno_such_module is loaded\n"
    assert OSTYPE.read_text().strip() == "Linux"


class TestAtEachBoot:
    """The files that set modules and values at each boot."""

    def arguments(self, folder: Path) -> dict[str, Any]:
        files = {"modules_file": str(folder / "modules" / "gpu.conf"), "sysctl_file": str(folder / "sysctl.conf")}
        return {"modules": ["overlay"], "sysctl": {"kernel.ostype": "Linux", "kernel.osrelease": RELEASE}, **files}

    def test_present_and_absent_restore_the_host(self, tmp_path: Path) -> None:
        arguments = self.arguments(tmp_path)
        result = node_module.run("kernel_settings", arguments, check=True)
        assert list(tmp_path.iterdir()) == []
        answer = node_module.run("kernel_settings", arguments)
        assert answer["changed"]
        assert (result["files"], result["diff"]) == (answer["files"], answer["diff"])
        assert answer["files"] == [arguments["modules_file"], arguments["sysctl_file"]]
        assert answer["diff"][1]["after_header"] == arguments["modules_file"]
        header, *lines = Path(arguments["modules_file"]).read_text().splitlines()
        assert header.startswith("# Written by Ansible")
        assert lines == ["overlay"]
        lines = Path(arguments["sysctl_file"]).read_text().splitlines()[1:]
        assert lines == ["kernel.ostype = Linux", f"kernel.osrelease = {RELEASE}"]
        assert Path(arguments["sysctl_file"]).stat().st_mode & 0o777 == 0o644
        assert not node_module.run("kernel_settings", arguments)["changed"]
        predicted = node_module.run("kernel_settings", {**arguments, "state": "absent"}, check=True)
        assert predicted["files"] == answer["files"]
        assert node_module.run("kernel_settings", {**arguments, "state": "absent"})["files"] == answer["files"]
        assert not Path(arguments["sysctl_file"]).exists()
        assert not node_module.run("kernel_settings", {**arguments, "state": "absent"})["changed"]

    def test_changed_file_is_written_again(self, tmp_path: Path) -> None:
        arguments = self.arguments(tmp_path)
        node_module.run("kernel_settings", arguments)
        Path(arguments["sysctl_file"]).write_text("# edited\n")
        answer = node_module.run("kernel_settings", arguments)
        assert answer["files"] == [arguments["sysctl_file"]]
        assert answer["diff"][1]["before"] == "# edited\n"

    def test_rejected_value_is_not_written(self, tmp_path: Path) -> None:
        arguments = {**self.arguments(tmp_path), "sysctl": {"kernel.ostype": "Plan9"}}
        assert node_module.run("kernel_settings", arguments)["failed"]
        assert list(tmp_path.iterdir()) == []

    def test_folder_instead_of_file_fails(self, tmp_path: Path) -> None:
        answer = node_module.run("kernel_settings", {"sysctl_file": str(tmp_path)})
        assert answer["failed"]
        assert answer["msg"] == f"{tmp_path} is not a regular file."

    @pytest.mark.parametrize("state", ["present", "absent"])
    def test_masked_file_stays_masked(self, tmp_path: Path, state: str) -> None:
        arguments = self.arguments(tmp_path)
        Path(arguments["sysctl_file"]).symlink_to("/dev/null")
        answer = node_module.run("kernel_settings", {**arguments, "modules_file": None, "state": state})
        assert not answer["changed"]
        assert Path(arguments["sysctl_file"]).is_symlink()

    def test_results_are_documented(self) -> None:
        answer = node_module.run("kernel_settings", {})
        assert set(answer) - {"changed", "diff", "invocation"} == set(yaml.safe_load(kernel_settings.RETURN))


def test_module_that_cannot_be_loaded_fails(tmp_path: Path) -> None:
    modprobe = tmp_path / "modprobe"
    modprobe.write_text('#!/bin/sh\n[ "$1" = -- ] && echo "FATAL: Module $2 not found." >&2\nexit 1\n')
    modprobe.chmod(0o755)
    answer = node_module.run("kernel_settings", {"modules": ["no_such_module"]}, folder=str(tmp_path))
    assert answer["failed"]
    assert answer["msg"].startswith(
        "The kernel module no_such_module cannot be loaded (FATAL: Module no_such_module not"
    )
    assert "load it on the host if this is a container" in answer["msg"]


def test_rejected_value_fails() -> None:
    answer = node_module.run("kernel_settings", {"sysctl": {"kernel.ostype": "Plan9"}})
    assert answer["failed"]
    assert answer["msg"].startswith("The kernel refuses kernel.ostype = Plan9 (")


@pytest.mark.parametrize("check", [False, True])
def test_unknown_name_fails(check: bool) -> None:
    answer = node_module.run("kernel_settings", {"sysctl": {"kernel.no_such_setting": "1"}}, check=check)
    assert answer["failed"]
    assert answer["msg"].startswith("The kernel knows no sysctl kernel.no_such_setting: look for a misspelt name")


def test_check_mode_with_unloaded_module_accepts_unknown_name() -> None:
    arguments = {"modules": ["no_such_module"], "sysctl": {"kernel.no_such_setting": "1"}}
    answer = node_module.run("kernel_settings", arguments, check=True)
    assert (answer["changed"], answer["set"]) == (True, {"kernel.no_such_setting": "1"})
