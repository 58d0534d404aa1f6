# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import FilesError, sha256
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.node import write


def test_write_requires_files_as_they_were_read(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text("1")
    order = {
        "path": str(first),
        "data": base64.b64encode(b"2").decode(),
        "owner": None,
        "backup": True,
        "private": False,
    }
    arguments = (str(first), [order])
    places = (str(tmp_path / "state"), str(tmp_path / "backups"))
    with pytest.raises(FilesError, match="second was changed by others"):
        write(*arguments, {str(first): sha256(b"1"), str(second): sha256(b"x")}, *places)
    assert first.read_text() == "1"
    assert not (tmp_path / "backups").exists()
    backups = write(*arguments, {str(first): sha256(b"1"), str(second): None}, *places)
    assert first.read_text() == "2"
    assert Path(backups[str(first)]).read_text() == "1"


def test_file_edited_between_two_writes_is_kept(tmp_path: Path) -> None:
    """The first order changes the second file, like an edit by another program."""
    (tmp_path / "target").write_text("1")
    (tmp_path / "link").symlink_to("target")
    orders = [
        {
            "path": str(tmp_path / name),
            "data": base64.b64encode(data).decode(),
            "owner": None,
            "backup": False,
            "private": False,
        }
        for name, data in (("link", b"2"), ("target", b"3"))
    ]
    expected = {str(tmp_path / name): sha256(b"1") for name in ("link", "target")}
    with pytest.raises(FilesError, match="target was changed by others since it was read"):
        write(str(tmp_path / "link"), orders, expected, str(tmp_path / "state"), str(tmp_path / "backups"))
    assert (tmp_path / "target").read_text() == "2"


def test_copy_of_restored_content_is_removed_with_the_record(tmp_path: Path) -> None:
    file, record, backups = tmp_path / "file", tmp_path / "record", tmp_path / "backups"
    file.write_text("first")
    keys = {"owner": None, "private": False}
    places = (str(tmp_path / "state"), str(backups))

    def order(path: Path, data: bytes | None, **more: bool) -> dict[str, object]:
        return {"path": str(path), "data": data and base64.b64encode(data).decode(), **keys, "backup": False, **more}

    change = [order(record, b"r", private=True), order(file, b"changed", backup=True)]
    write(str(file), change, {str(file): sha256(b"first"), str(record): None}, *places)
    assert [copy.read_text() for copy in backups.iterdir()] == ["first"]
    undo = [order(file, b"first"), order(record, None, private=True)]
    assert write(str(file), undo, {str(file): sha256(b"changed"), str(record): sha256(b"r")}, *places) == {}
    assert not backups.exists()
