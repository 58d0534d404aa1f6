# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Deciding which labels of a node to change, and remembering what was there before.

The record lives in the node's annotation ``gpu-kubernetes/managed-labels`` as JSON: for every owner its labels, each
with the value that we ``set`` and the value that ``was`` there (null: none), or that somebody else wrote since. So
undoing leaves a node as if we had never been there.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Dict, Iterable, Mapping, Optional, Sequence

from .objects import Object, annotations_of, labels_of, name_of

RECORD = "gpu-kubernetes/managed-labels"
LONGEST_PREFIX = 253

Labels = Dict[str, Optional[str]]
Record = Dict[str, Dict[str, Labels]]

_NAME = re.compile(r"[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")


class LabelError(Exception):
    """The labels cannot be what was asked; the text is one sentence with cause and remedy."""


@dataclass(frozen=True)
class YieldRule:
    """Leave ``labels`` to another tool on nodes that carry a label matching ``when`` (shell patterns)."""

    when: Sequence[str]
    labels: Sequence[str]


@dataclass
class Plan:
    """What to change on one node: ``patch`` is a merge patch or None, before and after hold the labels concerned."""

    node: str
    patch: Object | None = None
    before: Labels = field(default_factory=dict)
    after: Labels = field(default_factory=dict)
    yielded: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Say whether there is anything to patch."""
        return self.patch is not None


def read_labels(where: str, given: Any) -> Labels:
    """Return labels as they come from YAML with text for values; ``where`` begins the sentence of a LabelError.

    Whole numbers become text, booleans ``true`` and ``false``. A fraction is refused, for 1.10 would become 1.1.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise LabelError(
            f"{where}: labels are a dictionary of names and values, not {_kind(given)}; write them as name: value."
        )
    return {str(label): _text(where, str(label), value) for label, value in given.items()}


