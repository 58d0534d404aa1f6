# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module


def test_the_way_of_a_snapshot(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("good")

    def do(state: str, check: bool = False) -> tuple[bool, bool]:
        arguments = {"path": str(config), "state": state, "state_dir": str(tmp_path / "state")}
        answer = node_module.run("config_snapshot", arguments, check=check)
        return answer["changed"], answer["exists"]

    assert do("restored") == (False, False)
    assert do("taken", check=True) == (True, False)
    assert not (tmp_path / "state").exists()
    assert do("taken") == (True, False)
    assert do("taken") == (False, True)
    config.write_text("bad")
    assert do("restored", check=True) == (True, True)
    assert config.read_text() == "bad"
    assert do("restored") == (True, True)
    assert config.read_text() == "good"
    assert do("dropped", check=True) == (True, True)
    assert do("dropped") == (True, True)
    assert do("dropped") == (False, False)


def test_a_folder_in_the_place_of_the_file_is_a_failure(tmp_path: Path) -> None:
    answer = node_module.run("config_snapshot", {"path": str(tmp_path), "state": "taken"}, check=True)
    assert answer["failed"]
    assert str(tmp_path) in answer["msg"]
