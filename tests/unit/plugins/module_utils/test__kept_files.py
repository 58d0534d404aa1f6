# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that an installer of somebody else replaces come back as they were, and nothing of it stays."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils import _kept_files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config import files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import FilesError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kept_files import Entry, Kept, Record
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils.mortal import deaths

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
        self.package_file = root / "nvidia-ctk"
        self.upgrade("1")
        self.state_dir = str(root / "state")
        self.record = Record("nano", self.state_dir)

    def install(self, version: str = "1") -> None:
        """What the agent's installer does: each program aside, its own in place; a second time over its own copy."""
        os.replace(self.bin / TOOLKIT, self.bin / COPY)
        (self.bin / HOOK).unlink()
        for name in (HOOK, TOOLKIT, NEW):
            (self.bin / name).write_text(f"{name} of the agent {version}")

    def upgrade(self, version: str) -> None:
        """What the package does that the programs are of."""
        (self.bin / HOOK).write_text(f"hook of release {version}")
        (self.bin / TOOLKIT).unlink()
        (self.bin / TOOLKIT).symlink_to(HOOK)
        self.package_file.write_text(f"release {version}")

    def release(self) -> str:
        return _kept_files.release_of([str(self.package_file)])

    def tree(self) -> dict[str, tuple[t.Any, ...]]:
        """All that is there, to the byte."""
        return {
            path.name: ("link", os.readlink(path)) if path.is_symlink() else (path.stat().st_mode, path.read_bytes())
            for path in self.bin.iterdir()
        }

    def keep(self) -> list[str]:
        return self.kept_and_unreplaced()[0]

    def kept_and_unreplaced(self) -> tuple[list[str], list[str]]:
        fresh, waiting = _kept_files.keep(self.record, self.paths, self.release())
        return [*map(os.path.basename, fresh)], [*map(os.path.basename, waiting)]

    def note(self) -> list[str]:
        return [os.path.basename(path) for path in _kept_files.note(self.record)]

    def give_back(self) -> tuple[list[str], list[str], list[str]]:
        given = _kept_files.give_back(self.record, self.release())
        back, outdated, left = (
            sorted(map(os.path.basename, paths)) for paths in (given.back, given.outdated, given.left)
        )
        return back, outdated, left


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
    assert node.give_back() == (sorted([HOOK, TOOLKIT, COPY, NEW]), [], [])
    assert node.tree() == before
    assert not os.path.exists(node.record.file)
    assert node.give_back() == ([], [], [])


def test_a_run_that_ended_before_the_note_gives_back_all_the_same(node: Node) -> None:
    before = node.tree()
    node.keep()
    node.install()
    assert node.keep() == []
    node.give_back()
    assert node.tree() == before


@pytest.mark.parametrize("kept_again", [False, True])
def test_a_new_version_of_the_other_program_is_never_taken_for_the_original(node: Node, kept_again: bool) -> None:
    """As after a run that was cut off before its note, or where the other program has changed without one."""
    before = node.tree()
    node.keep()
    node.install("1")
    node.note()
    node.install("2")
    if kept_again:
        assert node.kept_and_unreplaced() == ([], [])
    assert node.give_back() == (sorted([HOOK, TOOLKIT, COPY, NEW]), [], [])
    assert node.tree() == before
    # Who knows: what nobody has noted is not lost.
    kept = [path.read_text() for path in Path(node.record.copies).iterdir()]
    assert "runtime-hook of the agent 2" in kept


def test_what_a_package_has_brought_since_is_kept_in_its_turn(node: Node) -> None:
    node.keep()
    node.install()
    node.note()
    node.upgrade("2")
    upgraded = {name: node.tree()[name] for name in (HOOK, TOOLKIT)}
    # The second run is after one that was cut off here.
    assert node.kept_and_unreplaced() == ([HOOK, TOOLKIT], [HOOK, TOOLKIT])
    assert node.kept_and_unreplaced() == ([], [HOOK, TOOLKIT])
    node.install("2")
    assert node.kept_and_unreplaced() == ([], [])
    assert sorted(node.note()) == sorted([HOOK, TOOLKIT])
    assert node.give_back() == (sorted([HOOK, TOOLKIT, COPY, NEW]), [], [])
    assert node.tree() == upgraded


def test_a_package_that_was_installed_again_waits_to_be_replaced(node: Node) -> None:
    node.keep()
    assert node.kept_and_unreplaced() == ([], [])
    node.install()
    node.note()
    node.upgrade("1")
    assert node.kept_and_unreplaced() == ([], [HOOK, TOOLKIT])