def _text(where: str, label: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, (str, int)):
        raise LabelError(f"{where}: the value of label {label} is {_kind(value)}; write it as text, in quotes.")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kind(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "a list"
    return "a dictionary" if isinstance(value, Mapping) else f"the {type(value).__name__} {value!r}"


def check_labels(node: str, labels: Mapping[str, Any]) -> None:
    """Refuse names and values that the API server would refuse, before anything is changed. Raises LabelError."""
    for label, value in labels.items():
        prefix, slash, name = label.rpartition("/")
        if not _NAME.fullmatch(name) or (slash and not (_PREFIX.fullmatch(prefix) and len(prefix) <= LONGEST_PREFIX)):
            raise LabelError(
                f"Node {node}: {label!r} is no valid name for a label; use [prefix/]name of letters, digits, -_. only."
            )
        if value is not None and value != "" and not _NAME.fullmatch(str(value)):
            raise LabelError(
                f"Node {node}: {value!r} is no valid value for label {label}; use at most 63 letters, digits, -_. "
                "that begin and end with a letter or digit."
            )


def plan(
    node: Object,
    wanted: Mapping[str, str | None],
    owner: str,
    yield_to: Iterable[YieldRule] = (),
    adopted: Mapping[str, str | None] | None = None,
) -> Plan:
    """Decide what to patch so that the owner's labels on the node are exactly the wanted ones.

    A wanted value of None means that the label must not be there. Labels that the owner set earlier and no longer
    wants get their former value back. A label that is left to another tool stays in the record as long as it has our
    value, so that it still goes away with us if that tool never writes it. Of those that are *adopted*, what the node
    has with just that value, and no owner keeps, is the owner's from here on. Raises LabelError for a record that
    cannot be read or a clash of owners.
    """
    current: dict[str, str] = labels_of(node)
    record = _read_record(node)
    mine = record.setdefault(owner, {})
    steps = _Steps(name_of(node), owner, current, record)
    for label, value in (adopted or {}).items():
        steps.adopt(label, value)
    rules = list(yield_to)
    foreign = [label for label in current if label not in mine]
    result = Plan(name_of(node))
    for label in sorted(set(mine) | set(wanted)):
        if label not in wanted:
            steps.release(label)
        elif _yields(label, foreign, rules):
            steps.leave(label)
            result.yielded.append(label)
        else:
            steps.claim(label, wanted[label])
    _finish(result, node, current, {name: kept for name, kept in record.items() if kept})
    return result


def owned(node: Object, owner: str) -> list[str]:
    """Return the labels that the owner has set on the node according to its record, sorted."""
    return sorted(_read_record(node).get(owner, {}))


@dataclass
class _Steps:
    """The moves on one label; they change ``current`` and ``record`` in place."""

    node: str
    owner: str
    current: dict[str, str]
    record: Record

    def adopt(self, label: str, value: str | None) -> None:
        """Take over a label that somebody has set to this value without an owner, as if there had been none before."""
        mine = self.record[self.owner]
        if value is not None and self.current.get(label) == value and label not in mine and not self._others(label):
            mine[label] = {"set": value, "was": None}

    def claim(self, label: str, value: str | None) -> None:
        others = self._others(label)
        for name, entry in others.items():
            if entry["set"] != value:
                raise LabelError(
                    f"Node {self.node}: label {label} is kept at {entry['set']!r} by owner {name}, so {self.owner} "
                    f"cannot make it {value!r}; let one of them go."
                )
        mine, now = self.record[self.owner], self.current.get(label)
        # Somebody else wrote since: that is what has to come back, whoever of the owners goes last.
        for entry in (*others.values(), *([mine[label]] if label in mine else [])):
            if entry["set"] != now:
                entry["was"] = now
        if label in mine:
            mine[label]["set"] = value
        elif now != value or others:
            mine[label] = {"set": value, "was": now}
        self._write(label, value)

    def release(self, label: str) -> None:
        entry = self.record[self.owner].pop(label)
        others = self._others(label)
        for other in others.values():
            if other["was"] == entry["set"]:
                other["was"] = entry["was"]
        if not others and self.current.get(label) == entry["set"]:
            self._write(label, entry["was"])

    def leave(self, label: str) -> None:
        """Forget a label that no longer has our value; it is another tool's now."""
        mine = self.record[self.owner]
        if label in mine and self.current.get(label) != mine[label]["set"]:
            del mine[label]

    def _others(self, label: str) -> dict[str, Labels]:
        return {name: kept[label] for name, kept in self.record.items() if name != self.owner and label in kept}

    def _write(self, label: str, value: str | None) -> None:
        if value is None:
            self.current.pop(label, None)
        else:
            self.current[label] = value


def _yields(label: str, foreign: Iterable[str], rules: Iterable[YieldRule]) -> bool:
    return any(
        any(fnmatchcase(label, pattern) for pattern in rule.labels)
        and any(fnmatchcase(present, pattern) for present in foreign for pattern in rule.when)
        for rule in rules
    )


def _read_record(node: Object) -> Record:
    text = annotations_of(node).get(RECORD)
    if not text:
        return {}
    try:
        record = json.loads(text)
        return {
            str(owner): {str(label): {"set": entry["set"], "was": entry["was"]} for label, entry in labels.items()}
            for owner, labels in record.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        raise LabelError(
            f"Node {name_of(node)}: annotation {RECORD} cannot be read, so it is unknown which labels are ours; "
            "correct it or remove it."
        ) from None


def _finish(result: Plan, node: Object, current: Mapping[str, str], record: Record) -> None:
    """Fill in patch, before and after from the difference between the node and what it shall be."""
    old = labels_of(node)
    changes: Labels = {
        label: current.get(label) for label in sorted({*old, *current}) if old.get(label) != current.get(label)
    }
    metadata: Object = {}
    if changes:
        metadata["labels"] = copy.copy(changes)
    if record != {name: kept for name, kept in _read_record(node).items() if kept}:
        metadata["annotations"] = {RECORD: json.dumps(record, sort_keys=True) if record else None}
    if not metadata:
        return
    # The server refuses the patch (409) if somebody changed the node since it was read.
    if (node.get("metadata") or {}).get("resourceVersion"):
        metadata["resourceVersion"] = node["metadata"]["resourceVersion"]
    result.patch = {"metadata": metadata}
    result.before = {label: old.get(label) for label in changes}
    result.after = dict(changes)
