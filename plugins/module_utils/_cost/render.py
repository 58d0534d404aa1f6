# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders the report as lines with a tone, or as JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Any, Iterable, Iterator, Mapping, Sequence

from .._lines import Line, align_columns, render_section
from .._text import make_printable
from .report import Report

FORMATS = ("table", "json", "csv")
GROUPS = (("namespaces", "NAMESPACE"), ("nodes", "NODE"), ("products", "PRODUCT"))
HOURS = (
    ("gpu_hours", "GPU HOURS"),
    ("allocated_hours", "ALLOCATED"),
    ("idle_hours", "IDLE"),
    ("wasted_hours", "WASTED"),
    ("unmeasured_hours", "NO LOAD DATA"),
)
COSTS = (("allocated_cost", "ALLOCATED"), ("idle_cost", "IDLE"), ("wasted_cost", "WASTED"))
#: A spreadsheet computes a cell that begins so.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
LEGEND = (
    "Allocated: held by pods. Idle: held by none. Wasted: allocated without load, the least that it can have been. No load data: allocated on GPUs whose"
    " load is not known."
)

Row = Mapping[str, Any]


def render_text(report: Report, form: str = "table") -> str:
    """Return the report as text that ends with a line feed. Raises KeyError or TypeError for other data."""
    return "".join(f"{line}\n" for line, _tone in render_lines(report, form))


def render_lines(report: Report, form: str = "table") -> list[Line]:
    """Return the report as lines."""
    if form == "json":
        return [(line, "plain") for line in json.dumps(report, indent=2).splitlines()]
    if form == "csv":
        return [(line, "plain") for line in _render_csv(report).splitlines()]
    rendered: list[Line] = [(_format_title(report), "strong")]
    for group, title in GROUPS:
        if report[group]:
            rendered += [("", "plain"), *align_columns(list(_build_rows(report, group, title)))]
    if report["resources"]:
        rendered += [("", "plain"), *align_columns(list(_build_resource_rows(report["resources"])))]
    rendered += render_section("Notes", map(make_printable, report["notes"]), "bad")
    return [*rendered, ("", "plain"), (LEGEND, "weak")]


def _format_title(report: Report) -> str:
    return (
        f"GPU hours from {report['start']} to {report['end']}, {report['covered_hours']:.1f} of {report['window_hours']:.1f} hours known,"
        f" source: {report['source']}"
    )


def _build_rows(report: Report, group: str, title: str) -> Iterator[tuple[Sequence[str], str]]:
    """Yield the head, a row for each name, and the totals. Columns that a group does not have are left out."""
    rows = report[group]
    hours = [each for each in HOURS if each[0] in rows[0]]
    costs = [each for each in COSTS if each[0] in rows[0] and report["currency"]]
    currency = make_printable(report["currency"])
    yield [title, *(head for _name, head in hours), *(f"{head} {currency}" for _name, head in costs)], "strong"
    for row in rows:
        yield [make_printable(row["name"]), *_format_cells(row, hours, costs)], "plain"
    yield ["TOTAL", *_format_cells(report["totals"], hours, costs)], "strong"


def _format_cells(row: Row, hours: Sequence[tuple[str, str]], costs: Sequence[tuple[str, str]]) -> list[str]:
    return [
        *(_format_number(row[name], 1) for name, _head in hours),
        *(_format_number(row[name], 2) for name, _head in costs),
    ]


def _format_number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def _build_resource_rows(rows: Iterable[Row]) -> Iterator[tuple[Sequence[str], str]]:
    yield ["RESOURCE", "UNIT", "UNIT HOURS", "AS GPU HOURS"], "strong"
    for row in rows:
        cells = [make_printable(row["name"]), make_printable(row["unit"])]
        yield [*cells, _format_number(row["unit_hours"], 1), _format_number(row["allocated_hours"], 1)], "plain"


def _render_csv(report: Report) -> str:
    """Return a record for each row of each group. Numbers have all digits; what is not known is empty."""
    numbers = [name for name, _head in (*HOURS, *COSTS)]
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(["group", "name", *numbers, "currency", "unit", "unit_hours", "start", "end", "covered_hours"])
    groups = [(group, report[group]) for group in ("namespaces", "nodes", "products", "resources")]
    for group, rows in [*groups, ("totals", [report["totals"]])]:
        for row in rows:
            cells = [group, row.get("name", ""), *(row.get(name) for name in numbers), report["currency"]]
            cells += [
                row.get("unit", ""),
                row.get("unit_hours"),
                report["start"],
                report["end"],
                report["covered_hours"],
            ]
            writer.writerow([_quote(cell) for cell in cells])
    return written.getvalue()


def _quote(cell: Any) -> Any:
    """Return the cell, a text as one that no spreadsheet computes."""
    if not isinstance(cell, str):
        return cell
    return make_printable(f"'{cell}" if cell.startswith(FORMULA) else cell)
