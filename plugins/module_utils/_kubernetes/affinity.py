# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""May a pod be on a node with these labels? By ``nodeSelector`` and required node affinity, as the scheduler reads them.

Fields of the node (``matchFields``) are taken to match: of a node that is meant, nobody says so by another one's name. The spec of a
DaemonSet's own pods does not tell: in its place of the affinity its controller writes the node's name there.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from .objects import Object, name_of, selects


def admits(spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Say whether a pod of this ``spec`` may be on a node with these labels."""
    if not selects(spec.get("nodeSelector") or {}, labels):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(_term_matches(term, labels) for term in required.get("nodeSelectorTerms") or [])


def leaving(daemon_sets: Iterable[Object], labels: Mapping[str, str]) -> set[str]:
    """Name those DaemonSets, as ``namespace/name``, whose pods go by themselves from a node with these labels, or never come."""
    found = set()
    for each in daemon_sets:
        template = (each.get("spec") or {}).get("template") or {}
        if not admits(template.get("spec") or {}, labels):
            found.add(f"{each['metadata'].get('namespace')}/{name_of(each)}")
    return found


def _term_matches(term: Object, labels: Mapping[str, str]) -> bool:
    """Requirements of one term are all to be met; a term without any matches nothing."""
    expressions = term.get("matchExpressions") or []
    named = expressions or term.get("matchFields")
    return bool(named) and all(_meets(expression, labels) for expression in expressions)


def _meets(expression: Object, labels: Mapping[str, str]) -> bool:
    operator, values = expression.get("operator"), expression.get("values") or []
    value = labels.get(str(expression.get("key")))
    if operator == "NotIn":
        return value not in values
    if operator == "DoesNotExist":
        return value is None
    if value is None:
        return False
    if operator in ("Gt", "Lt"):
        return _compares(operator, value, values)
    return operator == "Exists" or (operator == "In" and value in values)


def _compares(operator: str, value: str, values: list[Any]) -> bool:
    try:
        number, limit = int(value), int(values[0])
    except (ValueError, TypeError, IndexError):
        return False
    return number > limit if operator == "Gt" else number < limit
