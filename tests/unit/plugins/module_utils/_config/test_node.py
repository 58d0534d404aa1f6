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
