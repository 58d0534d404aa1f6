# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import stat
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils import _snapshot
from ansible_collections.gpu.kubernetes.plugins.module_utils._snapshot import Snapshot


class Node:
    def __init__(self, root: Path) -> None:
        self.file = root / "config.toml"
        self.state = root / "state"
        self.marker = root / "marker"
        self.snapshot = Snapshot(str(self.file), str(self.state))

    def do(self, what: str) -> int:
        """Make a step's changes and return their number."""
        steps = {
            "take": lambda: self.snapshot.take(str(self.marker)),
            "restore": self.snapshot.restore,
            "drop": self.snapshot.drop,
        }[what]()
        for step in steps:
            _snapshot.apply(step)
        return len(steps)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_take_change_restore_drop(node: Node) -> None:
    node.file.write_bytes(b"good \xff\r\n")
    node.file.chmod(0o640)
    assert node.do("take") == 1
    assert node.do("take") == 0
    node.file.write_text("bad")
    assert node.do("restore") == 1
    assert node.file.read_bytes() == b"good \xff\r\n"
    assert stat.S_IMODE(node.file.stat().st_mode) == 0o640
    assert node.do("restore") == 0
    assert node.do("drop") == 1
    assert not node.snapshot.exists
    assert list(node.state.iterdir()) == []


def test_the_copy_is_for_root_only(node: Node) -> None:
    node.file.write_text("password")
    node.do("take")
    folder = node.state / _snapshot.DIRECTORY
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()] == [0o600]


def test_a_file_that_was_not_there_is_removed_again(node: Node) -> None:
    node.do("take")
    node.file.write_text("new")
    assert node.snapshot.exists
    node.do("restore")
    assert not node.file.exists()


def test_nothing_is_put_back_without_a_snapshot(node: Node) -> None:
    node.file.write_text("mine")
    assert node.do("restore") == 0
    assert node.file.read_text() == "mine"


def test_a_change_without_proof_is_nothing_to_go_back_to(node: Node) -> None:
    node.file.write_text("good")
    node.do("take")
    node.file.write_text("unproved")
    node.marker.touch()
    assert node.do("take") == 0
    node.do("restore")
    assert node.file.read_text() == "good"


def test_a_stale_snapshot_is_taken_anew(node: Node) -> None:
    node.do("take")
    node.file.write_text("the administrator's")
    assert node.do("take") == 2  # the copy comes, the note of its absence goes
    node.file.write_text("bad")
    node.do("restore")
    assert node.file.read_text() == "the administrator's"


def test_a_link_stays_a_link(node: Node, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("good")
    node.file.symlink_to(target)
    node.do("take")
    target.write_text("bad")
    node.do("restore")
    assert node.file.is_symlink()
    assert target.read_text() == "good"
