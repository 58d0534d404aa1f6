# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.change_log import list_changed_files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.paths import StatePaths
from ansible_collections.gpu.kubernetes.plugins.modules import config_snapshot
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import DropInNode
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.samples import KUBEADM_V3
from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module


def test_snapshot_is_taken_restored_and_dropped(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("good")

    def run_state(state: str, check: bool = False) -> tuple[bool, bool]:
        arguments = {"paths": [str(config)], "state": state, "state_dir": str(tmp_path / "state")}
        answer = node_module.run("config_snapshot", arguments, check=check)
        return answer["changed"], answer["exists"]

    assert run_state("restored") == (False, False)
    assert run_state("taken", check=True) == (True, False)
    assert not (tmp_path / "state").exists()
    assert run_state("taken") == (True, False)
    assert run_state("taken") == (False, True)
    config.write_text("bad")
    assert run_state("restored", check=True) == (True, True)
    assert config.read_text() == "bad"
    assert run_state("restored") == (True, True)
    assert config.read_text() == "good"
    assert run_state("dropped", check=True) == (True, True)
    assert run_state("dropped") == (True, True)
    assert run_state("dropped") == (False, False)


def test_several_files_are_restored_at_once(tmp_path: Path) -> None:
    paths = [tmp_path / "config.toml", tmp_path / "drop-in.toml"]
    paths[0].write_text("good")
    arguments = {"paths": [str(file) for file in paths], "state_dir": str(tmp_path / "state")}
    assert node_module.run("config_snapshot", {**arguments, "state": "taken"})["changed"]
    paths[1].write_text("new")
    assert node_module.run("config_snapshot", {**arguments, "state": "restored"})["changed"]
    assert paths[0].read_text() == "good"
    assert not paths[1].exists()
    assert node_module.run("config_snapshot", {**arguments, "state": "dropped"})["exists"]
    assert not node_module.run("config_snapshot", {**arguments, "state": "dropped"})["exists"]


def test_drop_ins_are_restored_with_their_file(tmp_path: Path) -> None:
    node = DropInNode(tmp_path, KUBEADM_V3)
    node.run("present")
    good = node.file.read_bytes(), node.config.read_bytes()
    arguments = {"paths": [str(node.config)], "state_dir": node.host.state_dir}
    assert node_module.run("config_snapshot", {**arguments, "state": "taken"})["changed"]
    node.run("absent")
    assert not node.file.exists()
    assert node_module.run("config_snapshot", {**arguments, "state": "restored"})["changed"]
    assert (node.file.read_bytes(), node.config.read_bytes()) == good
    assert node_module.run("config_snapshot", {**arguments, "state": "dropped"})["changed"]
    assert not node.run("present")["changed"]
    node.run("absent")
    assert node.text() == KUBEADM_V3
    assert not list(tmp_path.rglob("*.json"))


def test_several_changes_before_a_restart_are_undone(tmp_path: Path) -> None:
    """A runtime in a drop-in, removed, then in the file, before one confirmed restart."""
    node = DropInNode(tmp_path, KUBEADM_V3)
    arguments = {"paths": [str(node.file), str(node.config)], "state_dir": node.host.state_dir}
    arguments["pending_marker"] = node.host.restart_marker("containerd")
    for state, drop_in in (("present", ""), ("absent", None), ("present", None)):
        node_module.run("config_snapshot", {**arguments, "state": "taken"})
        answer = node.run(state, drop_in=drop_in)
        assert answer["changed"]
        arguments["paths"] = answer["files"]
    node_module.run("config_snapshot", {**arguments, "state": "dropped"})
    assert list_changed_files(node.host.state_dir) == [str(node.config)]
    node.run("absent")
    assert not list(tmp_path.rglob("*.json"))


def test_edits_of_others_are_kept_and_named(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("good")
    arguments = {"paths": [str(config)], "state_dir": str(tmp_path / "state")}
    node_module.run("config_snapshot", {**arguments, "state": "taken"})
    config.write_text("edited")
    answer = node_module.run("config_snapshot", {**arguments, "state": "restored"}, check=True)
    assert answer["changed"]
    assert "backup_files" not in answer
    assert not (tmp_path / "state" / "backups").exists()
    answer = node_module.run("config_snapshot", {**arguments, "state": "restored"})
    assert config.read_text() == "good"
    assert Path(answer["backup_files"][str(config)]).read_text() == "edited"
    assert answer["backup_files"][str(config)] in json.dumps(answer["warnings"])
    assert set(answer) - {"changed", "invocation", "warnings"} == set(yaml.safe_load(config_snapshot.RETURN))


def test_changes_are_made_under_a_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked: list[str] = []

    @contextlib.contextmanager
    def lock(path: str, *_directories: object) -> Iterator[str]:
        locked.append(path)
        yield path

    monkeypatch.setattr(files, "lock", lock)
    path = str(tmp_path / "config.toml")
    arguments = {"paths": [path], "pending_marker": None, "state_dir": str(tmp_path / "state")}
    for state in ("taken", "restored", "dropped"):
        config_snapshot.act({**arguments, "state": state}, check_mode=True)
        assert locked == []
        config_snapshot.act({**arguments, "state": state}, check_mode=False)
        assert locked.pop() == path


def test_damaged_record_of_changes_fails(tmp_path: Path) -> None:
    path = str(tmp_path / "config.toml")
    record = Path(StatePaths(str(tmp_path / "state")).record(path))
    record.parent.mkdir(parents=True)
    record.write_text("{")
    answer = node_module.run(
        "config_snapshot", {"paths": [path], "state": "dropped", "state_dir": str(tmp_path / "state")}
    )
    assert answer["failed"]
    assert str(record) in answer["msg"]


def test_folder_instead_of_file_fails(tmp_path: Path) -> None:
    answer = node_module.run("config_snapshot", {"paths": [str(tmp_path)], "state": "taken"}, check=True)
    assert answer["failed"]
    assert str(tmp_path) in answer["msg"]
