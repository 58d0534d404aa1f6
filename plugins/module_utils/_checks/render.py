# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders the report as text and as JUnit, and the registry as a part of the guide."""

from __future__ import annotations

import json
from typing import Any, Iterable, Mapping, Sequence
from xml.etree import ElementTree

from .._lines import Line, render_section
from .._text import make_printable
from .model import FAIL, INFO, LAYERS, UNKNOWN, WARN, Check
from .registry import BY_ID, CHECKS
from .xids import BUCKETS, SOURCE

_TITLES = {
    "pass": "no fault was found",
    WARN: "warnings",
    FAIL: "faults were found",
    UNKNOWN: "not everything could be examined",
}
_TONES = {"pass": "good", WARN: "bad", FAIL: "bad", UNKNOWN: "bad"}
_HOSTS = 5


def render_text(report: Mapping[str, Any], files: Sequence[str] = ()) -> list[Line]:
    """Return the report as lines with tones: root causes first. *files* are paths to name at the end."""
    summary = report["summary"]
    counts = ", ".join(f"{count} {verdict}" for verdict, count in summary["checks"].items() if count)
    lines: list[Line] = [
        (
            f"GPU doctor: {_count(summary['hosts'], 'host')}, {_TITLES[report['status']]} ({counts})",
            _TONES[report["status"]],
        )
    ]
    for cause in report["causes"]:
        tone = "bad" if cause["verdict"] == FAIL else "strong"
        lines += [
            ("", "plain"),
            (f"{cause['verdict'].upper()} {cause['id']}: {cause['title']}{_name_hosts(cause['hosts'])}", tone),
        ]
        lines += [(f"  {detail}", "plain") for detail in cause["details"]]
        lines += [(f"  Cause:  {cause['cause']}", "plain"), (f"  Remedy: {cause['remedy']}", "plain")]
    results = [result for group in (report["cluster"], *report["hosts"]) for result in group["checks"]]
    lines += render_section("Remarks", _list_remarks(results), "plain")
    lines += render_section("Not examined", [*report["errors"], *_explain_unknown(results)], "weak")
    return [*lines, *([("", "plain")] if files else []), *((f"Written: {path}", "weak") for path in files)]


def write_text(report: Mapping[str, Any]) -> str:
    """Return the report as a text for a file or a terminal."""
    return "".join(f"{make_printable(text)}\n" for text, _tone in render_text(report))


def write_json(report: Mapping[str, Any]) -> str:
    """Return the report as JSON."""
    return json.dumps(report, indent=2, ensure_ascii=False) + "\n"


def write_line(report: Mapping[str, Any]) -> str:
    """Return the report as one line of JSON in ASCII, for programs that read the output of a run."""
    return json.dumps(report)


def _list_remarks(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return one line for each check with remarks: the first one, and its hosts."""
    grouped: dict[str, tuple[str, list[str]]] = {}
    for result in results:
        if result["verdict"] == INFO:
            grouped.setdefault(result["id"], (result["details"][0], []))[1].append(result["host"])
    return [f"{name}: {detail}{_name_hosts(hosts)}" for name, (detail, hosts) in grouped.items()]


def _explain_unknown(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return one line for each failed check that hides others, and one for each reason why checks had nothing to read."""
    grouped: dict[str, list[str]] = {}
    for result in results:
        if result["verdict"] == UNKNOWN:
            grouped.setdefault(result["details"][0], []).append(result["id"])
    return [f"{', '.join(dict.fromkeys(ids))}: {reason}" for reason, ids in grouped.items()]


def _name_hosts(hosts: Sequence[str]) -> str:
    named = [host for host in hosts if host]
    if not named:
        return ""
    more = f" and {len(named) - _HOSTS} more" if len(named) > _HOSTS else ""
    return f" on {', '.join(named[:_HOSTS])}{more}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def render_symptoms(rows: Sequence[Mapping[str, Any]]) -> list[Line]:
    """Return the causes that symptoms.find_causes found, as lines with tones."""
    if not rows:
        return [("No check has this message; run the playbook diagnose_gpu_nodes on the hosts.", "bad")]
    lines: list[Line] = [(f"{_count(len(rows), 'possible cause')}, the most likely first", "strong")]
    for row in rows:
        lines += [
            ("", "plain"),
            (f"{row['id']} ({row['layer']}): {row['title']}", "strong"),
            (f"  Words:  {row['words']}", "plain"),
        ]
        lines += [(f"  Cause:  {row['cause']}", "plain"), (f"  Remedy: {row['remedy']}", "plain")]
    return lines


def render_junit(report: Mapping[str, Any]) -> str:
    """Return the report as JUnit's XML: a suite for each host and the cluster; unknown is skipped, and a warning passes with its text."""
    root = ElementTree.Element("testsuites", name="gpu.kubernetes doctor")
    for name, group in (("cluster", report["cluster"]), *((host["host"], host) for host in report["hosts"])):
        results = group["checks"]
        verdicts = [result["verdict"] for result in results]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=make_printable(name),
            tests=str(len(results) + len(group["passed"])),
            failures=str(verdicts.count(FAIL)),
            errors="0",
            skipped=str(verdicts.count(UNKNOWN)),
        )
        for passed in group["passed"]:
            ElementTree.SubElement(suite, "testcase", classname=BY_ID[passed].layer, name=passed)
        for result in results:
            case = ElementTree.SubElement(suite, "testcase", classname=result["layer"], name=result["id"])
            text = "; ".join(result["details"])
            if result["verdict"] == FAIL:
                failure = ElementTree.SubElement(case, "failure", message=text, type=result["id"])
                failure.text = f"Cause: {result['cause']}\nRemedy: {result['remedy']}"
            elif result["verdict"] == UNKNOWN:
                ElementTree.SubElement(case, "skipped", message=text)
            elif text:
                ElementTree.SubElement(case, "system-out").text = f"{result['verdict']}: {text}"
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


#: The report in each format.
FORMATS = {"text": write_text, "json": write_json, "junit": render_junit}

# -- the guide


def render_guide(checks: Sequence[Check] = CHECKS) -> str:
    """Return the checks by layer, and the Xids, as reStructuredText."""
    parts = [_render_layer(layer, [check for check in checks if check.layer == layer]) for layer in LAYERS]
    return "\n".join([*parts, _render_xids()])


def _render_layer(layer: str, checks: Sequence[Check]) -> str:
    lines = [layer.capitalize(), "^" * len(layer), ""]
    for check in checks:
        title = f"{check.id}: {check.title}"
        lines += [f".. _ansible_collections.gpu.kubernetes.docsite.{check.anchor}:", "", title, '"' * len(title), ""]
        lines += [f"- Words: {', '.join(f'``{words}``' for words in check.words)}"]
        lines += [f"- Cause: {check.cause}", f"- Remedy: {check.remedy}"]
        if check.needs:
            lines.append(f"- Unknown while one of these fails: {', '.join(f'``{need}``' for need in check.needs)}")
        lines.append("")
    return "\n".join(lines)


def _render_xids() -> str:
    title = "Xids"
    lines = [title, "^" * len(title), "", f"The numbers after ``NVRM: Xid`` in the kernel log, by {SOURCE}.", ""]
    for name, bucket in BUCKETS.items():
        lines += [f"- {name} ({bucket.verdict}): {_format_numbers(sorted(bucket.xids))}. Remedy: {bucket.remedy}."]
    return "\n".join([*lines, ""])


def _format_numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
