# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module


def test_the_way_of_kept_files(tmp_path: Path) -> None:
    program, new = tmp_path / "program", tmp_path / "new"
    program.write_text("first")

    def do(state: str, check: bool = False) -> dict[str, Any]:
        paths = [str(program), str(new)] if state == "kept" else []
        arguments = {"name": "nano-gpu", "paths": paths, "state": state, "state_dir": str(tmp_path / "state")}
        return node_module.run("kept_files", arguments, check=check)

    looked = do("kept", check=True)
    assert (looked["changed"], looked["known"], looked["there"]) == (True, False, [str(program)])
    assert [do("kept")["changed"] for _time in range(2)] == [True, False]
    program.write_text("second")
    new.write_text("new")
    assert [do("noted")["changed"] for _time in range(2)] == [True, False]
    assert sorted(do("returned", check=True)["files"]) == [str(new), str(program)]
    assert [do("returned")["changed"] for _time in range(2)] == [True, False]
    assert (program.read_text(), new.exists()) == ("first", False)


def test_what_may_be_of_a_newer_package_is_left_with_a_warning(tmp_path: Path) -> None:
    program, package = tmp_path / "program", tmp_path / "package"
    arguments = {"name": "nano-gpu", "state_dir": str(tmp_path / "state"), "package_files": [str(package)]}
    for text, release, state in (("first", "1", "kept"), ("second", "1", "noted"), ("third", "2", "returned")):
        program.write_text(text)
        package.write_text(release)
        given = {"paths": [str(program)]} if state == "kept" else {}
        answer = node_module.run("kept_files", {**arguments, **given, "state": state})
    assert (answer["left"], answer["changed"]) == ([str(program)], True)
    assert f"{program} is left as it is, for its package was upgraded since" in str(answer["warnings"])
    assert program.read_text() == "third"


def test_what_is_older_than_its_package_comes_back_with_a_warning(tmp_path: Path) -> None:
    program, package = tmp_path / "program", tmp_path / "package"
    arguments = {"name": "nano-gpu", "state_dir": str(tmp_path / "state"), "package_files": [str(package)]}
    for text, release, state in (("first", "1", "kept"), ("second", "1", "noted"), ("second", "2", "returned")):
        program.write_text(text)
        package.write_text(release)
        given = {"paths": [str(program)]} if state == "kept" else {}
        answer = node_module.run("kept_files", {**arguments, **given, "state": state})
    assert (answer["outdated"], program.read_text()) == ([str(program)], "first")
    assert f"{program} is of an older package than the one that is installed" in str(answer["warnings"])


@pytest.mark.parametrize("state", ["kept", "returned"])
def test_whether_anything_is_kept_can_be_asked(tmp_path: Path, state: str) -> None:
    """It is what tells that a host's programs have not been given back yet."""
    arguments = {"name": "nano-gpu", "state_dir": str(tmp_path / "state")}
    asked = [node_module.run("kept_files", {**arguments, "state": state}, check=True)]
    assert not (tmp_path / "state").exists()
    (tmp_path / "program").write_text("first")
    node_module.run("kept_files", {**arguments, "state": "kept", "paths": [str(tmp_path / "program")]})
    asked += [node_module.run("kept_files", {**arguments, "state": state}, check=True) for _time in range(2)]
    assert [answer["known"] for answer in asked] == [False, True, True]
    assert [answer["changed"] for answer in asked] == [False] + [state == "returned"] * 2


def test_a_name_is_no_path(tmp_path: Path) -> None:
    answer = node_module.run("kept_files", {"name": "../x", "state": "returned", "state_dir": str(tmp_path)})
    assert answer["failed"]
    assert "make it one word" in answer["msg"]
