# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes findings as text, JSON, SARIF 2.1.0 and JUnit. Names in manifests are untrusted: no control character reaches a terminal."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

from .._text import make_printable
from .catalogue import RULES
from .lint import Result
from .model import Finding

_GUIDE = "https://github.com/gpu-kubernetes/gpu.kubernetes/blob/main/docs/docsite/rst/guide_lint.rst"


def name_object(finding: Finding) -> str:
    """Return kind, namespace and name, with the container."""
    name = "/".join(part for part in (finding.kind, finding.namespace, finding.name) if part)
    return f"{name} container {finding.container}" if finding.container else name


def _describe(finding: Finding) -> str:
    """Return the object with what is wrong and the fix, as a sentence."""
    return f"{name_object(finding)} {finding.message}; {finding.fix}."


def write_text(result: Result) -> str:
    """Return one line for each finding, then what was skipped and the count."""
    lines = [
        make_printable(f"{each.source}:{each.line}: {each.severity} {each.rule} {_describe(each)}")
        for each in result.findings
    ]
    lines += [f"skipped {number}: {reason}" for number, reason in result.skipped.items()]
    summary = result.as_dict()["summary"]
    counts = ", ".join(f"{summary[name]} {name}s" for name in ("error", "warning", "note"))
    lines.append(
        f"{summary['documents']} objects, {summary['workloads']} of them with pods: {counts}, {len(result.ignored)} ignored"
    )
    return "\n".join(lines) + "\n"


def write_json(result: Result) -> str:
    """Return the result as JSON."""
    return json.dumps(result.as_dict(), indent=2, sort_keys=True, default=str) + "\n"


def write_sarif(result: Result) -> str:
    """Return the findings as SARIF 2.1.0."""
    levels = {"error": "error", "warning": "warning", "note": "note"}
    rules = [
        {
            "id": rule.number,
            "shortDescription": {"text": rule.title},
            "helpUri": _GUIDE,
            "defaultConfiguration": {"level": levels[rule.severity]},
        }
        for rule in RULES
    ]
    results = [
        {
            "ruleId": each.rule,
            "level": levels[each.severity],
            "message": {"text": make_printable(_describe(each))},
            "locations": [
                {"physicalLocation": {"artifactLocation": {"uri": each.source}, "region": {"startLine": each.line}}}
            ],
            "partialFingerprints": {"gpuKubernetes/v1": each.fingerprint},
        }
        for each in result.findings
    ]
    run: dict[str, Any] = {"tool": {"driver": {"name": "gpu.kubernetes", "rules": rules}}, "results": results}
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    return json.dumps({"$schema": schema, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def write_junit(result: Result) -> str:
    """Return one test case for each rule: failed with its findings, skipped, or passed."""
    suite = ElementTree.Element("testsuite", name="gpu.kubernetes lint", tests=str(len(RULES)))
    for rule in RULES:
        case = ElementTree.SubElement(
            suite, "testcase", classname="gpu.kubernetes.lint", name=f"{rule.number} {rule.title}"
        )
        found = [each for each in result.findings if each.rule == rule.number]
        if rule.number in result.skipped:
            ElementTree.SubElement(case, "skipped", message=result.skipped[rule.number])
        elif found:
            failure = ElementTree.SubElement(case, "failure", message=f"{len(found)} findings")
            failure.text = "\n".join(make_printable(f"{each.source}:{each.line}: {_describe(each)}") for each in found)
    suite.set("failures", str(len({each.rule for each in result.findings})))
    suite.set("skipped", str(len(result.skipped)))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


FORMATS = {"text": write_text, "json": write_json, "sarif": write_sarif, "junit": write_junit}
