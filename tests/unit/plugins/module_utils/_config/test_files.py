# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import os
import stat
import tempfile
import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import files
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils.interruptions import interrupt_at_each_call


def list_names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


class TestReadBytes:
    def test_content_is_returned(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"\xff\r\n")
        assert files.read_bytes(str(tmp_path / "a")) == b"\xff\r\n"

    def test_missing_is_none(self, tmp_path: Path) -> None:
        assert files.read_bytes(str(tmp_path / "none" / "a")) is None

    @pytest.mark.parametrize("kind", ["directory", "loop", "pipe", "device"])
    def test_other_than_a_file_raises(self, tmp_path: Path, kind: str) -> None:
        place = tmp_path / "a"
        if kind == "directory":
            place.mkdir()
        elif kind == "pipe":  # no process writes to it, so a reader would wait forever
            os.mkfifo(place)
        else:
            place.symlink_to(place if kind == "loop" else "/dev/zero")
        with pytest.raises(files.FilesError, match=str(place)):
            files.read_bytes(str(place))


@pytest.fixture
def disk_folder() -> t.Iterator[Path]:
    """A folder on disk. On old kernels, the temporary files of the gates, in memory, have no extended attributes."""
    cache = Path(__file__).resolve().parents[4] / ".cache"
    cache.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=str(cache)) as folder:
        yield Path(folder)


