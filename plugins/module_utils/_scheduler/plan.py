# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be written on a node, and in which order, so that its kube-scheduler has the extenders or has them no more.

A run may be killed between any two steps: each of the files then is old or new, kube-scheduler starts with every such pair, and the
next run goes on from there. Private to this collection.
"""

from __future__ import annotations

import posixpath
import typing as t
from dataclasses import dataclass

from .. import _files
from .._yaml_files.errors import EditError
from .._yaml_files.record import Kept
from .._yaml_files.steps import Step
from . import configuration, extenders, flags, manifest, proxy, versions
from .record import Record
from .seen import Seen
from .undo import Undone, undone

if t.TYPE_CHECKING:
    from .._yaml_files.scalars import Syntax

_NOTHING: list[str] = []
CONFIG_PATH = "/etc/kubernetes/gpu-kubernetes-scheduler.yaml"


@dataclass(frozen=True)
class Asked:
    """What the module's options ask for."""

    extenders: t.Sequence[extenders.Extender] = ()
    config_path: str | None = None
    kubernetes_version: str | None = None


@dataclass(frozen=True)
class Plan:
    """The files to change, in their order, the record to be written before them (None: to be removed after them), and facts."""

    steps: tuple[Step, ...]
    record: Record | None
    facts: t.Mapping[str, t.Any]
    notes: tuple[str, ...] = ()
    keep_record: bool = False  # it is right as it is


def present(asked: Asked, seen: Seen, record: Record | None, syntax: Syntax) -> Plan:
    """Plan to give kube-scheduler the extenders. Raises EditError, or Unread for a file that has to be read first."""
    if seen.manifest is None:
        raise EditError(f"There is no manifest {seen.path}.")
    notes = extenders.check(asked.extenders)
    pod = manifest.pod(syntax.read(seen.manifest, seen.path), seen.path)
    minor, told = _minor(asked.kubernetes_version, pod.image)
    notes += proxy.advice(pod.environment, [each["urlPrefix"] for each in asked.extenders], pod.what)
    source, path = _paths(pod, asked.config_path)
    _refuse_place(path, seen.path)
    config, said = _configuration(asked, seen, record, syntax, pod, source, path, minor)
    checksum = str(_files.sha256(config))
    said += manifest.apply(pod, path, checksum)
    after = syntax.edited(
        seen.manifest,
        seen.path,
        lambda tree: _forget(manifest.apply(manifest.Pod(tree, seen.path), path, checksum)),
    )
    said += configuration.ignored_flags(syntax.read(config, path), pod.flags, path)
    steps = [Step(path, seen.file(path), config, pod.owner), Step(seen.path, seen.manifest, after)]
    base = _base(syntax, record, seen, minor)
    if record is not None and record.path != path and base.config != seen.file(record.path):
        steps.append(Step(record.path, seen.file(record.path), base.config))
    facts = {
        "api_version": configuration.api_version(syntax, config, path),
        "config_checksum": checksum,
        "config_path": path,
        "path": seen.path,
    }
    fresh = _record(record, base, steps, asked, str(pod.config), minor)
    changing = tuple(step for step in steps if step.before != step.after)
    same = not changing and record is not None and (record.extenders, record.path) == (fresh.extenders, fresh.path)
    return Plan(changing, fresh, facts, (*notes, *told, *said), keep_record=same)


def absent(asked: Asked, seen: Seen, record: Record | None, syntax: Syntax) -> Plan:
    """Plan to take out what earlier runs put in; raises as present()."""
    facts: dict[str, t.Any] = {"api_version": None, "config_checksum": None, "config_path": None, "path": seen.path}
    if record is None:
        return Plan((), None, facts, tuple(_unrecorded(seen, syntax)), keep_record=True)
    minor, told = record.minor, _NOTHING
    if seen.manifest is not None:
        pod = manifest.pod(syntax.read(seen.manifest, seen.path), seen.path)
        minor, told = _minor(asked.kubernetes_version, pod.image, record.minor)
    back = undone(syntax, record, seen, minor)
    now, after = seen.file(record.path), back.manifest
    # As it was, but for a run that was cut off before its end, which has brought that back.
    anew = back.config != now or _files.sha256(after) != _files.sha256(record.manifest.first)
    if back.in_use and back.config is not None and after is not None and after == seen.manifest and anew:
        # kubeadm has written it anew: nothing of ours is there to go, and the pod would go on with the configuration that it has read.
        checksum = str(_files.sha256(back.config))
        after = syntax.edited(
            after, seen.path, lambda tree: manifest.mark(manifest.Pod(tree, seen.path), manifest.READ, checksum)
        )
    steps = [Step(record.path, now, back.config), Step(seen.path, seen.manifest, after)]
    if back.in_use and back.config is not None:
        facts.update(
            api_version=configuration.api_version(syntax, back.config, record.path),
            config_checksum=_files.sha256(back.config),
            config_path=record.path,
        )
    else:
        steps.reverse()  # kube-scheduler must not be left with a --config that is gone
    changing = tuple(step for step in steps if step.before != step.after)
    return Plan(changing, None, facts, (*told, *back.notes))


