# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which labels of a node change, and records their former values for the undo.

If others change a label, their value is the former one.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Sequence

from ..._kube_error import shorten
from ..objects import Object, get_labels, get_name
from .ladder import YieldRule, find_differences, find_publishers, read_published
from .record import RECORD_ANNOTATION, LabelError, Labels, Ownership, Record, read_record

LONGEST_PREFIX = 253
# A warning names at most this many labels.
MAX_NAMED = 5

_NAME = re.compile(r"[A-Za-z0-9](?:[-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_PREFIX = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")


@dataclass
class Plan:
    """The change of one node: ``patch`` is a merge patch or None, before and after have the changed labels.

    ``warnings`` are sentences on labels of the record that do not get their former value, and on other tools' labels that differ.
    """

    node: str
    patch: Object | None = None
    before: Labels = field(default_factory=dict)
    after: Labels = field(default_factory=dict)
    yielded: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Return whether there is a patch."""
        return self.patch is not None


def read_labels(where: str, given: Any) -> Labels:
    """Return labels from YAML with their values as text; ``where`` begins the sentence of a LabelError.

    Whole numbers become text, booleans ``true`` and ``false``. A fraction is rejected, because 1.10 would become 1.1.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise LabelError(
            f"{where}: labels are a dictionary of names and values, not {_describe_type(given)}; write them as name: value."
        )
    return {str(label): _format_value(where, str(label), value) for label, value in given.items()}


def _format_value(where: str, label: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, (str, int)):
        raise LabelError(
            f"{where}: the value of label {label} is {_describe_type(value)}; write it as text, in quotes."
        )
    return str(value).lower() if isinstance(value, bool) else str(value)


