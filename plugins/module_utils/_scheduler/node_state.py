# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What was read of a node."""

from __future__ import annotations

import posixpath
import re
import typing as t
from dataclasses import dataclass, field

from .._config.errors import ConfigError
from .._config.yaml_nodes import Syntax
from .manifest import is_scheduler

# What editors, package managers and people leave beside a file.
_BACKUP = re.compile(
    r"~$|^#|[._-](?:bak|backup|old|orig|save|saved|copy|swp|rej|tmp|dpkg-\w+|rpm\w+)(?:[._-]|\d|$)|\d{8}", re.IGNORECASE
)


class Unread(Exception):
    """A file of the node has to be read first; the argument is its path."""


@dataclass(frozen=True)
class NodeState:
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


def find_duplicates(node: NodeState, syntax: Syntax) -> tuple[list[str], list[str]]:
    """Return the files beside the manifest that hold another kube-scheduler, now or at the kubelet's next scan, and warnings.

    A file that only looks like a backup has a warning alone.
    """
    folder, files, warnings = posixpath.dirname(node.path), [], []
    manifest = posixpath.basename(node.path)
    for name in sorted(node.neighbours):
        file = posixpath.join(folder, name)
        if _has_scheduler(node.neighbours[name], syntax):
            files.append(file)
            winner = f"of the two it runs {name}" if name > manifest else f"of the two it runs {manifest} for now"
            warnings.append(
                f"{file} holds a pod kube-scheduler, too: the kubelet reads every file in {folder}, whatever its name, and {winner}. Move"
                f" {name} out of {folder}."
            )
        elif _BACKUP.search(name):
            warnings.append(
                f"{file} looks like a backup: the kubelet reads every file in {folder}, whatever its name, and starts an old pod from it."
                f" Move {name} out of {folder}."
            )
    return files, warnings


def _has_scheduler(data: bytes | None, syntax: Syntax) -> bool:
    try:
        return data is not None and is_scheduler(syntax.read(data, ""))
    except ConfigError:
        return False
