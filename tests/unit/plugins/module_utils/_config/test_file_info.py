# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes, checksums and contents of files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.file_info import describe_files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import FilesError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(b"text \xff")
    (tmp_path / "file").chmod(0o640)
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe", 0o600)
    return tmp_path


def read(folder: Path, *names: str, **more: list[str]) -> dict[str, dict[str, object]]:
    given = {key: [str(folder / name) for name in each] for key, each in more.items()}
    found = describe_files([str(folder / name) for name in names], **given)
    return {os.path.relpath(path, folder): entry for path, entry in found.items()}


def test_attributes_are_those_of_what_a_link_leads_to(folder: Path) -> None:
    attributes = {"exists": True, "mode": "0640", "uid": os.getuid(), "gid": os.getgid()}
    found = read(folder, "file", "link")
    assert isinstance(found["file"].pop("group"), str)
    assert found["file"] == {**attributes, "link": ""}
    assert found["link"].items() >= {**attributes, "link": "file"}.items()


def test_missing_files_and_links_to_them_have_no_attributes(folder: Path) -> None:
    assert read(folder, "missing", "file/below", "dangling", contents=["none"]) == {
        "missing": {"exists": False, "link": ""},
        "file/below": {"exists": False, "link": ""},
        "dangling": {"exists": True, "link": "nowhere"},
        "none": {"exists": False, "link": ""},
    }


def test_checksums_and_contents_are_read_on_request(folder: Path) -> None:
    found = read(folder, checksums=["link", "pipe", "."], contents=["file"])
    assert found["link"]["checksum"] == hashlib.sha256(b"text \xff").hexdigest()
    assert found["file"]["content"] == "text \N{REPLACEMENT CHARACTER}"
    assert found["pipe"]["mode"] == "0600"
    assert not [name for name in ("file", "pipe", ".") if "checksum" in found[name]]
    assert "content" not in found["link"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pipe", r"pipe is not a regular file\."),
        ("sub", r"sub is not a regular file\."),
        ("dangling", r"Cannot read .*/dangling: its target nowhere does not exist\."),
    ],
)
def test_content_of_what_is_no_file_is_refused(folder: Path, name: str, reason: str) -> None:
    """A record that cannot be read is not a missing one."""
    (folder / "sub").mkdir()
    with pytest.raises(FilesError, match=reason):
        read(folder, contents=[name])


def test_home_and_variables_are_expanded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert [entry["exists"] for entry in describe_files(["~/file", "$HOME/link", "~/missing"]).values()] == [
        True,
        True,
        False,
    ]


def test_group_without_a_name_is_a_number(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def find_none(gid: int) -> None:
        raise KeyError(gid)

    monkeypatch.setattr("grp.getgrgid", find_none)
    assert read(folder, "file")["file"]["group"] == str(os.getgid())


def test_unreadable_path_is_named(folder: Path) -> None:
    (folder / "circle").symlink_to("circle")
    with pytest.raises(FilesError, match=r"Cannot read .*/circle: Too many levels of symbolic links\."):
        read(folder, "circle")
