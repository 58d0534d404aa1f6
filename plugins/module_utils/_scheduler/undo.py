# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Both files as they would be without this collection.

After an undo, no managed extender is in force, and kube-scheduler starts. So the original bytes of a file are restored only if others did
not edit it since, and if the running kube-scheduler accepts them; otherwise only the managed settings are removed.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._config.errors import ConfigError
from .._config.files import sha256
from .._config.yaml_nodes import Syntax, mapping, text_of
from . import configuration, manifest
from .node_state import NodeState

if t.TYPE_CHECKING:
    from .record import Record


@dataclass(frozen=True)
class Original:
    """The files without this collection (None: no file), whether kube-scheduler still reads the configuration, and warnings."""

    manifest: bytes | None
    config: bytes | None
    in_use: bool
    warnings: tuple[str, ...] = ()


def undo(syntax: Syntax, record: Record, node: NodeState, minor: int) -> Original:
    """Return the files of *record* without the changes. Raises ConfigError, or Unread for a file that has to be read first."""
    now = node.file(record.config_path)
    unchanged = sha256(now) in record.config.written
    if node.manifest is None:
        config, warnings = _undo_config(syntax, record, now, unchanged, minor, in_use=False)
        return Original(None, config, False, warnings)
    pod = manifest.pod(syntax.read(node.manifest, node.path), node.path)
    original = _original_pod(syntax, record, node)
    ref = _find_ref(syntax, record, node, pod, original, unchanged, minor)
    config, warnings = _undo_config(syntax, record, now, unchanged, minor, ref == record.ref)
    restorable = (
        original is not None
        and (original.image, original.config) == (pod.image, ref)
        and not manifest.refused_flags(original)
    )
    if restorable and sha256(node.manifest) in record.manifest.written:
        return Original(record.manifest.original, config, ref == record.ref, warnings)
    bare = original is None or "annotations" not in original.metadata
    kubeconfig = _kubeconfig(syntax, now, record.config_path)
    text = syntax.edit(
        node.manifest,
        node.path,
        lambda tree: manifest.undo(manifest.Pod(tree, node.path), ref, record.ref, kubeconfig, bare),
    )
    return Original(text, config, ref == record.ref, warnings)


def _original_pod(syntax: Syntax, record: Record, node: NodeState) -> manifest.Pod | None:
    try:
        original = record.manifest.original
        return None if original is None else manifest.pod(syntax.read(original, node.path), node.path)
    except ConfigError:
        return None


def _find_ref(
    syntax: Syntax,
    record: Record,
    node: NodeState,
    pod: manifest.Pod,
    original: manifest.Pod | None,
    unchanged: bool,
    minor: int,
) -> str | None:
    """Return the file that --config is to name afterwards, None for no such flag."""
    before = original.config if original else None
    if pod.config != record.ref or before == record.ref or not unchanged:
        return pod.config  # others chose it, it always was so, or others have edited the file since
    if before is None:
        return None
    other = manifest.host_path(pod, before)
    data = node.file(other) if other else None
    restorable = data is not None and configuration.is_restorable(syntax, data, minor, record.extenders, str(other))
    return before if restorable else record.ref


def _undo_config(
    syntax: Syntax, record: Record, now: bytes | None, unchanged: bool, minor: int, in_use: bool
) -> tuple[bytes | None, tuple[str, ...]]:
    path, original = record.config_path, record.config.original
    if unchanged and not in_use and configuration.is_blank(syntax, original, path):
        return original, ()
    if (
        unchanged
        and original is not None
        and configuration.is_restorable(syntax, original, minor, record.extenders, path)
    ):
        return original, ()
    if now is None or configuration.is_blank(syntax, now, path):
        return now, ()

    def change(tree: t.Any) -> list[str]:
        return configuration.remove_extenders(tree, minor, record.extenders, path)

    warnings = change(syntax.read(now, path))
    warnings += configuration.warn_removed(syntax, original, now, record.extenders, path)
    return syntax.edit(now, path, change), tuple(warnings)


def _kubeconfig(syntax: Syntax, data: bytes | None, what: str) -> str:
    if configuration.is_blank(syntax, data, what):
        return configuration.KUBECONFIG
    connection = mapping(syntax.read(data or b"", what), "clientConnection", what)
    return text_of(connection.get("kubeconfig")) or configuration.KUBECONFIG