def _minor(given: str | None, image: str, known: int | None = None) -> tuple[int, list[str]]:
    """Return the minor version of Kubernetes, as *given* or as the image tells it, and what has to be told."""
    if given is None:
        try:
            return versions.of_image(image), []
        except EditError:
            if known is None:
                raise
            return known, []
    minor = versions.parse(given, "kubernetes_version")
    try:
        tagged = versions.of_image(image)
    except EditError:
        return minor, []
    if tagged == minor:
        return minor, []
    return minor, [
        f"kubernetes_version is {given}, and the image of kube-scheduler is {image}: the first counts, see whether it is right."
    ]


def _paths(pod: manifest.Pod, given: str | None) -> tuple[str, str]:
    """Return the file that kube-scheduler reads now, or would, and the one that it is to read."""
    if pod.config is None:
        return given or CONFIG_PATH, given or CONFIG_PATH
    source = manifest.host_path(pod, pod.config)
    if source is None:
        raise EditError(
            f"{pod.what} names the configuration {pod.config}, which is no file of the node: mount it with a hostPath, then run again."
        )
    return source, given or source


def _refuse_place(path: str, beside: str) -> None:
    folder = posixpath.dirname(posixpath.normpath(beside))
    if posixpath.normpath(path).startswith(folder + "/"):
        raise EditError(
            f"config_path {path} lies in {folder}, where the kubelet takes every file for a pod: give another place."
        )


def _configuration(
    asked: Asked,
    seen: Seen,
    record: Record | None,
    syntax: Syntax,
    pod: manifest.Pod,
    source: str,
    path: str,
    minor: int,
) -> tuple[bytes, list[str]]:
    """Return the new configuration, and what has to be told."""
    data = seen.file(source)
    if source != path and seen.file(path) is not None and (record is None or record.path != path):
        raise EditError(
            f"kube-scheduler reads {source}, and config_path {path} is there, too: leave config_path out to edit the first, or remove the"
            " second."
        )
    blank = configuration.is_blank(syntax, data, source)
    # They stay where they are, since kubeadm writes them anew with each upgrade, and since they count again without --config.
    silenced = pod.flags if pod.config is None or blank else []
    ours = record.extenders if record else ()

    def change(tree: t.Any) -> list[str]:
        return configuration.change(
            tree, minor, asked.extenders, ours, silenced, flags.last(pod.flags, "kubeconfig"), path
        )

    tree = configuration.new_tree() if data is None or blank else syntax.read(data, source)
    notes = change(tree)
    if data is None or blank:
        return syntax.written(tree), notes
    return syntax.edited(data, source, lambda node: _forget(change(node))), notes


def _forget(_notes: list[str]) -> None:
    """The edit is made on more than one tree, and told of once."""


def _base(syntax: Syntax, record: Record | None, seen: Seen, minor: int) -> Undone:
    """Return both files as they would be without us; without a record they are so."""
    return Undone(seen.manifest, None, False) if record is None else undone(syntax, record, seen, minor)


def _record(record: Record | None, base: Undone, steps: t.Sequence[Step], asked: Asked, ref: str, minor: int) -> Record:
    """Return what holds once the first two of *steps* are made; what we wrote before may still be there, if the run is killed."""
    config, pod = steps[:2]
    same = record is not None and record.path == config.path
    first = base.config if same else config.before
    known = (record.config.written if same else (), record.manifest.written) if record else ((), ())
    fresh = [
        Kept(first_bytes, (_files.sha256(step.after), *_still(step, written)))
        for step, first_bytes, written in zip((config, pod), (first, base.manifest), known)
    ]
    identities = tuple(extenders.identity(each) for each in asked.extenders)
    return Record(fresh[1], fresh[0], config.path, ref, identities, minor)


def _still(step: Step, written: tuple[str | None, ...]) -> list[str | None]:
    now = _files.sha256(step.before)
    return [now] if now in written and step.before != step.after else []


def _unrecorded(seen: Seen, syntax: Syntax) -> list[str]:
    if seen.manifest is None:
        return []
    pod = manifest.pod(syntax.read(seen.manifest, seen.path), seen.path)
    if manifest.CHECKSUM not in (pod.metadata.get("annotations") or {}):
        return []
    return [
        f"{seen.path} was edited by this module, but there is no record of it: it is left as it is; take the extenders out by hand."
    ]
