# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to be written on a node so that its kubelet's configuration holds the requested values, or no longer does.

A run may be killed between any two steps: the file then is old or new, and the next run resumes from there.
"""

from __future__ import annotations

import math
import typing as t
from dataclasses import dataclass, field, replace
from fractions import Fraction

from .._config.controller import Plan, Step
from .._config.errors import ConfigError
from .._config.files import sha256
from .._config.record import FileRecord
from .._config.tree import Tree, format_path
from .._config.yaml_nodes import Syntax, meaning
from .._document import is_same
from .._kubernetes import quantities
from . import allocatable, configuration
from .node_state import NodeState, require_config, warn_rewritten
from .record import Former, Record, Values


@dataclass(frozen=True)
class Params:
    """The requested values, whether the path was given, and whether to keep the former file until the kubelet is verified."""

    values: Values = field(default_factory=dict)
    path_given: bool = False
    keep_former: bool = False


def present(params: Params, node: NodeState, record: Record | None, syntax: Syntax) -> Plan:
    """Plan to have the configuration hold the requested values, and no other managed ones. Raises ConfigError."""
    values = configuration.check_values(params.values)
    if not values:
        return absent(params, node, record, syntax)
    now = require_config(node, params.path_given, values)
    tree = syntax.read(now, node.path)
    configuration.check_kind(tree, node.path)
    drop_ins = node.trees(syntax)
    configuration.refuse_overrides(values, node.flags or (), node.list_later(drop_ins), node.path)
    original, warnings = _undo(syntax, record, node.path, now)
    target = syntax.edit(original, node.path, lambda root: configuration.merge(root, values, node.path))
    if _means_same(syntax, target, now, node.path):
        target = now
    after = syntax.read(target, node.path)
    configuration.refuse_listed_cpus(values, after, node.flags or (), drop_ins, node.path)
    step = Step(node.path, now, target) if target != now else None
    facts = _facts(syntax, node, record, step, after, drop_ins, values)
    _refuse_processes(facts["reserved"], node.processes)
    # A drop-in adds to the thresholds of those before it.
    warnings += [*([] if node.own else _warn_lost_defaults(values, tree, after)), *warn_rewritten(node)]
    fresh = _record(record, original, now, target, values, params.keep_former and facts["needs_restart"])
    keep = step is None and (record is None or record.values == values)
    return Plan(_steps(step), fresh, facts, tuple(warnings), keep_record=keep)


def absent(params: Params, node: NodeState, record: Record | None, syntax: Syntax) -> Plan:
    """Plan to undo what earlier runs changed; raises as present()."""
    facts = {**_NO_FACTS, "path": node.path, "unverified": _is_unverified(record)}
    if node.config is None:
        # As on a host that has left its cluster: there is nothing to undo or to verify.
        return Plan((), None, {**facts, "unverified": False}, keep_record=record is None)
    now = node.config
    after, warnings = _undo(syntax, record, node.path, now)
    step = Step(node.path, now, after) if after != now else None
    if record is None:
        return Plan(_steps(step), None, facts, tuple(warnings), keep_record=True)
    # After a killed undo, nothing of its own is on record any more.
    values = record.values or next(iter(record.tried), {})
    facts = _facts(syntax, node, record, step, syntax.read(after, node.path), node.trees(syntax), values)
    fresh = _record(record, after, now, after, {}, params.keep_former and facts["needs_restart"])
    keep = _is_unverified(record) and not record.values and step is None and sha256(now) in record.written
    return Plan(_steps(step), fresh if fresh.former else None, facts, tuple(warnings), keep_record=keep)


def restored(node: NodeState, record: Record | None) -> Plan:
    """Plan to restore what there was before an unverified change. Raises ConfigError where others have changed the file since."""
    facts = {**_NO_FACTS, "path": node.path, "unverified": _is_unverified(record)}
    former = record.former if record else None
    if record is None or former is None or node.config == former.content:
        return Plan((), record, facts, keep_record=True)
    if sha256(node.config) not in record.written:
        raise ConfigError(
            f"{node.path} is not as this collection wrote it last: others have changed or removed it, and the former file is not restored"
            " over that. Remove by hand what keeps the kubelet from starting, restart the kubelet, and run again."
        )
    step = Step(node.path, node.config, former.content)
    return Plan((step,), record, {**facts, "needs_restart": True}, keep_record=True)


def confirmed(node: NodeState, record: Record | None) -> Plan:
    """Plan to forget what there was before a change, since the kubelet is verified with what it has now."""
    facts = {**_NO_FACTS, "path": node.path, "unverified": _is_unverified(record)}
    if record is None or record.former is None:
        return Plan((), record, facts, keep_record=True)
    fresh: Record | None = replace(record, former=None)
    if node.config == record.former.content:
        fresh = record.former.record
    elif sha256(node.config) == record.written[0]:
        fresh = replace(record, former=None, tried=())
    return Plan((), fresh if fresh and (fresh.values or fresh.tried) else None, facts)


_NO_FACTS: dict[str, t.Any] = {"needs_restart": False, "reserved": {}, "resources": []}


def _steps(step: Step | None) -> tuple[Step, ...]:
    return (step,) if step else ()


def _undo(syntax: Syntax, record: Record | None, path: str, now: bytes) -> tuple[bytes, list[str]]:
    """Return the file as it would be without this collection, and warnings about what stays."""
    if record is None or record.file.original is None:
        return now, []
    if sha256(now) in record.written:
        return record.file.original, []
    original = syntax.read(record.file.original, path)
    tree = syntax.read(now, path)
    configuration.check_kind(tree, path)

    def change(root: Tree) -> list[tuple[str, ...]]:
        for values in record.tried:
            configuration.undo_values(root, values, original)
        return configuration.undo_values(root, record.values, original)

    warnings = [
        f"{path}: {format_path(leaf)} was changed by others since and is left as it is." for leaf in change(tree)
    ]
    return syntax.edit(now, path, change), warnings


def _means_same(syntax: Syntax, left: bytes, right: bytes, path: str) -> bool:
    return is_same(configuration.normalize(syntax.read(left, path)), configuration.normalize(syntax.read(right, path)))


def _record(
    record: Record | None, original: bytes, now: bytes, target: bytes, values: Values, keep_former: bool
) -> Record:
    """Return what holds once *target* is written, and also if the run is killed before that and the file is still as it is now."""
    former = _former(record, original, now, target, keep_former)
    written = [sha256(each) for each in (target, now, *([former.content] if former else []))]
    return Record(FileRecord(original, tuple(dict.fromkeys(written))), values, _tried(record, now), former)


def _former(record: Record | None, original: bytes, now: bytes, target: bytes, keep_former: bool) -> Former | None:
    """Return what to restore: unless others have edited the file since, what there was before the first unverified change."""
    unverified = record.former if record else None
    if record and unverified and sha256(now) in record.written:
        return unverified
    if not unverified and (target == now or not keep_former):
        return None
    if record is None or original == now:
        # If a run was killed before it wrote, nothing in the file is managed yet.
        return Former(now, None)
    return Former(now, Record(FileRecord(original, (sha256(now),)), record.values, _tried(record, now)[1:]))


def _tried(record: Record | None, now: bytes) -> tuple[Values, ...]:
    """Return the values of earlier runs that may be in the file, newest first."""
    if record is None:
        return ()
    earlier = () if sha256(now) == record.written[0] else record.tried
    return (record.values, *(each for each in earlier if each != record.values))


def _is_unverified(record: Record | None) -> bool:
    return record is not None and record.former is not None


def _facts(
    syntax: Syntax,
    node: NodeState,
    record: Record | None,
    step: Step | None,
    after: Tree,
    drop_ins: configuration.Files,
    values: Values,
) -> dict[str, t.Any]:
    changed = step is not None and not _means_same(syntax, step.before or b"", step.after or b"", node.path)
    main, others = node.stack(after, drop_ins)
    return {
        "path": node.path,
        "needs_restart": changed,
        "unverified": _is_unverified(record),
        "reserved": configuration.read_effective(main, node.flags or (), others),
        "resources": _resources(values),
    }


def _resources(values: t.Mapping[str, t.Any]) -> list[str]:
    """Return the resources of the node whose allocatable amount depends on *values*."""
    found = {name for key in configuration.RESERVED for name in values.get(key, {})}
    # A map of thresholds removes the default ones for the resources that it does not name.
    found |= {"memory", "ephemeral-storage"} if "evictionHard" in values else set()
    found |= {"cpu"} if "reservedSystemCPUs" in values else set()
    return [name for name in allocatable.RESOURCES if name in found]


def _refuse_processes(reserved: t.Mapping[str, t.Mapping[str, str]], processes: int | None) -> None:
    """Refuse values with which the kubelet would start, and no pod could start a process."""
    total = sum(
        (quantities.parse_quantity(reserved[name].get("pid", "0")) for name in configuration.RESERVED), Fraction(0)
    )
    if processes is not None and total >= processes:
        raise ConfigError(
            f"values: {math.ceil(total)} processes (pid) are reserved, and the node can have {processes} in all: lower"
            " kubeReserved.pid or systemReserved.pid."
        )


def _warn_lost_defaults(values: t.Mapping[str, t.Any], before: Tree, after: Tree) -> list[str]:
    """Return a warning where the kubelet loses its default thresholds, which it has as long as its file has none."""
    there = (
        meaning(before.get("evictionHard")) is not None or meaning(after.get("mergeDefaultEvictionSettings")) is True
    )
    lost = [name for name in configuration.DEFAULT_EVICTION_HARD if name not in values.get("evictionHard", {name: ""})]
    if there or not lost:
        return []
    names = ", ".join(f"{name} {configuration.DEFAULT_EVICTION_HARD[name]}" for name in lost)
    warning = (
        f"evictionHard replaces all defaults of the kubelet, and does not name {names}: name them too, or set"
        " mergeDefaultEvictionSettings (Kubernetes 1.33 and newer)."
    )
    return [warning]
