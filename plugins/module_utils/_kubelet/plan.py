# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be written on a node so that its kubelet's configuration holds what is asked for, or does so no more.

A run may be killed between any two steps: the file then is old or new, and the next run goes on from there. Private to this collection.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass, replace
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
from .record import Former, Record, Values
from .seen import Seen, advice, usable


@dataclass(frozen=True)
class Plan:
    """The change of the file, the record to be written before it (None: to be removed after it), facts, and what has to be told."""

    step: Step | None
    record: Record | None
    facts: t.Mapping[str, t.Any]
    notes: tuple[str, ...] = ()
    keep_record: bool = False  # it is right as it is


@dataclass(frozen=True)
class Asked:
    """What else the options ask for: whether the path was given, and whether to keep what there was until the kubelet is proved."""

    path_given: bool = False
    keep_former: bool = False


def present(values: Values, seen: Seen, record: Record | None, syntax: Syntax, asked: Asked) -> Plan:
    """Plan to have the configuration hold *values*, and no others of ours any more. Raises EditError."""
    values = settings.checked(values)
    if not values:
        return absent(seen, record, syntax, asked)
    now = usable(seen, asked.path_given)
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
    facts = _facts(syntax, seen, record, step, after, drop_ins, values)
    _refuse_processes(facts["reserved"], seen.processes)
    notes = (*foreign, *_lost_defaults(values, tree, after), *advice(seen))
    fresh = _record(record, base, now, wanted, values, asked.keep_former and facts["needs_restart"])
    return Plan(step, fresh, facts, notes, keep_record=step is None and (record is None or record.values == values))


def absent(seen: Seen, record: Record | None, syntax: Syntax, asked: Asked) -> Plan:
    """Plan to give back what was there before us; raises as present()."""
    facts = {**_NO_FACTS, "path": seen.path, "unproved": _is_unproved(record)}
    if seen.config is None:
        # As on a host that has left its cluster: there is nothing that could be given back, or proved.
        return Plan(None, None, {**facts, "unproved": False}, keep_record=record is None)
    now = seen.config
    after, foreign = _without(syntax, record, seen.path, now)
    step = Step(seen.path, now, after) if after != now else None
    if record is None:
        return Plan(step, None, facts, tuple(foreign), keep_record=True)
    # An undo that was killed has nothing of its own on record any more.
    values = record.values or next(iter(record.tried), {})
    facts = _facts(syntax, seen, record, step, syntax.read(after, seen.path), seen.trees(syntax), values)
    fresh = _record(record, after, now, after, {}, asked.keep_former and facts["needs_restart"])
    keep = _is_unproved(record) and not record.values and step is None and _files.sha256(now) in record.file.written
    return Plan(step, fresh if fresh.former else None, facts, tuple(foreign), keep_record=keep)


def restored(seen: Seen, record: Record | None) -> Plan:
    """Plan to put back what there was before a change that is not proved. Raises EditError where others have changed the file since."""
    facts = {**_NO_FACTS, "path": seen.path, "unproved": _is_unproved(record)}
    former = record.former if record else None
    if record is None or former is None or seen.config == former.content:
        return Plan(None, record, facts, keep_record=True)
    if _files.sha256(seen.config) not in record.file.written:
        raise EditError(
            f"{seen.path} is not as this collection wrote it last: others have changed or removed it, and what was there before is not put back"
            " over that. Take out by hand what the kubelet does not start with, restart the kubelet, and run again."
        )
    return Plan(
        Step(seen.path, seen.config, former.content), record, {**facts, "needs_restart": True}, keep_record=True
    )


def confirmed(seen: Seen, record: Record | None) -> Plan:
    """Plan to forget what there was before a change, since the kubelet is proved with what it has now."""
    facts = {**_NO_FACTS, "path": seen.path, "unproved": _is_unproved(record)}
    if record is None or record.former is None:
        return Plan(None, record, facts, keep_record=True)
    fresh: Record | None = replace(record, former=None)
    if seen.config == record.former.content:
        fresh = record.former.record
    elif _files.sha256(seen.config) == record.file.written[0]:
        fresh = replace(record, former=None, tried=())
    return Plan(None, fresh if fresh and (fresh.values or fresh.tried) else None, facts)


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
    for values in record.tried:
        configuration.take_back(tree, values, first)
    foreign = configuration.take_back(tree, record.values, first)

    def change(node: Tree) -> None:
        for values in (*record.tried, record.values):
            configuration.take_back(node, values, first)

    notes = [f"{path}: {dotted(leaf)} was changed by others since and is left as it is." for leaf in foreign]
    return syntax.edited(now, path, change), notes


def _mean_the_same(syntax: Syntax, left: bytes, right: bytes, path: str) -> bool:
    return same(configuration.means(syntax.read(left, path)), configuration.means(syntax.read(right, path)))


def _record(record: Record | None, base: bytes, now: bytes, wanted: bytes, values: Values, keep_former: bool) -> Record:
    """Return what holds once *wanted* is written, and as well if the run is killed before that and the file is still as it is now."""
    former = _former(record, base, now, wanted, keep_former)
    written = [_files.sha256(each) for each in (wanted, now, *([former.content] if former else []))]
    return Record(Kept(base, tuple(dict.fromkeys(written))), values, _tried(record, now), former)


def _former(record: Record | None, base: bytes, now: bytes, wanted: bytes, keep_former: bool) -> Former | None:
    """Return what to go back to: as long as nobody else has edited since, what there was before the first change that is not proved."""
    unproved = record.former if record else None
    if record and unproved and _files.sha256(now) in record.file.written:
        return unproved
    if not unproved and (wanted == now or not keep_former):
        return None
    # Where a run was killed before it wrote, there may be nothing of ours yet.
    ours = record is not None and base != now
    return Former(
        now,
        Record(Kept(base, (_files.sha256(now),)), record.values, _tried(record, now)[1:]) if record and ours else None,
    )


def _tried(record: Record | None, now: bytes) -> tuple[Values, ...]:
    """Return what runs have asked for that may be in the file, newest first."""
    if record is None:
        return ()
    earlier = () if _files.sha256(now) == record.file.written[0] else record.tried
    return (record.values, *(each for each in earlier if each != record.values))


def _is_unproved(record: Record | None) -> bool:
    return record is not None and record.former is not None


def _facts(
    syntax: Syntax,
    seen: Seen,
    record: Record | None,
    step: Step | None,
    after: Tree,
    drop_ins: overrides.Files,
    values: Values,
) -> dict[str, t.Any]:
    changed = step is not None and not _mean_the_same(syntax, step.before or b"", step.after or b"", seen.path)
    return {
        "path": seen.path,
        "needs_restart": changed,
        "unproved": _is_unproved(record),
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
    kept = sum((quantities.parse_quantity(reserved[name].get("pid", "0")) for name in settings.RESERVED), Fraction(0))
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
