# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the rules over documents."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Collection, Iterable, Mapping, NamedTuple

from .catalogue import MALFORMED, RULES, Rule
from .model import SEVERITIES, Context, Document, Finding, Problem, Workload, map_of
from .walker import find_workloads

SCHEMA = "gpu.kubernetes/lint/v1"
IGNORE = "gpu.kubernetes/ignore-"
#: What of saved objects describes the cluster, by its kind.
_CONTEXT_KINDS = {
    "Node": "nodes",
    "RuntimeClass": "runtime_classes",
    "DeviceClass": "device_classes",
    "Pod": "pods",
    "ResourceClaim": "claims",
    "ResourceClaimTemplate": "claims",
}


class Result(NamedTuple):
    """``skipped`` says of each rule that did not run which facts it lacks; ``ignored`` are findings with a reason in an annotation."""

    findings: list[Finding]
    ignored: list[Finding]
    skipped: dict[str, str]
    documents: int
    workloads: int

    def count_grave(self, fail_on: str) -> int:
        """Return how many findings are at least as grave as ``fail_on``; none for ``never``."""
        grave = SEVERITIES[: SEVERITIES.index(fail_on) + 1] if fail_on in SEVERITIES else ()
        return sum(each.severity in grave for each in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        counts = {severity: sum(each.severity == severity for each in self.findings) for severity in SEVERITIES}
        return {
            "schema": SCHEMA,
            "findings": [each.as_dict() for each in self.findings],
            "ignored": [each.as_dict() for each in self.ignored],
            "skipped": self.skipped,
            "summary": {"documents": self.documents, "workloads": self.workloads, **counts},
        }


def build_context(documents: Iterable[Document], **more: Any) -> Context:
    """Return what saved objects of a cluster tell; a kind without an object is unknown. *more* are further fields of the context."""
    found: dict[str, list[Any]] = {}
    for document in documents:
        if document.kind in _CONTEXT_KINDS:
            found.setdefault(_CONTEXT_KINDS[document.kind], []).append(document.object)
    return Context(**{**found, **more})


def lint(documents: Iterable[Document], context: Context, known: Collection[str] = ()) -> Result:
    """Return the findings in the order of the documents; *known* are fingerprints of findings to leave out."""
    every = list(documents)
    claims = [each.object for each in every if _CONTEXT_KINDS.get(each.kind) == "claims"]
    context = replace(context, claims=[*(context.claims or []), *claims])
    workloads = list(find_workloads(every))
    skipped = {rule.number: reason for rule in RULES for reason in [_find_lack(rule, context)] if reason}
    found: list[Finding] = []
    ignored: list[Finding] = []
    reported: set[str] = set(known)
    for rule in (each for each in RULES if each.number not in skipped):
        for target in every if rule.of_object else workloads:
            for finding, reason in _apply(rule, target, context):
                if finding.fingerprint not in reported:
                    reported.add(finding.fingerprint)
                    (ignored if reason else found).append(finding)
    return Result(_sort(found), _sort(ignored), skipped, len(every), len(workloads))


def _sort(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda each: (each.source, each.line, each.rule, each.pointer))


def _find_lack(rule: Rule, context: Context) -> str:
    lacking = [name for name in rule.needs if getattr(context, name) in (None, "")]
    return f"{' and '.join(lacking).replace('_', ' ')} not known" if lacking else ""


def _apply(rule: Rule, target: Document | Workload, context: Context) -> list[tuple[Finding, str]]:
    try:
        return [_build(rule, target, problem) for problem in rule.find(target, context)]
    except (AttributeError, TypeError, KeyError):
        pointer = target.pointer if isinstance(target, Workload) else ""
        problem = Problem(
            pointer, "has a field of a wrong type, which the API server refuses", "see kubectl apply --dry-run=server"
        )
        return [_build(MALFORMED, target, problem)]


def _build(rule: Rule, target: Document | Workload, problem: Problem) -> tuple[Finding, str]:
    """The finding, and the reason of an annotation that has it ignored; empty without one."""
    document = target.document if isinstance(target, Workload) else target
    outer = map_of(document.object, "metadata")
    message = problem.message
    reason = ""
    for metadata in (outer, target.metadata if isinstance(target, Workload) else {}):
        annotation = map_of(metadata, "annotations").get(IGNORE + rule.number)
        if annotation is not None and not str(annotation).strip():
            message += f" (the annotation {IGNORE}{rule.number} has no reason, so that it does not count)"
        reason = reason or str(annotation or "").strip()
    finding = Finding(
        rule=rule.number,
        severity=problem.severity or rule.severity,
        source=document.source,
        line=document.find_line(problem.pointer),
        kind=document.kind,
        namespace=str(outer.get("namespace") or ""),
        name=str(outer.get("name") or outer.get("generateName") or ""),
        container=problem.container,
        pointer=problem.pointer,
        message=message,
        fix=problem.fix,
    )
    return finding, reason


def read_baseline(report: Mapping[str, Any]) -> set[str]:
    """Return the fingerprints in a former result as JSON."""
    return {str(each.get("fingerprint")) for each in report.get("findings") or [] if isinstance(each, Mapping)}
