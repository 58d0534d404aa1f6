# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides by ``nodeSelector`` and required node affinity whether a pod can run on a node, as the scheduler does.

``matchFields`` count as a match. The functions are for templates of pods: the controller of a DaemonSet replaces the affinity of its pods by
the name of the node.
"""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from .objects import Object, get_name, matches_selector


def can_run_on(spec: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    """Return whether a pod with this ``spec`` can run on a node with these labels."""
    if not matches_selector(spec.get("nodeSelector") or {}, labels):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return any(_term_matches(term, labels) for term in required.get("nodeSelectorTerms") or [])


def find_leaving(daemon_sets: Iterable[Object], labels: Mapping[str, str]) -> set[str]:
    """Return ``namespace/name`` of the DaemonSets that run no pod on a node with these labels."""
    found = set()
    for each in daemon_sets:
        template = (each.get("spec") or {}).get("template") or {}
        if not can_run_on(template.get("spec") or {}, labels):
            found.add(f"{each['metadata'].get('namespace')}/{get_name(each)}")
    return found


def _term_matches(term: Object, labels: Mapping[str, str]) -> bool:
    """Return whether all requirements of the term are met; a term without requirements matches nothing."""
    expressions = term.get("matchExpressions") or []
    named = expressions or term.get("matchFields")
    return bool(named) and all(_is_met(expression, labels) for expression in expressions)


def _is_met(expression: Object, labels: Mapping[str, str]) -> bool:
    operator, values = expression.get("operator"), expression.get("values") or []
    value = labels.get(str(expression.get("key")))
    if operator == "NotIn":
        return value not in values
    if operator == "DoesNotExist":
        return value is None
    if value is None:
        return False
    if operator in ("Gt", "Lt"):
        return _is_within(operator, value, values)
    return operator == "Exists" or (operator == "In" and value in values)


def _is_within(operator: str, value: str, values: list[Any]) -> bool:
    try:
        number, limit = int(value), int(values[0])
    except (ValueError, TypeError, IndexError):
        return False
    return number > limit if operator == "Gt" else number < limit