def _describe_type(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "a list"
    return "a dictionary" if isinstance(value, Mapping) else f"the {type(value).__name__} {value!r}"


def check_labels(node: str, labels: Mapping[str, Any]) -> None:
    """Raise LabelError for names and values that the API server would reject."""
    for label, value in labels.items():
        prefix, slash, name = label.rpartition("/")
        if not _NAME.fullmatch(name) or (slash and not (_PREFIX.fullmatch(prefix) and len(prefix) <= LONGEST_PREFIX)):
            raise LabelError(
                f"Node {node}: {label!r} is not a valid name for a label; use [prefix/]name of letters, digits, -_. only."
            )
        if value is not None and value != "" and not _NAME.fullmatch(str(value)):
            raise LabelError(
                f"Node {node}: {value!r} is not a valid value for label {label}; use at most 63 letters, digits, -_. "
                "that begin and end with a letter or digit."
            )


def plan_labels(
    node: Object,
    desired: Mapping[str, str | None],
    owner: str,
    yield_to: Iterable[YieldRule] = (),
    adopted: Mapping[str, str | None] | None = None,
    ownership: Ownership | None = None,
    yield_to_nfd: bool = False,
) -> Plan:
    """Return the plan after which the owner's labels on the node are exactly the desired ones.

    A desired value of None removes the label. Labels that the owner has set and that are no longer desired get their former
    value. A label that is left to another tool stays in the record while it has our value, so that an undo removes it if that
    tool never writes it. With *yield_to_nfd*, a label that node feature discovery has recorded is its own: it is neither set nor removed.
    The owner takes over labels that are *adopted*, if the node has that value and no owner has set it.
    The *ownership* limits what the record can change, because the node's kubelet can write it.
    Raises LabelError for a record that cannot be read, for a conflict of owners, and for a former value that is not valid.
    """
    current: dict[str, str] = get_labels(node)
    record = read_record(node)
    own = record.setdefault(owner, {})
    steps = _Steps(get_name(node), owner, current, record, ownership or Ownership())
    for label, value in (adopted or {}).items():
        steps.adopt(label, value)
    rules, published = list(yield_to), read_published(node) if yield_to_nfd else frozenset()
    for label in published:
        own.pop(label, None)
    publishers = find_publishers(desired, [label for label in current if label not in own], published, rules)
    # A label of the record has the value of an earlier run.
    observed = {label: value for label, value in current.items() if label not in own or own[label]["set"] != value}
    result = Plan(get_name(node), yielded=sorted(publishers))
    for label in sorted(set(own) | set(desired)):
        if label not in desired:
            steps.release(label)
        elif label in publishers:
            steps.leave(label)
        else:
            steps.claim(label, desired[label])
    differences = find_differences(result.node, publishers, desired, observed, rules)
    result.warnings = [*steps.explain_refused(), *differences]
    _fill_patch(result, node, current, {name: kept for name, kept in record.items() if kept})
    check_labels(result.node, result.after)
    return result


@dataclass
class _Steps:
    """The changes of single labels; they change ``current`` and ``record`` in place."""

    node: str
    owner: str
    current: dict[str, str]
    record: Record
    ownership: Ownership
    # Labels of the record that stay, and those without their former value.
    kept: list[str] = field(default_factory=list)
    unrestored: list[str] = field(default_factory=list)

    def adopt(self, label: str, value: str | None) -> None:
        """Take over a label with this value that no owner has set, as if there had been none before."""
        own = self.record[self.owner]
        if value is not None and self.current.get(label) == value and label not in own and not self._others(label):
            own[label] = {"set": value, "was": None}

    def claim(self, label: str, value: str | None) -> None:
        others = self._others(label)
        for name, entry in others.items():
            if entry["set"] != value:
                raise LabelError(
                    f"Node {self.node}: label {label} is set to {entry['set']!r} by owner {shorten(name)}, so {self.owner} "
                    f"cannot set it to {value!r}; remove one of them."
                )
        own, now = self.record[self.owner], self.current.get(label)
        # Others have changed the label: this is the value that the last of the owners restores.
        for entry in (*others.values(), *([own[label]] if label in own else [])):
            if entry["set"] != now:
                entry["was"] = now
        if label in own:
            own[label]["set"] = value
        elif now != value or others:
            own[label] = {"set": value, "was": now}
        self._write(label, value)

    def release(self, label: str) -> None:
        own = self.record[self.owner]
        if label in self.current and self.current[label] == own[label]["set"] and not self.ownership.can_remove(label):
            self.kept.append(label)
            return
        entry = own.pop(label)
        others = self._others(label)
        for other in others.values():
            if other["was"] == entry["set"]:
                other["was"] = entry["was"]
        if others or self.current.get(label) != entry["set"]:
            return
        can_restore = entry["was"] is None or self.ownership.can_restore(label)
        if not can_restore:
            self.unrestored.append(label)
        self._write(label, entry["was"] if can_restore else None)

    def leave(self, label: str) -> None:
        """Remove a label that no longer has our value from the record: another tool manages it."""
        own = self.record[self.owner]
        if label in own and self.current.get(label) != own[label]["set"]:
            del own[label]

    def explain_refused(self) -> list[str]:
        """Return a sentence for the labels that stay, and one for those without their former value."""
        kept = (
            "stay, because a node's record is not enough to remove labels of Kubernetes; name them in the variables of this run, or "
            "remove them with kubectl label"
        )
        unrestored = (
            f"do not get the former values that the node has recorded, because {self.owner} does not set these labels or they are "
            "labels of Kubernetes; set them yourself if they are needed"
        )
        found = ((self.kept, kept), (self.unrestored, unrestored))
        return [f"Node {self.node}: the labels {_list_first(labels)} {text}." for labels, text in found if labels]

    def _others(self, label: str) -> dict[str, Labels]:
        return {name: kept[label] for name, kept in self.record.items() if name != self.owner and label in kept}

    def _write(self, label: str, value: str | None) -> None:
        if value is None:
            self.current.pop(label, None)
        else:
            self.current[label] = value


def _list_first(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - MAX_NAMED} more" if len(labels) > MAX_NAMED else ""
    return ", ".join(shorten(label) for label in labels[:MAX_NAMED]) + more


def _fill_patch(result: Plan, node: Object, current: Mapping[str, str], record: Record) -> None:
    """Set patch, before and after of the plan from the difference between the node and the desired state."""
    old = get_labels(node)
    changes: Labels = {
        label: current.get(label) for label in sorted({*old, *current}) if old.get(label) != current.get(label)
    }
    metadata: Object = {}
    if changes:
        metadata["labels"] = copy.copy(changes)
    if record != {name: kept for name, kept in read_record(node).items() if kept}:
        metadata["annotations"] = {RECORD_ANNOTATION: json.dumps(record, sort_keys=True) if record else None}
    if not metadata:
        return
    # The server rejects the patch (409) if the node has changed since it was read.
    if (node.get("metadata") or {}).get("resourceVersion"):
        metadata["resourceVersion"] = node["metadata"]["resourceVersion"]
    result.patch = {"metadata": metadata}
    result.before = {label: old.get(label) for label in changes}
    result.after = dict(changes)
