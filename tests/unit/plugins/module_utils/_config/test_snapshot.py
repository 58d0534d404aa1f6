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
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils.mortal import deaths


class Node:
    def __init__(self, root: Path, file: Path | None = None) -> None:
        self.file = file or root / "config.toml"
        self.state = root / "state"
        self.marker = root / "marker"
        self.paths = StatePaths(str(self.state), (str(root / "lock"),))
        self.snapshot = Snapshot(str(self.file), self.paths)
        self.backup: str | None = None

    def do(self, what: str) -> int:
        """Make a step's changes and return their number."""
        if what == "take":
            steps = self.snapshot.take(str(self.marker))
        elif what == "restore":
            steps, self.backup = self.snapshot.restore()
        else:
            steps = self.snapshot.drop()
        snapshot.apply(steps, self.paths)
        if what == "drop":
            self.snapshot.prune_record()
        return len(steps)

    def write(self, text: str) -> None:
        """Write as this collection does, which records what it wrote."""
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
    assert node.do("restore") == 2, "nobody knows who wrote it, so that it is kept"
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
    assert node.do("take") == 1
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


def test_mode_and_owner_come_back_with_a_file_that_was_removed(node: Node) -> None:
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
    def test_are_kept_before_a_rollback(self, node: Node) -> None:
        node.file.write_text("good")
        node.do("take")
        node.write("ours")
        node.file.write_text("theirs, with a password")
        assert node.do("restore") == 2
        assert node.file.read_text() == "good"
        assert node.backup is not None
        assert Path(node.backup).read_text() == "theirs, with a password"
        assert stat.S_IMODE(Path(node.backup).stat().st_mode) == 0o600
        assert stat.S_IMODE(Path(node.backup).parent.stat().st_mode) == 0o700

    def test_what_we_wrote_needs_no_backup(self, node: Node) -> None:
        node.file.write_text("good")
        node.do("take")
        node.write("ours")
        assert node.do("restore") == 1
        assert node.backup is None
        assert not Path(node.paths.backups).exists()

    def test_made_while_a_rollback_is_planned_are_not_lost(self, node: Node) -> None:
        node.file.write_text("good")
        node.do("take")
        node.write("ours")
        steps, _backup = node.snapshot.restore()
        node.file.write_text("theirs")
        with pytest.raises(FilesError, match="was changed by others meanwhile"):
            snapshot.apply(steps, node.paths)
        assert node.file.read_text() == "theirs"

    def test_make_a_snapshot_from_before_stale(self, node: Node) -> None:
        node.file.write_text("good")
        node.do("take")
        node.write("ours")
        node.marker.touch()
        assert node.do("take") == 0
        node.file.write_text("ours, and theirs")
        assert node.do("take") == 1
        node.write("ours again")
        node.do("restore")
        assert node.file.read_text() == "ours, and theirs"


DAMAGED = ("3", '{"content": 1, "mode": 0, "owner": null}', '{"content": null, "mode": 0, "owner": 3}')


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "{}", *(f'{{"format": 1, "record": {record}}}' for record in DAMAGED)],
)
def test_damaged(node: Node, content: str) -> None:
    node.file.write_text("mine")
    node.do("take")
    Path(node.snapshot.file).write_text(content)
    with pytest.raises(FilesError, match=r"is damaged: remove it and correct .*config\.toml by hand\.$"):
        node.do("restore")
    assert node.file.read_text() == "mine"


class TestWithARecord:
    """Rollbacks of what containerd_config did: the record of changes follows the file."""

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
        assert not merge.absent().changed, "a second run before the restart forgets nothing"
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

    def test_killed_at_every_step(self, tmp_path: Path) -> None:
        """Cut off anywhere between snapshot and rollback, and then rolled back: the removal can be repeated."""

        def fail(merge: MergeNode, node: Node) -> None:
            node.do("take")
            merge.absent()
            node.do("restore")

        merge, node = self.start(tmp_path / "node")
        before = merge.text()
        states = 0
        for at in deaths(lambda: fail(merge, node), tmp_path / "node"):
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
