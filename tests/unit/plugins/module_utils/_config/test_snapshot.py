# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import snapshot
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.change_log import ChangeLog, Record, Rules
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import FilesError, sha256
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.formats import TOML
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.paths import StatePaths
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.snapshot import Snapshot
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import Node as MergeNode
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils.interruptions import interrupt_at_each_call


class Node:
    def __init__(self, root: Path, file: Path | None = None) -> None:
        self.file = file or root / "config.toml"
        self.state = root / "state"
        self.marker = root / "marker"
        self.paths = StatePaths(str(self.state), (str(root / "lock"),))
        self.snapshot = Snapshot(str(self.file), self.paths)
        self.backup: str | None = None

    def do(self, action: str) -> int:
        """Make a step's changes and return their number."""
        if action == "take":
            steps = self.snapshot.take(str(self.marker))
        elif action == "restore":
            steps, self.backup = self.snapshot.restore()
        else:
            steps = self.snapshot.drop()
        snapshot.apply(steps, self.paths)
        if action == "drop":
            self.snapshot.prune_record()
        return len(steps)

    def write(self, text: str) -> None:
        """Write and record *text* as this collection does."""
        log = ChangeLog(str(self.file), self.paths.record(str(self.file)), TOML, Rules("type"))
        log.write(sha256(text.encode()), {"x": Record(None, None)}, keep=True)
        self.file.write_text(text)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_take_change_restore_drop(node: Node) -> None:
    node.file.write_bytes(b"good \xff\r\n")
    node.file.chmod(0o640)
    assert node.do("take") == 1
    assert node.do("take") == 0
    node.file.write_text("bad")
    assert node.do("restore") == 2, "the content has no record, so it is backed up"
    assert node.file.read_bytes() == b"good \xff\r\n"
    assert stat.S_IMODE(node.file.stat().st_mode) == 0o640
    assert node.do("restore") == 0
    assert node.do("drop") == 1
    assert not node.snapshot.exists
    assert [place.name for place in node.state.iterdir()] == ["backups"]


def test_the_copy_is_for_root_only(node: Node) -> None:
    node.file.write_text("password")
    node.do("take")
    folder = Path(node.paths.snapshots)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()] == [0o600]


def test_restore_removes_new_file(node: Node) -> None:
    node.do("take")
    node.file.write_text("new")
    assert node.snapshot.exists
    node.do("restore")
    assert not node.file.exists()


def test_restore_without_snapshot_changes_nothing(node: Node) -> None:
    node.file.write_text("edited")
    assert node.do("restore") == 0
    assert node.file.read_text() == "edited"


def test_take_of_unverified_change_keeps_the_snapshot(node: Node) -> None:
    node.file.write_text("good")
    node.do("take")
    node.file.write_text("unverified")
    node.marker.touch()
    assert node.do("take") == 0
    node.do("restore")
    assert node.file.read_text() == "good"


def test_stale_snapshot_is_replaced(node: Node) -> None:
    node.do("take")
    node.file.write_text("the administrator's")
    assert node.do("take") == 1
    node.file.write_text("bad")
    node.do("restore")
    assert node.file.read_text() == "the administrator's"


def test_restore_keeps_the_link(node: Node, tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text("good")
    node.file.symlink_to(target)
    node.do("take")
    target.write_text("bad")
    node.do("restore")
    assert node.file.is_symlink()
    assert target.read_text() == "good"


def test_restore_of_removed_file_has_mode_and_owner(node: Node) -> None:
    node.file.write_text("good")
    node.file.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(node.file, 1234, 4321)
    found = node.file.stat()
    node.do("take")
    node.file.unlink()
    assert node.do("restore") == 1
    again = node.file.stat()
    assert (again.st_mode, again.st_uid, again.st_gid) == (found.st_mode, found.st_uid, found.st_gid)
    node.file.chmod(0o600)
    assert node.do("restore") == 1
    assert stat.S_IMODE(node.file.stat().st_mode) == 0o640
    assert node.do("restore") == 0


class TestEditsOfOthers:
    def test_restore_backs_up_edits(self, node: Node) -> None:
        node.file.write_text("good")
        node.do("take")
        node.write("managed")
        node.file.write_text("edited, with a password")
        assert node.do("restore") == 2
        assert node.file.read_text() == "good"
        assert node.backup is not None
        assert Path(node.backup).read_text() == "edited, with a password"
        assert stat.S_IMODE(Path(node.backup).stat().st_mode) == 0o600
        assert stat.S_IMODE(Path(node.backup).parent.stat().st_mode) == 0o700

    def test_managed_content_is_not_backed_up(self, node: Node) -> None:
        node.file.write_text("good")
        node.do("take")
        node.write("managed")
        assert node.do("restore") == 1
        assert node.backup is None
        assert not Path(node.paths.backups).exists()

    def test_edit_during_a_rollback_is_kept(self, node: Node) -> None:
        node.file.write_text("good")
        node.do("take")
        node.write("managed")
        steps, _backup = node.snapshot.restore()
        node.file.write_text("edited")
        with pytest.raises(FilesError, match="was changed by others since it was read"):
            snapshot.apply(steps, node.paths)
        assert node.file.read_text() == "edited"

    def test_edit_makes_earlier_snapshot_stale(self, node: Node) -> None:
        node.file.write_text("good")
        node.do("take")
        node.write("managed")
        node.marker.touch()
        assert node.do("take") == 0
        node.file.write_text("managed and edited")
        assert node.do("take") == 1
        node.write("managed again")
        node.do("restore")
        assert node.file.read_text() == "managed and edited"


DAMAGED = ("3", '{"content": 1, "mode": 0, "owner": null}', '{"content": null, "mode": 0, "owner": 3}')


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", *(f'{{"format": 1, "record": {record}}}' for record in DAMAGED)],
)
def test_damaged_snapshot_is_refused(node: Node, content: str) -> None:
    node.file.write_text("edited")
    node.do("take")
    Path(node.snapshot.file).write_text(content)
    with pytest.raises(FilesError, match=r"is damaged: remove it and correct .*config\.toml by hand\.$"):
        node.do("restore")
    assert node.file.read_text() == "edited"


