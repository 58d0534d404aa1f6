# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be written on a node, and in which order, so that its kube-scheduler has the extenders or no longer has them.

A run may be killed between any two steps: each of the files then is old or new, kube-scheduler starts with every such pair, and the
next run resumes from there. After an undo, no managed extender is in force, and kube-scheduler starts. So the original bytes of a file are
restored only if others did not edit it since, and if the running kube-scheduler accepts them; otherwise only the managed settings are removed.
"""

from __future__ import annotations

import posixpath
import typing as t
from dataclasses import dataclass

from .._config.controller import Plan, Step
from .._config.errors import ConfigError
from .._config.files import sha256
from .._config.record import FileRecord
from .._config.yaml_nodes import Syntax, mapping, text_of
from . import configuration, extenders, flags, manifest, versions
from .node_state import NodeState
from .record import Record

CONFIG_PATH = "/etc/kubernetes/gpu-kubernetes-scheduler.yaml"


@dataclass(frozen=True)
class Params:
    """What the module's options request."""

    extenders: t.Sequence[extenders.Extender] = ()
    config_path: str | None = None
    kubernetes_version: str | None = None


@dataclass(frozen=True)
class Original:
    """The files without this collection (None: no file), whether kube-scheduler still reads the configuration, and warnings."""

    manifest: bytes | None
    config: bytes | None
    in_use: bool
    warnings: tuple[str, ...] = ()


def present(params: Params, node: NodeState, record: Record | None, syntax: Syntax) -> Plan:
    """Plan to give kube-scheduler the extenders. Raises ConfigError, or Unread for a file that has to be read first."""
    if node.manifest is None:
        raise ConfigError(f"There is no manifest {node.path}.")
    warnings = extenders.check(params.extenders)
    pod = manifest.pod(syntax.read(node.manifest, node.path), node.path)
    warnings += extenders.find_proxy_warnings(
        pod.environment, [each["urlPrefix"] for each in params.extenders], pod.what
    )
    minor = _minor(params.kubernetes_version, pod.image, warnings)
    source, path = _paths(pod, params.config_path)
    _refuse_place(path, node.path)
    config = _configuration(params, node, record, syntax, pod, source, path, minor, warnings)
    checksum = str(sha256(config))
    facts: dict[str, t.Any] = {
        "api_version": configuration.api_version(syntax, config, path),
        "config_checksum": checksum,
        "config_path": path,
        "managed": record is not None or not _is_as_requested(node, pod, source, path, config),
        "path": node.path,
    }
    if not facts["managed"]:
        return Plan((), None, facts, tuple(warnings), keep_record=True)
    warnings += manifest.apply(pod, path, checksum)
    after = syntax.edit(
        node.manifest, node.path, lambda tree: manifest.apply(manifest.Pod(tree, node.path), path, checksum)
    )
    warnings += configuration.warn_ignored_flags(syntax.read(config, path), pod.flags, path)
    steps = [Step(path, node.file(path), config, pod.owner), Step(node.path, node.manifest, after)]
    original = Original(node.manifest, None, False) if record is None else _undo(syntax, record, node, minor)
    if record is not None and record.config_path != path and original.config != node.file(record.config_path):
        steps.append(Step(record.config_path, node.file(record.config_path), original.config))
    fresh = _record(record, original, steps, params, str(pod.config), minor)
    changing = tuple(step for step in steps if step.before != step.after)
    keep = not changing and record is not None and _is_current(record, fresh)
    return Plan(changing, fresh, facts, tuple(warnings), keep_record=keep)


def absent(params: Params, node: NodeState, record: Record | None, syntax: Syntax) -> Plan:
    """Plan to undo what earlier runs changed; raises as present()."""
    facts: dict[str, t.Any] = {
        "api_version": None,
        "config_checksum": None,
        "config_path": None,
        "managed": False,
        "path": node.path,
    }
    if record is None:
        return Plan((), None, facts, tuple(_warn_unrecorded(node, syntax)), keep_record=True)
    warnings: list[str] = []
    minor, path = record.minor, record.config_path
    if node.manifest is not None:
        pod = manifest.pod(syntax.read(node.manifest, node.path), node.path)
        minor = _minor(params.kubernetes_version, pod.image, warnings, record.minor)
    original = _undo(syntax, record, node, minor)
    now, after, config = node.file(path), original.manifest, original.config
    in_use = original.in_use and config is not None
    if in_use and after is not None and after == node.manifest and _needs_restart(record, now, after, config):
        after = syntax.edit(
            after,
            node.path,
            lambda tree: manifest.set_annotation(manifest.Pod(tree, node.path), manifest.READ, str(sha256(config))),
        )
    steps = [Step(path, now, config), Step(node.path, node.manifest, after)]
    if in_use and config is not None:
        api_version = configuration.api_version(syntax, config, path)
        facts.update(api_version=api_version, config_checksum=sha256(config), config_path=path)
    else:
        steps.reverse()  # kube-scheduler must not be left with a --config whose file is removed
    changing = tuple(step for step in steps if step.before != step.after)
    return Plan(changing, None, facts, (*warnings, *original.warnings))


