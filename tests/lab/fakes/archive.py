# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a container image as a docker-archive, from files, with the standard library only.

The archive is a tar file in the shape that ``docker save`` writes (``manifest.json``, one image configuration,
one uncompressed layer) and that ``ctr -n k8s.io images import`` reads. The same input gives the same bytes:
times are zero, owners are root, entries are sorted.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pathlib
import platform
import posixpath
import stat
import tarfile
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Content", "Directory", "Link", "docker_archive", "image_names"]

_EPOCH = "1970-01-01T00:00:00Z"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Link:
    """A symbolic link in the image that points to ``target`` (as text, not resolved)."""

    target: str


@dataclass(frozen=True)
class Directory:
    """A directory with a mode other than the 0755 of implied parents (``/tmp`` needs 0o1777)."""

    mode: int = 0o755


Content = pathlib.Path | bytes | Link | Directory


def docker_archive(
    path: pathlib.Path,
    *,
    name: str,
    files: Mapping[str, Content],
    entrypoint: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> pathlib.Path:
    """Write the image ``name`` to ``path`` and return ``path``.

    name: full reference with registry and tag (``lab.local/fake/pause:3.10``); further names are tags after the
        import.
    files: absolute path inside the image -> what is there. A ``Path`` is read with symbolic links followed and
        becomes 0755 if its owner may execute it, else 0644; ``bytes`` become 0644; see ``Link`` and ``Directory``.
        Parent directories are made.
    env: environment of the image; ``PATH`` is added when left out.

    Raises ValueError for a name without registry or tag, a path that is not absolute and normal, or a file below
    something that is not a directory; OSError when a file cannot be read or the archive cannot be written.
    The archive appears whole or not at all.
    """
    _check_name(name)
    entries = _with_parents(files)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        layer = pathlib.Path(folder, "layer.tar")
        _write_layer(layer, entries)
        layer_digest = _sha256(layer)
        config = _json_bytes(
            {
                "architecture": _ARCHITECTURES.get(platform.machine(), platform.machine()),
                "config": {
                    "Entrypoint": list(entrypoint) or None,
                    "Env": _environment(env or {}),
                    "Labels": dict(sorted((labels or {}).items())) or None,
                    "WorkingDir": "/",
                },
                "created": _EPOCH,
                "history": [{"created": _EPOCH, "created_by": "gpu.kubernetes lab"}],
                "os": "linux",
                "rootfs": {"diff_ids": [f"sha256:{layer_digest}"], "type": "layers"},
            }
        )
        config_name = f"{hashlib.sha256(config).hexdigest()}.json"
        layer_name = f"{layer_digest}/layer.tar"
        manifest = _json_bytes([{"Config": config_name, "Layers": [layer_name], "RepoTags": [name]}])
        whole = pathlib.Path(folder, "image.tar")
        with tarfile.open(whole, "w", format=tarfile.USTAR_FORMAT) as tar:
            _add_bytes(tar, config_name, config)
            _add_file(tar, layer_name, layer, mode=0o644)
            _add_bytes(tar, "manifest.json", manifest)
        whole.chmod(0o644)
        os.replace(whole, path)
    return path


def image_names(archive: pathlib.Path) -> list[str]:
    """The names (``registry/repository:tag``) of the images that a docker-archive holds, in its order.

    Raises ValueError when the file is not a docker-archive.
    """
    try:
        with tarfile.open(archive) as tar:
            member = tar.extractfile("manifest.json")
            manifest = json.load(member) if member else None
    except (tarfile.TarError, KeyError, ValueError) as error:
        raise ValueError(f"{archive} is not a docker-archive: {error}") from error
    if not isinstance(manifest, list):
        raise ValueError(f"{archive} is not a docker-archive: manifest.json is not a list")
    return [tag for image in manifest for tag in image.get("RepoTags") or []]


def _check_name(name: str) -> None:
    registry, slash, rest = name.partition("/")
    if not slash or not rest or not ("." in registry or ":" in registry or registry == "localhost"):
        raise ValueError(f"image name {name!r} needs a registry, as in lab.local/{name}")
    if ":" not in rest.rpartition("/")[2] or "@" in rest:
        raise ValueError(f"image name {name!r} needs a tag and no digest")


def _with_parents(files: Mapping[str, Content]) -> dict[str, Content]:
    """Relative names in the order of the layer (parents before children), with the implied directories."""
    entries: dict[str, Content] = {}
    for target, content in files.items():
        if not target.startswith("/") or posixpath.normpath(target) != target or target == "/":
            raise ValueError(f"path {target!r} in an image has to be absolute and normal")
        entries[target[1:]] = content
    for target in list(entries):
        parent = posixpath.dirname(target)
        while parent:
            if not isinstance(entries.setdefault(parent, Directory()), Directory):
                raise ValueError(f"/{target} cannot be below /{parent}, which is not a directory")
            parent = posixpath.dirname(parent)
    return dict(sorted(entries.items(), key=lambda item: item[0].split("/")))


def _write_layer(layer: pathlib.Path, entries: Mapping[str, Content]) -> None:
    with tarfile.open(layer, "w", format=tarfile.GNU_FORMAT) as tar:
        for target, content in entries.items():
            if isinstance(content, Directory):
                _add_special(tar, target, tarfile.DIRTYPE, content.mode)
            elif isinstance(content, Link):
                _add_special(tar, target, tarfile.SYMTYPE, 0o777, content.target)
            elif isinstance(content, bytes):
                _add_bytes(tar, target, content)
            else:
                executable = content.stat().st_mode & stat.S_IXUSR
                _add_file(tar, target, content, mode=0o755 if executable else 0o644)


def _header(name: str, size: int, mode: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size = size
    header.mode = mode
    return header


def _add_special(tar: tarfile.TarFile, name: str, kind: bytes, mode: int, linkname: str = "") -> None:
    header = _header(name, 0, mode)
    header.type = kind
    header.linkname = linkname
    tar.addfile(header)


def _add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    tar.addfile(_header(name, len(content), 0o644), io.BytesIO(content))


def _add_file(tar: tarfile.TarFile, name: str, source: pathlib.Path, *, mode: int) -> None:
    with source.open("rb") as stream:
        tar.addfile(_header(name, os.fstat(stream.fileno()).st_size, mode), stream)


def _environment(env: Mapping[str, str]) -> list[str]:
    merged = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", **env}
    return [f"{key}={value}" for key, value in sorted(merged.items())]


def _sha256(path: pathlib.Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def _json_bytes(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