class TestRecord:
    """A rollback of containerd_config restores the file and its record."""

    def start(self, root: Path) -> tuple[MergeNode, Node]:
        merge = MergeNode(root, samples.DOCKER, "1.7")
        merge.present(set_default=True)
        merge.confirm()
        node = Node(root, merge.config)
        node.marker = Path(merge.host.restart_marker("containerd"))
        return merge, node

    def test_failed_removal_can_be_removed_again(self, tmp_path: Path) -> None:
        merge, node = self.start(tmp_path)
        before = merge.text()
        node.do("take")
        assert merge.absent().changed
        assert not merge.absent().changed, "the second run changes something"
        node.do("restore")
        assert merge.text() == before
        merge.confirm()
        node.do("drop")
        assert merge.absent().changed
        assert merge.text() == samples.DOCKER

    def test_verified_removal_leaves_no_copy_of_the_file(self, tmp_path: Path) -> None:
        merge, node = self.start(tmp_path)
        backups = tmp_path / "state" / "backups"
        node.do("take")
        merge.absent()
        assert backups.exists(), "the removal can still be rolled back"
        node.do("drop")
        assert not backups.exists()

    def test_failed_change_leaves_the_record_from_before(self, tmp_path: Path) -> None:
        merge, node = self.start(tmp_path)
        record = merge.host.change_log(merge.daemon({}))
        before = Path(record.file).read_bytes(), merge.text()
        node.do("take")
        merge.present(set_default=False, runtime_path="/opt/nvidia-container-runtime")
        merge.present(set_default=True, runtime_path="/opt/other")
        node.do("restore")
        merge.confirm()
        node.do("drop")
        assert merge.text() == before[1]
        loaded = record.load(sha256(before[1].encode()), {})
        assert loaded is not None
        assert loaded.written == before[1].encode()
        merge.absent()
        assert merge.text() == samples.DOCKER

    def test_failed_first_merge_leaves_no_record(self, tmp_path: Path) -> None:
        merge = MergeNode(tmp_path, samples.DOCKER, "1.7")
        node = Node(tmp_path, merge.config)
        node.do("take")
        merge.present()
        node.do("restore")
        node.do("drop")
        assert merge.text() == samples.DOCKER
        assert not list((tmp_path / "state" / "state").rglob("*.json"))

    def test_confirmed_removal_leaves_no_record(self, tmp_path: Path) -> None:
        merge, node = self.start(tmp_path)
        node.do("take")
        merge.absent()
        merge.confirm()
        node.do("drop")
        assert merge.text() == samples.DOCKER
        assert not list((tmp_path / "state" / "state").rglob("*.json"))

    def test_rollback_after_interruption_at_each_step(self, tmp_path: Path) -> None:
        """After an interruption and a rollback, the removal can be repeated."""

        def roll_back_removal(merge: MergeNode, node: Node) -> None:
            node.do("take")
            merge.absent()
            node.do("restore")

        merge, node = self.start(tmp_path / "node")
        before = merge.text()
        states = 0
        for at in interrupt_at_each_call(lambda: roll_back_removal(merge, node), tmp_path / "node"):
            assert merge.text() in (before, samples.DOCKER)
            node.do("restore")
            if node.marker.exists():
                assert merge.text() == before
                merge.confirm()
            node.do("drop")
            assert not node.snapshot.exists
            merge.absent()
            assert merge.text() == samples.DOCKER, f"step {at}"
            states += 1
        assert states > 10
