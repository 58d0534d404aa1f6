# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The file of a daemon and its state: modes, links, credentials, and writes that fail."""

from __future__ import annotations

import errno
import os
import stat
import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import NVIDIA_V3, Node

if t.TYPE_CHECKING:
    from pathlib import Path


class TestFile:
    def test_missing_file_is_created_and_removed_with_its_directories(self, tmp_path: Path) -> None:
        node = Node(tmp_path, None, "2.1")
        done = node.present()
        assert done.before is None
        assert done.backup_file is None
        assert node.text() == "version = 3\n\n" + NVIDIA_V3.replace("\n[", "\n\n[")
        assert stat.S_IMODE(node.config.stat().st_mode) == 0o644
        assert stat.S_IMODE(node.config.parent.stat().st_mode) == 0o755
        assert node.absent().after is None
        assert not (tmp_path / "etc").exists()

    def test_directory_that_others_use_stays(self, tmp_path: Path) -> None:
        node = Node(tmp_path, None)
        node.present()
        (node.config.parent / "certs.d").mkdir()
        node.absent()
        assert [place.name for place in node.config.parent.iterdir()] == ["certs.d"]

    def test_mode_and_link_are_kept(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        real = tmp_path / "real.toml"
        node.config.rename(real)
        node.config.symlink_to(real)
        real.chmod(0o640)
        node.present()
        assert node.config.is_symlink()
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        assert "nvidia" in real.read_text(encoding="utf-8")
        node.absent()
        assert real.read_text(encoding="utf-8") == samples.KUBEADM_V3

    def test_state_is_for_root_only(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBESPRAY, "1.7")
        done = node.present()
        assert done.backup_file is not None
        for place in (tmp_path / "state").rglob("*"):
            assert stat.S_IMODE(place.stat().st_mode) == (0o700 if place.is_dir() else 0o600), place
        with open(done.backup_file, encoding="utf-8") as stream:
            assert stream.read() == samples.KUBESPRAY

    def test_read_only_directory_raises(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        real = os.open

        def read_only(path: t.Any, flags: int, *rest: t.Any, **more: t.Any) -> int:
            if str(path).startswith(str(node.config.parent)) and flags & os.O_CREAT:
                raise OSError(30, "Read-only file system")
            return real(path, flags, *rest, **more)

        monkeypatch.setattr(os, "open", read_only)
        with pytest.raises(files.FilesError, match="read-only"):
            node.present()
        monkeypatch.undo()
        assert node.text() == samples.KUBEADM_V3
        assert node.present().changed
        node.absent()
        assert node.text() == samples.KUBEADM_V3

    @pytest.mark.parametrize("due", [False, True])
    @pytest.mark.parametrize("state", ["present", "absent"])
    def test_failed_write_leaves_no_record_and_no_restart_marker(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, due: bool, state: str
    ) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        node.present(set_default=True)
        if not due:
            node.confirm()
        before, text = (sorted(path.name for path in (tmp_path / "state").rglob("*")), node.text())
        record = node.host.change_log(node.daemon({})).read()
        real = os.replace

        def fill(source: str, target: str) -> None:
            if target == str(node.config):
                raise OSError(errno.ENOSPC, "No space left on device")
            real(source, target)

        monkeypatch.setattr(os, "replace", fill)
        with pytest.raises(files.FilesError, match="no space"):
            node.present(set_default=False) if state == "present" else node.absent()
        monkeypatch.undo()
        assert node.text() == text
        assert sorted(path.name for path in (tmp_path / "state").rglob("*")) == before
        assert node.host.change_log(node.daemon({})).read() == record
        assert node.present(set_default=True).restart_required is due

    def test_new_file_with_credentials_is_for_root_only(self, tmp_path: Path) -> None:
        node = Node(tmp_path, None)
        node.present(settings={"plugins": {"x": {"registry": {"auth": {"password": "opensesame"}}}}})
        assert stat.S_IMODE(node.config.stat().st_mode) == 0o600

    @pytest.mark.parametrize(("mode", "warns"), [(0o644, True), (0o640, False)])
    def test_credentials_in_a_world_readable_file_warn(self, tmp_path: Path, mode: int, warns: bool) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        node.config.chmod(mode)
        settings = {"plugins": {"x": {"password": "opensesame"}}}
        for run, expected in ((node.present(settings=settings), warns), (node.present(settings=settings), False)):
            assert ("every user of the host can read it" in str(run.warnings)) is expected
        assert stat.S_IMODE(node.config.stat().st_mode) == mode

    def test_undo_removes_the_copy_of_restored_content(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBESPRAY, "1.7")
        backup = node.present().backup_file
        assert backup
        assert os.path.exists(backup)
        undo = node.absent()
        assert (undo.changed, undo.backup_file, undo.warnings) == (True, None, [])
        assert not (tmp_path / "state" / "backups").exists()

    def test_undo_of_unknown_content_without_a_record_changes_nothing(self, tmp_path: Path) -> None:
        node = Node(tmp_path, "version = 3\nplugins = 5\n")
        with pytest.raises(ConfigError, match="plugins has to be a table"):
            node.present()
        assert not node.absent().changed
        assert node.text() == "version = 3\nplugins = 5\n"

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"version = 3\nfoo = [1,\n  = 2]\n", "config.toml, line 3, column 3: "),
            (b"version = 3\nversion = 3\n", "line 2, column 1"),
            (b"version = {{ .Version }}\n", "is a template"),
            (b"{{- range .Runtimes }}\n", "is a template"),
            (b"# k0s_managed=true\n", "a drop-in in /etc/k0s/containerd.d"),
            (b"version = 3\nx = \xff\n", "line 2"),
        ],
    )
    def test_invalid_file_is_refused_and_unchanged(self, tmp_path: Path, content: bytes, words: str) -> None:
        node = Node(tmp_path, content)
        with pytest.raises(ConfigError, match=words):
            node.present()
        assert node.config.read_bytes() == content
        assert not (tmp_path / "state").exists()

    def test_invalid_utf8_and_byte_order_mark_are_kept(self, tmp_path: Path) -> None:
        content = b"\xef\xbb\xbf# caf\xe9\r\n" + samples.KUBEADM_V3.replace("\n", "\r\n").encode()
        node = Node(tmp_path, content)
        after = node.present().after
        assert after is not None
        assert after.startswith(b"\xef\xbb\xbf# caf\xe9\r\n")
        node.absent()
        assert node.config.read_bytes() == content

    def test_rendered_file_in_snap_is_refused_before_it_is_read(self, tmp_path: Path) -> None:
        node = Node(tmp_path, None)
        node.config = tmp_path / "microk8s" / "args" / "containerd.toml"
        with pytest.raises(ConfigError, match="MicroK8s"):
            node.present()
