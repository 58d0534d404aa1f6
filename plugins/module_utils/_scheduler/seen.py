# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was read of a node. Private to this collection."""

from __future__ import annotations

import posixpath
import re
import typing as t
from dataclasses import dataclass, field

from .._yaml_files.errors import EditError
from .._yaml_files.scalars import Syntax
from .manifest import is_scheduler

# What editors, package managers and people leave beside a file.
_BACKUP = re.compile(
    r"~$|^#|[._-](?:bak|backup|old|orig|save|saved|copy|swp|rej|tmp|dpkg-\w+|rpm\w+)(?:[._-]|\d|$)|\d{8}", re.IGNORECASE
)


class Unread(Exception):
    """A file of the node has to be known first; the argument is its path."""


@dataclass(frozen=True)
class Seen:
    """The manifest, files of the node by path (None: no such file), and other names in the manifest's folder with their text."""

    path: str
    manifest: bytes | None
    files: t.Mapping[str, bytes | None] = field(default_factory=dict)
    neighbours: t.Mapping[str, bytes | None] = field(default_factory=dict)

    def file(self, path: str) -> bytes | None:
        """Return the content of a file, None if there is none; raises Unread."""
        if path not in self.files:
            raise Unread(path)
        return self.files[path]


def strays(seen: Seen, syntax: Syntax) -> tuple[list[str], list[str]]:
    """Return the files beside the manifest that bring another kube-scheduler, now or at the kubelet's next scan, and warnings.

    What merely looks like a backup has a warning alone.
    """
    folder, files, warnings = posixpath.dirname(seen.path), [], []
    mine = posixpath.basename(seen.path)
    for name in sorted(seen.neighbours):
        file = posixpath.join(folder, name)
        if _carries_scheduler(seen.neighbours[name], syntax):
            files.append(file)
            winner = f"of the two it runs {name}" if name > mine else f"of the two it runs {mine} for now"
            warnings.append(
                f"{file} holds a pod kube-scheduler, too: the kubelet reads every file in {folder}, whatever its name, and {winner}. Move"
                f" {name} out of {folder}."
            )
        elif _BACKUP.search(name):
            warnings.append(
                f"{file} looks like a backup: the kubelet reads every file in {folder}, whatever its name, and brings an old pod back from it."
                f" Move {name} out of {folder}."
            )
    return files, warnings


def _carries_scheduler(data: bytes | None, syntax: Syntax) -> bool:
    try:
        return data is not None and is_scheduler(syntax.read(data, ""))
    except EditError:
        return False