class TestWriteAtomic:
    def test_new_file_in_new_directories(self, tmp_path: Path) -> None:
        previous = os.umask(0o077)
        try:
            made = files.write_atomic(str(tmp_path / "x" / "y" / "a"), b"1")
        finally:
            os.umask(previous)
        assert made == [str(tmp_path / "x"), str(tmp_path / "x" / "y")]
        assert stat.S_IMODE((tmp_path / "x" / "y").stat().st_mode) == 0o755
        assert stat.S_IMODE((tmp_path / "x" / "y" / "a").stat().st_mode) == 0o644

    @pytest.mark.parametrize("mode", [0o600, 0o640, 0o444, 0o755])
    def test_mode_is_kept(self, tmp_path: Path, mode: int) -> None:
        target = tmp_path / "a"
        target.write_bytes(b"old")
        target.chmod(mode)
        files.write_atomic(str(target), b"new")
        assert target.read_bytes() == b"new"
        assert stat.S_IMODE(target.stat().st_mode) == mode

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owner")
    def test_owner_is_kept(self, tmp_path: Path) -> None:
        target = tmp_path / "a"
        target.write_bytes(b"old")
        os.chown(target, 1234, 4321)
        files.write_atomic(str(target), b"new")
        assert (target.stat().st_uid, target.stat().st_gid) == (1234, 4321)

    def test_new_file_has_owner_before_rename(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        done: list[t.Any] = []
        monkeypatch.setattr(os, "fchown", lambda _handle, *owner: done.append(owner))
        replace = os.replace
        monkeypatch.setattr(os, "replace", lambda *paths: done.append("replace") or replace(*paths))
        for data in (b"1", b"2"):
            files.write_atomic(str(tmp_path / "f"), data, owner=[996, 995])
        # An existing file keeps its owner.
        assert done == [(996, 995), "replace", "replace"]

    def test_extended_attributes_are_kept(self, disk_folder: Path) -> None:
        target = disk_folder / "a"
        target.write_bytes(b"old")
        try:
            os.setxattr(target, "user.note", b"kept")
        except OSError as exc:
            pytest.skip(f"no extended attributes here: {exc}")
        files.write_atomic(str(target), b"new")
        assert os.getxattr(target, "user.note") == b"kept"

    def test_attribute_that_cannot_be_kept_stops_the_write(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        target = tmp_path / "a"
        target.write_bytes(b"old")
        monkeypatch.setattr(os, "listxattr", lambda _path: ["security.ima", "security.selinux"])
        monkeypatch.setattr(os, "getxattr", lambda place, _name: b"on file" if isinstance(place, str) else b"other")
        monkeypatch.setattr(os, "setxattr", _refuse)
        with pytest.raises(files.FilesError, match="not permitted"):
            files.write_atomic(str(target), b"new")
        assert target.read_bytes() == b"old"
        assert list_names(tmp_path) == ["a"]

    def test_context_set_by_the_directory_is_enough(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        target = tmp_path / "a"
        target.write_bytes(b"old")
        monkeypatch.setattr(os, "listxattr", lambda _path: ["security.selinux"])
        monkeypatch.setattr(os, "getxattr", lambda _place, _name: b"etc_t")
        monkeypatch.setattr(os, "setxattr", _refuse)
        files.write_atomic(str(target), b"new")
        assert target.read_bytes() == b"new"

    def test_link_stays_and_its_target_changes(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "real" / "a").write_bytes(b"old")
        (tmp_path / "hop").symlink_to("real/a")
        (tmp_path / "link").symlink_to("hop")
        files.write_atomic(str(tmp_path / "link"), b"new")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "hop").is_symlink()
        assert (tmp_path / "real" / "a").read_bytes() == b"new"
        assert list_names(tmp_path / "real") == ["a"]

    def test_directory_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(files.FilesError, match="not a regular file"):
            files.write_atomic(str(tmp_path), b"new")

    @pytest.mark.parametrize(
        ("number", "words"),
        [
            (errno.EROFS, "read-only"),
            (errno.ENOSPC, "no space"),
            (errno.EDQUOT, "quota"),
            (errno.EBUSY, "mount point"),
            (errno.EACCES, "run as root"),
            (errno.EPERM, "lsattr"),
            (errno.EIO, "Input/output error"),
        ],
    )
    @pytest.mark.parametrize("step", ["write", "fsync", "replace"])
    def test_failure_leaves_the_old_file_and_nothing_else(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int, words: str
    ) -> None:
        target = tmp_path / "a"
        target.write_bytes(b"old")

        def fail(*_args: t.Any) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, step, fail)
        with pytest.raises(files.FilesError, match=words) as caught:
            files.write_atomic(str(target), b"new")
        assert str(target) in str(caught.value)
        assert target.read_bytes() == b"old"
        assert list_names(tmp_path) == ["a"]

    def test_short_writes_are_continued(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        real = os.write
        monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:3]))
        files.write_atomic(str(tmp_path / "a"), b"0123456789")
        assert (tmp_path / "a").read_bytes() == b"0123456789"

    @pytest.mark.parametrize(("expected", "changes"), [(b"old", True), (b"other", False), (None, False)])
    @pytest.mark.parametrize("removed", [False, True])
    def test_write_of_unexpected_content_is_refused(
        self, tmp_path: Path, expected: bytes | None, changes: bool, removed: bool
    ) -> None:
        target = tmp_path / "a"
        target.write_bytes(b"old")

        def change() -> None:
            if removed:
                files.remove_file(str(target), (files.sha256(expected),))
            else:
                files.write_atomic(str(target), b"new", expected=(files.sha256(expected),))

        if changes:
            change()
            assert target.exists() is not removed
            return
        with pytest.raises(
            files.FilesError, match="a was changed by others since it was read, and was not replaced; run"
        ):
            change()
        assert target.read_bytes() == b"old"
        assert list_names(tmp_path) == ["a"]

    def test_edit_during_a_write_is_kept(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        target = tmp_path / "a"
        target.write_bytes(b"old")
        monkeypatch.setattr(os, "fsync", lambda _handle: target.write_bytes(b"edited"))
        with pytest.raises(files.FilesError, match="changed by others"):
            files.write_atomic(str(target), b"new", expected=(files.sha256(b"old"),))
        assert target.read_bytes() == b"edited"
        assert list_names(tmp_path) == ["a"]

    @pytest.mark.parametrize(("folder", "labelled"), [("x.d", True), ("x", False)])
    def test_new_drop_in_gets_the_context_of_its_own_folder(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, labelled: bool
    ) -> None:
        """The temporary file of a drop-in is outside its folder, and would have the context of /etc."""
        done: list[t.Any] = []
        monkeypatch.setattr(os, "getxattr", lambda place, name: f"{name} of {place}".encode())
        monkeypatch.setattr(os, "setxattr", lambda _handle, *what: done.append(what))
        files.write_atomic(str(tmp_path / folder / "a.conf"), b"new")
        context = ("security.selinux", f"security.selinux of {tmp_path / folder}".encode())
        assert done == ([context] if labelled else [])

    def test_interrupted_write_is_old_or_new_and_repeatable(self, tmp_path: Path) -> None:
        target = tmp_path / "folder" / "a"
        target.parent.mkdir()
        target.write_bytes(b"old")
        contents = []
        for at in interrupt_at_each_call(lambda: files.write_atomic(str(target), b"new"), target.parent):
            contents.append(target.read_bytes())
            files.write_atomic(str(target), b"next")
            assert target.read_bytes() == b"next", at
            assert list_names(target.parent) == ["a"], at
        # unchanged, with an empty temporary file, with its content, with its mode; then the new file
        assert contents == [b"old"] * 4 + [b"new"]


class TestStaleTemps:
    def test_only_own_temps_of_that_file_are_removed(self, tmp_path: Path) -> None:
        for name in (".a.gpu-kubernetes-12", ".b.gpu-kubernetes-12", ".a.swp", "a"):
            (tmp_path / name).write_bytes(b"")
        assert files.remove_stale_temps(str(tmp_path / "a")) == [str(tmp_path / ".a.gpu-kubernetes-12")]
        assert list_names(tmp_path) == [".a.swp", ".b.gpu-kubernetes-12", "a"]

    def test_missing_directory_is_accepted(self, tmp_path: Path) -> None:
        assert files.remove_stale_temps(str(tmp_path / "none" / "a")) == []


class TestBackup:
    def test_first_version_is_never_overwritten(self, tmp_path: Path) -> None:
        target, store = tmp_path / "a", tmp_path / "state" / "backups"
        target.write_bytes(b"first")
        target.chmod(0o644)
        first = files.backup(str(target), str(store))
        target.write_bytes(b"second")
        second = files.backup(str(target), str(store))
        assert first is not None
        assert second is not None
        assert first != second
        with open(first, "rb") as stream:
            assert stream.read() == b"first"
        assert stat.S_IMODE(os.stat(first).st_mode) == 0o600
        assert stat.S_IMODE(store.stat().st_mode) == 0o700

    def test_same_content_is_stored_once(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"x")
        (tmp_path / "link").symlink_to("a")
        paths = {files.backup(str(tmp_path / name), str(tmp_path / "b")) for name in ("a", "a", "link")}
        assert len(paths) == 1

    def test_damaged_copy_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_bytes(b"content")
        copy = files.backup(str(tmp_path / "a"), str(tmp_path / "b"))
        assert copy is not None
        Path(copy).write_bytes(b"con")
        assert files.backup(str(tmp_path / "a"), str(tmp_path / "b")) == copy
        assert Path(copy).read_bytes() == b"content"

    def test_drop_copy_removes_only_the_copy_of_the_content(self, tmp_path: Path) -> None:
        target, store = str(tmp_path / "a"), tmp_path / "b"
        for data in (b"one", b"two"):
            files.keep_copy(target, data, str(store))
        files.drop_copy(target, b"one", str(store))
        assert [copy.read_bytes() for copy in store.iterdir()] == [b"two"]
        files.drop_copy(target, b"none", str(store))
        files.drop_copy(target, b"two", str(store))
        assert not store.exists()

    def test_missing_file_returns_none(self, tmp_path: Path) -> None:
        assert files.backup(str(tmp_path / "a"), str(tmp_path / "b")) is None
        assert not (tmp_path / "b").exists()

    @pytest.mark.parametrize("other", ["/etc/b/config.toml", "/etc-a/config.toml", "/etc/a-config.toml"])
    def test_names_do_not_collide(self, other: str) -> None:
        assert files.flat_name("/etc/a/config.toml") != files.flat_name(other)


class TestLock:
    def test_second_holder_times_out(self, tmp_path: Path) -> None:
        now = [0.0]
        second = files.lock(
            "/etc/x",
            (str(tmp_path),),
            timeout=5,
            clock=lambda: now[0],
            pause=lambda seconds: now.__setitem__(0, now[0] + seconds),
        )
        with files.lock("/etc/x", (str(tmp_path),)), pytest.raises(files.FilesError, match="for 5 seconds"), second:
            pytest.fail("two holders")

    def test_lock_is_released(self, tmp_path: Path) -> None:
        for _turn in range(2):
            with files.lock("/etc/x", (str(tmp_path),), timeout=0):
                pass

    def test_other_files_do_not_wait(self, tmp_path: Path) -> None:
        with files.lock("/etc/x", (str(tmp_path),)), files.lock("/etc/y", (str(tmp_path),), timeout=0):
            pass

    def test_falls_back_to_the_next_directory(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        with files.lock("/etc/x", (str(tmp_path / "file" / "locks"), str(tmp_path / "good"))) as name:
            assert name.startswith(str(tmp_path / "good"))

    def test_folder_and_file_are_private(self, tmp_path: Path) -> None:
        previous = os.umask(0)
        try:
            with files.lock("/etc/x", (str(tmp_path / "run" / "locks"),)) as name:
                assert stat.S_IMODE(os.stat(name).st_mode) == 0o600
        finally:
            os.umask(previous)
        assert stat.S_IMODE((tmp_path / "run").stat().st_mode) == 0o755
        assert stat.S_IMODE((tmp_path / "run" / "locks").stat().st_mode) == 0o700

    def test_link_instead_of_file_is_refused(self, tmp_path: Path) -> None:
        locks = tmp_path / "locks"
        with files.lock("/etc/x", (str(locks),)) as name:
            pass
        os.unlink(name)
        os.symlink(str(tmp_path / "victim"), name)
        linked = files.lock("/etc/x", (str(locks),))
        with pytest.raises(files.FilesError, match=r"Cannot take the lock for /etc/x: .*symbolic links"), linked:
            pytest.fail("followed a link")
        assert not (tmp_path / "victim").exists()

    def test_default_folder_is_not_world_writable(self) -> None:
        assert files.LOCK_DIR == "/run/gpu-kubernetes"

    def test_no_usable_directory_raises(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(b"")
        lock = files.lock("/etc/x", (str(tmp_path / "file" / "locks"),))
        with pytest.raises(files.FilesError, match="Cannot take the lock for /etc/x"), lock:
            pytest.fail("no lock")


def test_missing_dirs_stops_at_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(files.FilesError, match="Cannot create the directory"):
        files.make_dirs(str(tmp_path / "file" / "x"))


def test_remove_file_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    (tmp_path / "link").symlink_to("a")
    files.remove_file(str(tmp_path / "link"))
    files.remove_file(str(tmp_path / "link"))
    assert list_names(tmp_path) == ["link"]


def _refuse(*_args: t.Any) -> None:
    raise PermissionError(errno.EPERM, "Operation not permitted")
