# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ansible.module_utils.testing")

from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module


def test_the_way_of_a_snapshot(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("good")

    def do(state: str, check: bool = False) -> tuple[bool, bool]:
        arguments: dict[str, Any] = {"path": str(config), "state": state, "state_dir": str(tmp_path / "state")}
        answer = node_module.run("config_snapshot", check=check, **arguments)
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
    assert do("dropped") == (True, True)
    assert do("dropped") == (False, False)


def test_a_folder_in_the_way_is_one_sentence(tmp_path: Path) -> None:
    answer = node_module.run("config_snapshot", path=None, **{"path": str(tmp_path), "state": "taken"}) if False else (
        node_module.run("config_snapshot", **{"state": "taken", "state_dir": str(tmp_path / "s")} | {"path": str(tmp_path)})
    )
    assert answer["failed"]
