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


def test_what_others_wrote_is_left_with_a_warning(tmp_path: Path) -> None:
    program = tmp_path / "program"
    arguments = {"name": "nano-gpu", "state_dir": str(tmp_path / "state")}
    for text, state in (("first", "kept"), ("second", "noted"), ("third", "returned")):
        program.write_text(text)
        given = {"paths": [str(program)]} if state == "kept" else {}
        answer = node_module.run("kept_files", {**arguments, **given, "state": state})
    assert (answer["left"], answer["changed"]) == ([str(program)], True)
    assert f"{program} was written by others since and is left as it is." in str(answer["warnings"])
    assert program.read_text() == "third"


def test_a_name_is_no_path(tmp_path: Path) -> None:
    answer = node_module.run("kept_files", {"name": "../x", "state": "returned", "state_dir": str(tmp_path)})
    assert answer["failed"]
    assert "make it one word" in answer["msg"]
