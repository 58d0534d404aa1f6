# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module host_files_info."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module


def test_files_of_all_options_are_returned_by_path(tmp_path: Path) -> None:
    paths = [str(tmp_path / name) for name in ("a", "b", "c")]
    (tmp_path / "b").write_text("{}")
    arguments = {"paths": paths[:1], "checksums": paths[1:2], "contents": paths[1:]}
    answer = node_module.run("host_files_info", arguments, check=True)
    assert (answer["changed"], list(answer["files"])) == (False, paths)
    assert answer["files"][paths[1]].items() >= {"exists": True, "content": "{}"}.items()
    assert len(answer["files"][paths[1]]["checksum"]) == 64
    assert [answer["files"][path]["exists"] for path in paths] == [False, True, False]


def test_unreadable_file_fails_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    answer = node_module.run("host_files_info", {"paths": [str(tmp_path / "circle")]})
    assert (answer["failed"], answer["msg"][:11]) == (True, "Cannot read")
