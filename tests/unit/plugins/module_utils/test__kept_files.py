# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that an installer of somebody else replaces come back as they were, and nothing of it stays."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils import _files, _kept_files
from ansible_collections.gpu.kubernetes.plugins.module_utils._files import FilesError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kept_files import Entry, Kept, Record
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils.mortal import run_and_die

HOOK, TOOLKIT, COPY, NEW = "runtime-hook", "container-toolkit", "container-toolkit-bak", "mount"


class Node:
    """A folder of programs: one is a link to the other, as the toolkit's packages make it."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.bin.mkdir(parents=True)
        (self.bin / HOOK).write_bytes(b"\x7fELF hook")
        (self.bin / HOOK).chmod(0o751)
        (self.bin / TOOLKIT).symlink_to(HOOK)
        self.paths = [str(self.bin / name) for name in (HOOK, TOOLKIT, COPY, NEW)]
        self.state_dir = str(root / "state")
        self.record = Record("nano", self.state_dir)

    def install(self, version: str = "1") -> None:
        """What the agent's installer does: each program aside, its own in place; a second time over its own copy."""
        os.replace(self.bin / TOOLKIT, self.bin / COPY)
        (self.bin / HOOK).unlink()
        for name in (HOOK, TOOLKIT, NEW):
            (self.bin / name).write_text(f"{name} of the agent {version}")

    def tree(self) -> dict[str, tuple[t.Any, ...]]:
        """All that is there, to the byte."""
        return {
            path.name: ("link", os.readlink(path)) if path.is_symlink() else (path.stat().st_mode, path.read_bytes())
            for path in self.bin.iterdir()
        }

    def keep(self) -> list[str]:
        return [os.path.basename(path) for path in _kept_files.keep(self.record, self.paths)]

    def note(self) -> list[str]:
        return [os.path.basename(path) for path in _kept_files.note(self.record)]

    def give_back(self) -> tuple[list[str], list[str]]:
        back, left = _kept_files.give_back(self.record)
        return sorted(map(os.path.basename, back)), sorted(map(os.path.basename, left))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_what_was_replaced_comes_back_to_the_byte(node: Node) -> None:
    before = node.tree()
    assert node.keep() == [HOOK, TOOLKIT, COPY, NEW]
    assert node.keep() == []
    node.install()
    assert sorted(node.note()) == sorted([HOOK, TOOLKIT])
    # A second start of its pod, which loses its own copy of the originals.
    node.install()
    assert (node.keep(), node.note()) == ([], [])
    assert node.give_back() == (sorted([HOOK, TOOLKIT, COPY, NEW]), [])
    assert node.tree() == before
    assert not os.path.exists(node.record.file)
    assert node.give_back() == ([], [])


def test_a_run_that_ended_before_the_note_gives_back_all_the_same(node: Node) -> None:
    before = node.tree()
    node.keep()
    node.install()
    assert node.keep() == []
    node.give_back()
    assert node.tree() == before


def test_what_a_package_has_brought_since_is_kept_in_its_turn(node: Node) -> None:
    node.keep()
    node.install()
    node.note()
    (node.bin / HOOK).write_text("hook of the next release")
    assert node.keep() == [HOOK]
    node.install("2")
    node.note()
    node.give_back()
    assert (node.bin / HOOK).read_text() == "hook of the next release"
    assert os.readlink(node.bin / TOOLKIT) == HOOK


def test_what_a_third_one_has_written_since_is_left_alone(node: Node) -> None:
    node.keep()
    node.install()
    node.note()
    (node.bin / HOOK).write_text("hook of the next release")
    assert node.give_back() == (sorted([TOOLKIT, COPY, NEW]), [HOOK])
    assert (node.bin / HOOK).read_text() == "hook of the next release"
    assert sorted(node.tree()) == [TOOLKIT, HOOK]


def test_check_mode_touches_nothing(node: Node) -> None:
    assert len(_kept_files.keep(node.record, node.paths, check_mode=True)) == 4
    assert not os.path.exists(node.state_dir)
    node.keep()
    node.install()
    between = node.tree()
    assert len(_kept_files.note(node.record, check_mode=True)) == 2
    assert len(_kept_files.give_back(node.record, check_mode=True)[0]) == 4
    assert node.tree() == between


@pytest.mark.parametrize("installed", [False, True])
def test_a_run_that_is_killed_anywhere_is_gone_on_with(tmp_path: Path, installed: bool) -> None:
    """Neither keeping nor giving back is ever at a point of no return."""
    for step in range(1, 200):
        node = Node(tmp_path / str(step))
        before = node.tree()
        if installed:
            node.keep()
            node.install()
            node.note()
        died = run_and_die(node.give_back if installed else node.keep, step)
        if not installed:
            node.keep()
            node.install()
            node.note()
        node.give_back()
        assert node.tree() == before, step
        if not died:
            assert step > 10
            return
    pytest.fail("it never came to its end")


def test_a_lost_copy_is_told_and_nothing_is_touched(node: Node) -> None:
    node.keep()
    node.install()
    [kept] = [each for each in (node.record.read() or {}).values() if each.copy]
    os.unlink(str(kept.copy))
    between = node.tree()
    with pytest.raises(FilesError, match=r"is missing or damaged: install the package of .*runtime-hook anew"):
        node.give_back()
    assert node.tree() == between


@pytest.mark.parametrize("text", ["", "[]", '{"/usr/bin/x": {}}', '{"/usr/bin/x": {"original": 1}}'])
def test_a_damaged_record_is_told(node: Node, text: str) -> None:
    _files.write_atomic(node.record.file, text.encode())
    with pytest.raises(FilesError, match="is damaged"):
        node.keep()


def test_a_folder_cannot_be_kept(node: Node) -> None:
    (node.bin / NEW).mkdir()
    with pytest.raises(FilesError, match="not a regular file"):
        node.keep()


OLD, MINE, THEIRS, NONE = Entry("file", "old"), Entry("file", "mine"), Entry("file", "theirs"), Entry("nothing")


@pytest.mark.parametrize(
    ("kept", "now", "keep", "give"),
    [
        (Kept(OLD), OLD, False, False),
        (Kept(OLD), MINE, False, True),
        (Kept(OLD, None, MINE), MINE, False, True),
        (Kept(OLD, None, MINE), Entry("link", "mine"), True, None),
        (Kept(OLD, None, MINE), THEIRS, True, None),
        (Kept(OLD, None, MINE), OLD, False, False),
        (Kept(OLD, None, MINE), NONE, True, None),
        (Kept(NONE, None, MINE), THEIRS, False, True),
        (Kept(NONE), NONE, False, False),
    ],
)
def test_what_is_decided(kept: Kept, now: Entry, keep: bool, give: bool | None) -> None:
    assert (_kept_files.must_keep(kept, now), _kept_files.must_return(kept, now)) == (keep, give)
