# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from typing import TYPE_CHECKING, Any

import pytest

from .archive import Content, Directory, Link, docker_archive, image_names

if TYPE_CHECKING:
    import pathlib

NAME = "lab.local/fake/thing:1.0"


def write(path: pathlib.Path, files: dict[str, Content], **options: Any) -> pathlib.Path:
    return docker_archive(path, name=NAME, files=files, **options)


def parts(path: pathlib.Path) -> tuple[dict[str, Any], dict[str, tarfile.TarInfo], bytes]:
    """Configuration, members of the layer by name, the layer itself."""
    with tarfile.open(path) as tar:

        def content(name: str) -> bytes:
            member = tar.extractfile(name)
            assert member is not None
            return member.read()

        (image,) = json.loads(content("manifest.json"))
        config = content(image["Config"])
        assert image["Config"] == hashlib.sha256(config).hexdigest() + ".json"
        (layer_name,) = image["Layers"]
        layer = content(layer_name)
    with tarfile.open(fileobj=io.BytesIO(layer)) as tar:
        members = {member.name: member for member in tar.getmembers()}
    return json.loads(config), members, layer


def test_archive_has_the_requested_files_and_configuration(tmp_path: pathlib.Path) -> None:
    program, data, link = tmp_path / "program", tmp_path / "data", tmp_path / "link"
    program.write_bytes(b"#!")
    program.chmod(0o700)
    data.write_bytes(b"text")
    data.chmod(0o600)
    link.symlink_to(data)
    config, members, layer = parts(
        write(
            tmp_path / "image.tar",
            {
                "/usr/bin/program": program,
                "/usr/share/data": link,
                "/etc/inline": b"inline",
                "/lib": Link("usr/lib"),
                "/tmp": Directory(0o1777),
            },
            entrypoint=["/usr/bin/program"],
            env={"B": "2", "A": "1"},
            labels={"l": "m"},
        )
    )
    path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    assert config["config"] == {
        "Entrypoint": ["/usr/bin/program"],
        "Env": ["A=1", "B=2", path],
        "Labels": {"l": "m"},
        "WorkingDir": "/",
    }
    assert image_names(tmp_path / "image.tar") == [NAME]
    assert config["rootfs"] == {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(layer).hexdigest()]}
    assert {name: (member.type, member.mode, member.size) for name, member in members.items()} == {
        "etc": (tarfile.DIRTYPE, 0o755, 0),
        "etc/inline": (tarfile.REGTYPE, 0o644, 6),
        "lib": (tarfile.SYMTYPE, 0o777, 0),
        "tmp": (tarfile.DIRTYPE, 0o1777, 0),
        "usr": (tarfile.DIRTYPE, 0o755, 0),
        "usr/bin": (tarfile.DIRTYPE, 0o755, 0),
        "usr/bin/program": (tarfile.REGTYPE, 0o755, 2),
        "usr/share": (tarfile.DIRTYPE, 0o755, 0),
        "usr/share/data": (tarfile.REGTYPE, 0o644, 4),
    }
    assert members["lib"].linkname == "usr/lib"
    assert {(member.mtime, member.uid, member.gid) for member in members.values()} == {(0, 0, 0)}
    names = list(members)
    assert all(names.index(os.path.dirname(name)) < names.index(name) for name in names if "/" in name)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pause:3", "needs a registry"),
        ("lab.local/pause", "needs a tag"),
        ("lab.local/pause@sha256:00", "needs a tag"),
    ],
)
def test_archive_with_a_name_that_the_runtime_changes_is_rejected(
    tmp_path: pathlib.Path, name: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        docker_archive(tmp_path / "image.tar", name=name, files={})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a": b""}, "absolute and normal"),
        ({"/a/../b": b""}, "absolute and normal"),
        ({"/a": b"", "/a/b": b""}, "cannot be below"),
        ({"/a": Link("b"), "/a/b/c": b""}, "cannot be below"),
    ],
)
def test_archive_with_an_impossible_path_is_rejected(
    tmp_path: pathlib.Path, files: dict[str, Content], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "image.tar", files)


@pytest.mark.parametrize("content", [b"", b"text"])
def test_image_names_of_another_file_are_an_error(tmp_path: pathlib.Path, content: bytes) -> None:
    path = tmp_path / "image.tar"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"image\.tar is not a docker-archive"):
        image_names(path)
