# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of managed labels in a node's annotation, which the node's kubelet can write: how it is read, and what is accepted from it.

It is JSON: for every owner its labels, each with the value that was ``set`` and the value that ``was`` there before (null: none).
A kubelet must not set the labels below kubernetes.io and k8s.io (NodeRestriction), so none of them gets a value from a record.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Dict, Optional, Sequence

from ..._kube_error import SentenceError
from ..objects import Object, get_annotations, get_name

RECORD_ANNOTATION = "gpu-kubernetes/managed-labels"
# Kubernetes has no longer labels.
_LONGEST_LABEL, _LONGEST_VALUE = 317, 63
_RESERVED = ("kubernetes.io", "k8s.io")

Labels = Dict[str, Optional[str]]
Record = Dict[str, Dict[str, Labels]]


class LabelError(SentenceError):
    """The labels cannot be set; the text is one sentence with cause and remedy."""


def read_record(node: Object) -> Record:
    """Return the node's record. Raises LabelError if it is damaged or forged."""
    text = get_annotations(node).get(RECORD_ANNOTATION)
    if not text:
        return {}
    try:
        return {
            owner: {label: _read_entry(label, entry) for label, entry in labels.items()}
            for owner, labels in json.loads(text).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise LabelError(
            f"Node {get_name(node)}: annotation {RECORD_ANNOTATION} cannot be read, so the managed labels are unknown; "
            "correct it or remove it."
        ) from None


def _read_entry(label: str, entry: Any) -> Labels:
    found = {"set": entry["set"], "was": entry["was"]}
    for value in found.values():
        if value is not None and not (isinstance(value, str) and len(value) <= _LONGEST_VALUE):
            raise TypeError
    if len(label) > _LONGEST_LABEL:
        raise ValueError
    return found


def is_reserved(label: str) -> bool:
    """Return whether the label is one of Kubernetes, whose value a kubelet must not choose."""
    prefix, slash, _name = label.rpartition("/")
    return bool(slash) and any(prefix == domain or prefix.endswith("." + domain) for domain in _RESERVED)


@dataclass(frozen=True)
class Ownership:
    """The labels that an owner sets: those that the administrator has ``named``, and others by ``patterns`` (shell patterns)."""

    patterns: Sequence[str] = ("*",)
    named: frozenset[str] = frozenset()

    def can_remove(self, label: str) -> bool:
        """Return whether a record is enough to remove the label. A kubelet can remove labels itself, except reserved ones."""
        return not is_reserved(label) or label in self.named or label in self.patterns

    def can_restore(self, label: str) -> bool:
        """Return whether the label gets its former value from a record."""
        if is_reserved(label):
            return False
        return label in self.named or any(fnmatchcase(label, pattern) for pattern in self.patterns)
