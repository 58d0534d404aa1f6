# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page with a runbook for each alert, from the rows of the alerts: ``PYTHONPATH=tests:.ansible/collections python -m gates.runbooks --write``.

A unit test compares the page with the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks import registry
from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring import alerts, rules, series, xid

from ._common import ROOT, finish

_DOCSITE = "ansible_collections.gpu.kubernetes.docsite"
PAGE = ROOT / "docs" / "docsite" / "rst" / "guide_alerts.rst"
_HEAD = """..
  Copyright (c) 2026, the gpu.kubernetes authors
  SPDX-License-Identifier: GPL-3.0-or-later

.. This page is generated from plugins/module_utils/_monitoring by python -m gates.runbooks --write.

.. _ansible_collections.gpu.kubernetes.docsite.guide_alerts:

Alerts of GPUs
==============

A runbook for each alert of the role ``gpu_prometheus``, and the series that the alerts read. How they get into a Prometheus is described in
:ref:`ansible_collections.gpu.kubernetes.docsite.guide_monitoring`.
"""
_SERIES = """
Normalised series
-----------------

Exporters differ in names, units and labels, and so do their releases. Recording rules make one set of series of them, for each ``node`` and ``gpu_uuid``.
Alerts, dashboards and reports read these alone. A series that an exporter does not have is missing, and its alerts then do not fire.
"""


def _table(widths: str, rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """A list-table; the first row is its head."""
    yield from (".. list-table::", "    :header-rows: 1", f"    :widths: {widths}", "")
    for row in rows:
        for number, cell in enumerate(row):
            yield f"    {'* ' if number == 0 else '  '}- {cell}"
    yield ""


def _code(text: str) -> str:
    """A text of the rows, whose backquotes are those of Markdown."""
    return text.replace("`", "``")


def _alert(name: str) -> Iterator[str]:
    rows = [row for row in alerts.ALERTS if row.name == name]
    first = rows[0]
    yield from (name, "~" * len(name), "")
    severity = " or ".join(f"**{each}**" for each in dict.fromkeys(row.severity for row in rows))
    hold = "at once" if first.hold == "0s" else f"after {first.hold}"
    off = "" if first.enabled else " Not enabled by default."
    yield from (f"Severity {severity}, {hold}.{off}", "")
    if name == "GpuXid":
        yield from _xids()
    else:
        yield from (f"**Cause**: {first.cause}", "", f"**Remedy**: {first.remedy}", "")
    yield from _diagnosis(first)
    yield from (".. code-block:: text", "")
    yield from (f"    {row.expression}" for row in rows)
    yield ""


def _diagnosis(alert: alerts.Alert) -> Iterator[str]:
    """The doctor's check for an alert, and the command that runs it with the checks below it; nothing without one."""
    if alert.check:
        check = registry.BY_ID[alert.check]
        words = ["ansible-playbook gpu.kubernetes.diagnose_gpu_nodes -i inventory.yml"]
        words += ["--limit HOST"] if "$labels.node" in alert.summary else []
        words += ["-e gpu_doctor_prometheus_url=URL"] if check.layer == "monitoring" else []
        yield f"**Diagnosis**: the check :ref:`{check.id} <{_DOCSITE}.{check.anchor}>` of the doctor, by ``{' '.join(words)}``."
        yield ""


def _xids() -> Iterator[str]:
    yield "An Xid is an error that NVIDIA's driver reports. The label ``remedy`` has the remedy; Xids of programs and notices of the driver do not alert."
    yield ""
    head = ("Label ``remedy``", "Xids", "Cause", "Remedy")
    rows = (
        (
            f"``{each.name}``",
            "all others" if xid.is_rest(each) else ", ".join(map(str, each.xids)),
            f"{each.cause}.",
            each.remedy,
        )
        for each in xid.BUCKETS
        if each.severity
    )
    yield from _table("15 20 25 40", [head, *rows])
    quiet = (f"``{each.name}``: {', '.join(map(str, each.xids))}" for each in xid.BUCKETS if not each.severity)
    yield f"Without an alert: {'; '.join(quiet)}."
    yield ""


def render() -> str:
    """The page."""
    lines = [_HEAD.rstrip("\n"), "", "Alerts", "------", ""]
    for name in alerts.NAMES:
        lines += _alert(name)
    lines += [_SERIES.strip("\n"), ""]
    rows = []
    for row in series.SERIES:
        labels = "".join(f", {key}={value}" for key, value in row.labels.items())
        titles = dict.fromkeys(series.EXPORTERS[exporter].title for exporter, _expression in row.sources if exporter)
        source = "; ".join(titles) or "see its rule"
        rows.append((f"``{row.name}``{labels}", _code(row.help), source))
    lines += _table("30 45 25", [("Series", "Value", "Exporters"), *rows])
    lines += [
        "The rules are in the file ``gpu-kubernetes.rules.yml``, in these groups: " + ", ".join(rules.GROUPS) + "."
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    """Compare the page with the rows, or write it."""
    text = render()
    if "--write" in arguments:
        PAGE.write_text(text, encoding="utf-8")
    same = PAGE.read_text(encoding="utf-8") == text
    found = [] if same else [f"{PAGE.name} differs from the alerts: run `python -m gates.runbooks --write`"]
    return finish("runbooks", found, f"{len(alerts.NAMES)} alerts")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
