# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Attributes, checksums and contents of files on a node."""

from __future__ import annotations

import grp
import os
import stat
import typing as t

from .files import FilesError, read_bytes, sha256


def describe_files(
    paths: t.Iterable[str], checksums: t.Collection[str] = (), contents: t.Collection[str] = ()
) -> dict[str, dict[str, t.Any]]:
    """Return what describe_file() finds at all paths, by path; raises FilesError. As in Ansible's paths, ~ and $NAME are expanded."""
    return {
        path: describe_file(os.path.expanduser(os.path.expandvars(path)), path in checksums, path in contents)
        for path in [*paths, *checksums, *contents]
    }


def describe_file(path: str, checksum: bool = False, content: bool = False) -> dict[str, t.Any]:
    """Return whether *path* exists, and of what a symbolic link there leads to: mode (octal), uid, gid and name of the group.

    With *checksum*, also the SHA-256 of a regular file; with *content*, the content of the file as text. A link that leads nowhere exists and has no
    attributes. Raises FilesError for a file that cannot be read, and with *content* for what is no regular file.
    """
    link = os.readlink(path) if os.path.islink(path) else ""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError) as exc:
        if content and link:
            raise FilesError(f"Cannot read {path}: its target {link} does not exist.") from exc
        return {"exists": bool(link), "link": link}
    except OSError as exc:
        raise FilesError(f"Cannot read {path}: {exc.strerror}.") from exc
    data = read_bytes(path) if content or (checksum and stat.S_ISREG(status.st_mode)) else None
    return {
        "exists": True,
        "link": link,
        "mode": f"{stat.S_IMODE(status.st_mode):04o}",
        "uid": status.st_uid,
        "gid": status.st_gid,
        "group": _name_group(status.st_gid),
        **({"checksum": sha256(data)} if checksum and data is not None else {}),
        **({"content": data.decode("utf-8", "replace")} if content and data is not None else {}),
    }


def _name_group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)
