# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be written on a node so that its kubelet's configuration holds what is asked for, or does so no more.

A run may be killed between any two steps: the file then is old or new, and the next run goes on from there. Private to this collection.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass
from fractions import Fraction

from .. import _files
from .._document import same
from .._kubernetes import quantities
from .._runtimes.trees import Tree, dotted
from .._yaml_files.errors import EditError
from .._yaml_files.record import Kept
from .._yaml_files.scalars import Syntax, meaning
from .._yaml_files.steps import Step
from . import allocatable, configuration, overrides, settings
from .record import Record
from .seen import Seen, advice, usable


@dataclass(frozen=True)
class Plan:
    """The change of the file, the record to be written before it (None: to be removed after it), facts, and what has to be told."""

    step: Step | None
    record: Record | None
    facts: t.Mapping[str, t.Any]
    notes: tuple[str, ...] = ()
    keep_record: bool = False  # it is right as it is


def present(values: t.Mapping[str, t.Any], seen: Seen, record: Record | None, syntax: Syntax, given: bool) -> Plan:
    """Plan to have the configuration hold *values*, and no others of ours any more. *given*: the path was. Raises EditError."""
    values = settings.checked(values)
    if not values:
        return absent(seen, record, syntax)
    now = usable(seen, given)
    tree = syntax.read(now, seen.path)
    configuration.check_kind(tree, seen.path)
    drop_ins = seen.trees(syntax)
    overrides.refuse(values, seen.flags or (), drop_ins, seen.path)
    base, foreign = _without(syntax, record, seen.path, now)
    wanted = syntax.edited(base, seen.path, lambda node: configuration.merge(node, values, seen.path))
    if _mean_the_same(syntax, wanted, now, seen.path):
        wanted = now
    after = syntax.read(wanted, seen.path)
    overrides.refuse_listed_cpus(values, after, seen.flags or (), drop_ins, seen.path)
    step = Step(seen.path, now, wanted) if wanted != now else None
    kept = Kept(base, (_files.sha256(wanted), *_still(now, record)))
    facts = _facts(syntax, seen, step, after, drop_ins, values)
    _refuse_processes(facts["reserved"], seen.processes)
    notes = (*foreign, *_lost_defaults(values, tree, after), *advice(seen))
    return Plan(step, Record(kept, values), facts, notes, keep_record=step is None)


def absent(seen: Seen, record: Record | None, syntax: Syntax) -> Plan:
    """Plan to give back what was there before us; raises as present()."""
    values = record.values if record else {}
    if seen.config is None:
        return Plan(None, None, {**_NO_FACTS, "path": seen.path}, keep_record=record is None)
    after, foreign = _without(syntax, record, seen.path, seen.config)
    step = Step(seen.path, seen.config, after) if after != seen.config else None
    facts = {**_NO_FACTS, "path": seen.path}
    if record is not None:
        facts = _facts(syntax, seen, step, syntax.read(after, seen.path), seen.trees(syntax), values)
    return Plan(step, None, facts, tuple(foreign), keep_record=record is None)


_NO_FACTS: dict[str, t.Any] = {"needs_restart": False, "reserved": {}, "resources": []}


def _without(syntax: Syntax, record: Record | None, path: str, now: bytes) -> tuple[bytes, list[str]]:
    """Return the file as it would be without us, and what has to be told of what stays."""
    if record is None or record.file.first is None:
        return now, []
    if _files.sha256(now) in record.file.written:
        return record.file.first, []
    first = syntax.read(record.file.first, path)
    tree = syntax.read(now, path)
    configuration.check_kind(tree, path)
    foreign = configuration.take_back(tree, record.values, first)

    def change(node: Tree) -> None:
        configuration.take_back(node, record.values, first)

    notes = [f"{path}: {dotted(leaf)} was changed by others since and is left as it is." for leaf in foreign]
    return syntax.edited(now, path, change), notes


def _mean_the_same(syntax: Syntax, left: bytes, right: bytes, path: str) -> bool:
    return same(configuration.means(syntax.read(left, path)), configuration.means(syntax.read(right, path)))


def _still(now: bytes, record: Record | None) -> list[str | None]:
    """Return what we wrote before and may still be there if the run is killed."""
    known = record.file.written if record else ()
    return [digest for digest in (_files.sha256(now),) if digest in known]


def _facts(
    syntax: Syntax, seen: Seen, step: Step | None, after: Tree, drop_ins: overrides.Files, values: t.Mapping[str, t.Any]
) -> dict[str, t.Any]:
    changed = step is not None and not _mean_the_same(syntax, step.before or b"", step.after or b"", seen.path)
    return {
        "path": seen.path,
        "needs_restart": changed,
        "reserved": overrides.effective(after, seen.flags or (), drop_ins),
        "resources": _resources(values),
    }


def _resources(values: t.Mapping[str, t.Any]) -> list[str]:
    """Return the resources of the node of which pods get more or less by *values*."""
    asked = {name for key in settings.RESERVED for name in values.get(key, {})}
    # What a map of thresholds says of one of them says of the others that there is none.
    asked |= {"memory", "ephemeral-storage"} if "evictionHard" in values else set()
    asked |= {"cpu"} if "reservedSystemCPUs" in values else set()
    return [name for name in allocatable.RESOURCES if name in asked]


def _refuse_processes(reserved: t.Mapping[str, t.Mapping[str, str]], processes: int | None) -> None:
    """The kubelet would start with it, and no pod could start anything."""
    kept = sum((quantities.parse(reserved[name].get("pid", "0")) for name in settings.RESERVED), Fraction(0))
    if processes is not None and kept >= processes:
        raise EditError(
            f"values: {math.ceil(kept)} processes (pid) are kept from pods, and the node can have {processes} at all: lower"
            " kubeReserved.pid or systemReserved.pid."
        )


def _lost_defaults(values: t.Mapping[str, t.Any], before: Tree, after: Tree) -> list[str]:
    """The kubelet has thresholds of its own as long as its file has none at all."""
    there = (
        meaning(before.get("evictionHard")) is not None or meaning(after.get("mergeDefaultEvictionSettings")) is True
    )
    lost = [name for name in overrides.DEFAULT_EVICTION_HARD if name not in values.get("evictionHard", {name: ""})]
    if there or not lost:
        return []
    told = ", ".join(f"{name} {overrides.DEFAULT_EVICTION_HARD[name]}" for name in lost)
    note = (
        f"evictionHard replaces all that the kubelet has by default, and does not name {told}: name them too, or set"
        " mergeDefaultEvictionSettings (Kubernetes 1.33 and newer)."
    )
    return [note]
