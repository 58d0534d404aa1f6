# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back: both files as they would be without us. Private to this collection.

Undone means that no extender of ours is in force, and that kube-scheduler starts. So the first bytes of a file come back only if nobody
else edited it since, and if they are good for the kube-scheduler that runs now; otherwise only what is ours is taken out.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .. import _files
from .._yaml_files.errors import EditError
from .._yaml_files.scalars import Syntax, mapping, text_of
from . import configuration, manifest
from .seen import Seen

if t.TYPE_CHECKING:
    from .record import Record


@dataclass(frozen=True)
class Undone:
    """The files without us (None: no file), whether kube-scheduler reads the configuration still, and what has to be told."""

    manifest: bytes | None
    config: bytes | None
    in_use: bool
    notes: tuple[str, ...] = ()


def undone(syntax: Syntax, record: Record, seen: Seen, minor: int) -> Undone:
    """Return the files of *record* without us. Raises EditError, or Unread for a file that has to be read first."""
    now = seen.file(record.path)
    alone = _files.sha256(now) in record.config.written
    if seen.manifest is None:
        config, notes = _config(syntax, record, now, alone, minor, in_use=False)
        return Undone(None, config, False, notes)
    pod = manifest.pod(syntax.read(seen.manifest, seen.path), seen.path)
    first = _first_pod(syntax, record, seen)
    ref = _goal(syntax, record, seen, pod, first, alone, minor)
    config, notes = _config(syntax, record, now, alone, minor, ref == record.ref)
    good = first is not None and (first.image, first.config) == (pod.image, ref) and not manifest.refused_flags(first)
    if good and _files.sha256(seen.manifest) in record.manifest.written:
        return Undone(record.manifest.first, config, ref == record.ref, notes)
    bare = first is None or "annotations" not in first.metadata
    kubeconfig = _kubeconfig(syntax, now, record.path)
    text = syntax.edited(
        seen.manifest,
        seen.path,
        lambda tree: manifest.without_us(manifest.Pod(tree, seen.path), ref, record.ref, kubeconfig, bare),
    )
    return Undone(text, config, ref == record.ref, notes)


def _first_pod(syntax: Syntax, record: Record, seen: Seen) -> manifest.Pod | None:
    try:
        first = record.manifest.first
        return None if first is None else manifest.pod(syntax.read(first, seen.path), seen.path)
    except EditError:
        return None


def _goal(
    syntax: Syntax, record: Record, seen: Seen, pod: manifest.Pod, first: manifest.Pod | None, alone: bool, minor: int
) -> str | None:
    """Return the file that --config is to name afterwards, None for no such flag."""
    before = first.config if first else None
    if pod.config != record.ref or before == record.ref or not alone:
        return pod.config  # others chose it, it always was so, or others rely on it by now
    if before is None:
        return None
    other = manifest.host_path(pod, before)
    data = seen.file(other) if other else None
    sound = data is not None and configuration.is_sound(syntax, data, minor, record.extenders, str(other))
    return before if sound else record.ref


def _config(
    syntax: Syntax, record: Record, now: bytes | None, alone: bool, minor: int, in_use: bool
) -> tuple[bytes | None, tuple[str, ...]]:
    first = record.config.first
    if alone and not in_use and configuration.is_blank(syntax, first, record.path):
        return first, ()
    if alone and first is not None and configuration.is_sound(syntax, first, minor, record.extenders, record.path):
        return first, ()
    if now is None or configuration.is_blank(syntax, now, record.path):
        return now, ()
    tree = syntax.read(now, record.path)
    notes = configuration.clear(tree, minor, record.extenders, record.path)
    data = syntax.edited(
        now, record.path, lambda node: _forget(configuration.clear(node, minor, record.extenders, record.path))
    )
    notes += configuration.taken_out(syntax, first, now, record.extenders, record.path)
    return data, tuple(notes)


def _forget(_notes: list[str]) -> None:
    """The edit is made on more than one tree, and told of once."""


def _kubeconfig(syntax: Syntax, data: bytes | None, what: str) -> str:
    if configuration.is_blank(syntax, data, what):
        return configuration.KUBECONFIG
    connection = mapping(syntax.read(data or b"", what), "clientConnection", what)
    return text_of(connection.get("kubeconfig")) or configuration.KUBECONFIG