def test_package_and_other_program_changed_both(node: Node) -> None:
    """The package was upgraded, and the other program has replaced that since, in a new version: nobody could keep it between."""
    before = node.tree()
    node.keep()
    node.install("1")
    node.note()
    node.upgrade("2")
    node.install("2")
    assert node.kept_and_unreplaced()[1] == [HOOK, TOOLKIT]
    # What is called unreplaced has it start anew, which tells whose it was.
    node.install("2")
    node.note()
    assert node.keep() == []
    assert node.give_back() == (sorted([HOOK, TOOLKIT, COPY, NEW]), sorted([HOOK, TOOLKIT]), [])
    assert node.tree() == before


def test_an_upgrade_before_the_first_note_is_kept_too(node: Node) -> None:
    node.keep()
    node.upgrade("2")
    upgraded = node.tree()
    assert node.keep() == [HOOK, TOOLKIT]
    node.install()
    node.note()
    node.give_back()
    assert node.tree() == upgraded


@pytest.mark.parametrize("kept_again", [False, True])
def test_what_may_be_of_a_newer_package_is_left_alone(node: Node, kept_again: bool) -> None:
    node.keep()
    node.install()
    node.note()
    node.upgrade("2")
    if kept_again:
        node.keep()
    between = node.tree()
    _back, _outdated, left = node.give_back()
    assert HOOK in left
    assert {name: node.tree()[name] for name in (HOOK, TOOLKIT)} == {name: between[name] for name in (HOOK, TOOLKIT)}
    assert sorted(node.tree()) == [TOOLKIT, HOOK]


def test_a_release_is_what_is_in_its_files(tmp_path: Path) -> None:
    program = tmp_path / "program-1"
    link = tmp_path / "program"
    link.symlink_to(program.name)
    seen = [_kept_files.release_of([str(link)])]
    for text in ("1", "2", "2"):
        program.write_text(text)
        seen.append(_kept_files.release_of([str(link)]))
    assert (len(set(seen)), seen[2] == seen[3]) == (3, True)


def test_check_mode_touches_nothing(node: Node) -> None:
    assert len(_kept_files.keep(node.record, node.paths, check_mode=True)[0]) == 4
    assert not os.path.exists(node.state_dir)
    node.keep()
    node.install()
    between = node.tree()
    assert len(_kept_files.note(node.record, check_mode=True)) == 2
    assert len(_kept_files.give_back(node.record, check_mode=True).back) == 4
    assert node.tree() == between


@pytest.mark.parametrize("installed", [False, True])
def test_a_run_that_is_killed_anywhere_is_gone_on_with(tmp_path: Path, installed: bool) -> None:
    """Neither keeping nor giving back is ever at a point of no return."""
    node = Node(tmp_path / "node")
    before = node.tree()
    if installed:
        node.keep()
        node.install()
        node.note()
    states = 0
    for step in deaths(node.give_back if installed else node.keep, tmp_path / "node"):
        if not installed:
            node.keep()
            node.install()
            node.note()
        node.give_back()
        assert node.tree() == before, step
        states += 1
    assert states > 10


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
    files.write_atomic(node.record.file, text.encode())
    with pytest.raises(FilesError, match="is damaged"):
        node.keep()


def test_a_folder_cannot_be_kept(node: Node) -> None:
    (node.bin / NEW).mkdir()
    with pytest.raises(FilesError, match="not a regular file"):
        node.keep()


OLD, MINE, THEIRS, NONE = Entry("file", "old"), Entry("file", "mine"), Entry("file", "theirs"), Entry("nothing")
REPLACED = Kept(OLD, None, MINE, "1")


@pytest.mark.parametrize(
    ("kept", "now", "release", "keep", "give"),
    [
        (Kept(OLD, None, None, "1"), OLD, "1", False, False),
        (Kept(OLD, None, None, "1"), MINE, "1", False, True),
        (REPLACED, MINE, "1", False, True),
        (REPLACED, OLD, "1", False, False),
        # The same package: it is the other one's, in a new version.
        (REPLACED, THEIRS, "1", False, True),
        (REPLACED, Entry("link", "mine"), "1", False, True),
        (REPLACED, NONE, "1", False, True),
        # Another package.
        (REPLACED, MINE, "2", False, True),
        (REPLACED, OLD, "2", True, False),
        (REPLACED, THEIRS, "2", True, None),
        (REPLACED, NONE, "2", True, None),
        # Not yet noted whose it is.
        (Kept(THEIRS, None, None, "2", REPLACED), THEIRS, "2", False, None),
        (Kept(THEIRS, None, None, "2", REPLACED), MINE, "2", False, True),
        (Kept(NONE, None, MINE, "1"), THEIRS, "2", False, True),
        (Kept(NONE), NONE, "", False, False),
    ],
)
def test_what_is_decided(kept: Kept, now: Entry, release: str, keep: bool, give: bool | None) -> None:
    assert (_kept_files.must_keep(kept, now, release), _kept_files.must_return(kept, now, release)) == (keep, give)