def _is_as_requested(node: NodeState, pod: manifest.Pod, source: str, path: str, config: bytes) -> bool:
    """Whether kube-scheduler of others reads a configuration that is as requested already, so that nothing has to change."""
    if pod.config is None or source != path or config != node.file(path) or manifest.refused_flags(pod):
        return False
    return manifest.CHECKSUM not in mapping(pod.metadata, "annotations", pod.what)


def _undo(syntax: Syntax, record: Record, node: NodeState, minor: int) -> Original:
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


def _needs_restart(record: Record, now: bytes | None, after: bytes, config: bytes | None) -> bool:
    """Whether the pod has to be restarted although nothing of its manifest has to be removed.

    kubeadm has rendered the manifest again, and the pod would keep the configuration that it has read. Only where an
    interrupted run has restored both files is that done already.
    """
    return config != now or sha256(after) != sha256(record.manifest.original)


def _minor(given: str | None, image: str, warnings: list[str], known: int | None = None) -> int:
    """Return the minor version of Kubernetes, as *given* or as the tag of the image names it; adds to *warnings*."""
    if given is None:
        try:
            return versions.of_image(image)
        except ConfigError:
            if known is None:
                raise
            return known
    minor = versions.parse(given, "kubernetes_version")
    try:
        tagged = versions.of_image(image)
    except ConfigError:
        return minor
    if tagged != minor:
        warnings.append(
            f"kubernetes_version is {given}, and the image of kube-scheduler is {image}: the former is used, check whether it is right."
        )
    return minor


def _paths(pod: manifest.Pod, given: str | None) -> tuple[str, str]:
    """Return the file that kube-scheduler reads now, or would, and the one that it is to read."""
    if pod.config is None:
        return given or CONFIG_PATH, given or CONFIG_PATH
    source = manifest.host_path(pod, pod.config)
    if source is None:
        raise ConfigError(
            f"{pod.what} names the configuration {pod.config}, which is not a file of the node: mount it with a hostPath, then run again."
        )
    return source, given or source


def _refuse_place(path: str, beside: str) -> None:
    folder = posixpath.dirname(posixpath.normpath(beside))
    if posixpath.normpath(path).startswith(folder + "/"):
        raise ConfigError(
            f"config_path {path} lies in {folder}, where the kubelet reads every file as a pod: give another place."
        )


def _configuration(
    params: Params,
    node: NodeState,
    record: Record | None,
    syntax: Syntax,
    pod: manifest.Pod,
    source: str,
    path: str,
    minor: int,
    warnings: list[str],
) -> bytes:
    """Return the new configuration; adds to *warnings*."""
    data = node.file(source)
    if source != path and node.file(path) is not None and (record is None or record.config_path != path):
        raise ConfigError(
            f"kube-scheduler reads {source}, and config_path {path} is there, too: leave config_path out to edit the first, or remove the"
            " second."
        )
    blank = data is None or configuration.is_blank(syntax, data, source)
    # They stay where they are, since kubeadm writes them again at each upgrade, and since they have an effect again without --config.
    ignored = pod.flags if pod.config is None or blank else []
    managed = record.extenders if record else ()
    kubeconfig = flags.last(pod.flags, "kubeconfig")

    def change(tree: t.Any) -> list[str]:
        return configuration.set_extenders(tree, minor, params.extenders, managed, ignored, kubeconfig, path)

    if data is None or blank:
        tree = configuration.new_tree()
        warnings += change(tree)
        return syntax.render(tree)
    warnings += change(syntax.read(data, source))
    return syntax.edit(data, source, change)


def _record(
    record: Record | None, original: Original, steps: t.Sequence[Step], params: Params, ref: str, minor: int
) -> Record:
    """Return what holds once the first two of *steps* are made, and also if the run is killed before: earlier content may still be there."""
    config, pod = steps[:2]
    known = record if record and record.config_path == config.path else None
    identities = tuple(extenders.identity(each) for each in params.extenders)
    return Record(
        _file_record(pod, original.manifest, record.manifest if record else None),
        _file_record(config, original.config if known else config.before, known.config if known else None),
        config.path,
        ref,
        identities,
        minor,
    )


def _file_record(step: Step, original: bytes | None, known: FileRecord | None) -> FileRecord:
    now = sha256(step.before)
    is_managed = known is not None and now in known.written and step.before != step.after
    return FileRecord(original, (sha256(step.after), *([now] if is_managed else [])))


def _is_current(record: Record, fresh: Record) -> bool:
    return (record.extenders, record.config_path) == (fresh.extenders, fresh.config_path)


def _warn_unrecorded(node: NodeState, syntax: Syntax) -> list[str]:
    if node.manifest is None:
        return []
    pod = manifest.pod(syntax.read(node.manifest, node.path), node.path)
    if manifest.CHECKSUM not in (pod.metadata.get("annotations") or {}):
        return []
    return [
        f"{node.path} was edited by this module, but there is no record of it: it is left as it is; remove the extenders by hand."
    ]
