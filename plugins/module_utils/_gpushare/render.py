# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders an allocation as the tables of ``kubectl inspect gpushare`` in lines with a tone, or as JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
from typing import Any, Iterator, Mapping, Sequence

from .._report.render import Line, align_columns, render_section
from .allocation import Allocation, compute_percent

FORMATS = ("table", "json", "csv")
BAR_WIDTH = 20
FULL, FREE = "#", "."
NOTE = (
    "gpushare allocates memory and does not isolate it: a container can use more than its pod requests"
    " (except with Alibaba's cGPU, on nodes without the label cgpu.disable.isolation=true)."
)
CLUSTER = "Allocated/Total GPU Memory In Cluster:"
PENDING = "pending"
# The result of a module has more keys than these.
PARTS = ("nodes", "cluster", "unit", "findings")

Node = Mapping[str, Any]


def render_text(allocation: Allocation, form: str = "table", details: bool = False, bars: bool = False) -> str:
    """Return the allocation as text that ends with a line feed. Raises KeyError or TypeError for other data."""
    return "".join(f"{line}\n" for line, _tone in render_lines(allocation, form, details, bars))


def render_lines(allocation: Allocation, form: str = "table", details: bool = False, bars: bool = True) -> list[Line]:
    """Return the allocation as lines; ``details`` lists each pod, ``bars`` draws one for each GPU below the table."""
    if form == "json":
        return [
            (line, "plain") for line in json.dumps({part: allocation[part] for part in PARTS}, indent=2).splitlines()
        ]
    if form == "csv":
        return [(line, "plain") for line in _render_csv(allocation, details).splitlines()]
    rendered = _render_details(allocation) if details else _render_summary(allocation)
    if bars:
        rendered += _render_bars(allocation)
    rendered += render_section("Findings", [found["message"] for found in allocation["findings"]], "bad")
    return [*rendered, ("", "plain"), (NOTE, "weak")]


def _get_columns(nodes: Sequence[Node]) -> range:
    """Return the indexes of GPUs that nodes have; pods can have others."""
    return range(max((int(node["gpu_count"]) for node in nodes), default=0))


def _get_tone(allocated: int, total: int) -> str:
    if allocated > total:
        return "bad"
    return "good" if allocated else "plain"


def _format_share(part: Mapping[str, int]) -> str:
    return f"{part['allocated']}/{part['total']}"


def _format_sum(part: Mapping[str, int]) -> str:
    return f"{_format_share(part)} ({part['percent']}%)"


def _render_summary(allocation: Allocation) -> list[Line]:
    columns, nodes = _get_columns(allocation["nodes"]), allocation["nodes"]
    some_pending = any(node["pending"] for node in nodes)
    head = ["NAME", "IPADDRESS", *(f"GPU{index}(Allocated/Total)" for index in columns)]
    head += [*(["PENDING(Allocated)"] if some_pending else []), f"GPU Memory({allocation['unit']})"]
    rows: list[tuple[Sequence[str], str]] = [(head, "strong")]
    for node in nodes:
        gpus = {gpu["index"]: _format_share(gpu) for gpu in node["gpus"]}
        cells = [node["name"], node["address"] or "unknown", *(gpus.get(index, "0/0") for index in columns)]
        cells += [str(node["pending"] or "")] if some_pending else []
        rows.append(([*cells, _format_share(node)], _get_tone(node["allocated"], node["total"])))
    table = align_columns(rows)
    return [*table, _draw_rule(table), (CLUSTER, "plain"), (_format_sum(allocation["cluster"]), "strong")]


def _draw_rule(table: Sequence[Line]) -> Line:
    return "-" * max(len(line) for line, _tone in table), "plain"


def _render_details(allocation: Allocation) -> list[Line]:
    rendered: list[Line] = []
    for node in allocation["nodes"]:
        table = align_columns(list(_build_pod_rows(node)))
        rendered += [("", "plain")] if rendered else []
        rendered += align_columns(
            [(("NAME:", node["name"]), "strong"), (("IPADDRESS:", node["address"] or "unknown"), "plain")]
        )
        rendered += [("", "plain"), *table]
        allocated = (
            f"Allocated : {node['allocated']} ({node['percent']}%)",
            _get_tone(node["allocated"], node["total"]),
        )
        rendered += [allocated, (f"Total :     {node['total']}", "plain"), _draw_rule(table)]
    rendered += [("", "plain")] if rendered else []
    return [*rendered, (f"{CLUSTER} {_format_sum(allocation['cluster'])}", "strong")]


def _build_pod_rows(node: Node) -> Iterator[tuple[Sequence[str], str]]:
    columns, some_pending = _get_columns([node]), node["pending"] > 0
    head = ["NAME", "NAMESPACE", *(f"GPU{index}(Allocated)" for index in columns)]
    yield [*head, *(["Pending(Allocated)"] if some_pending else [])], "strong"
    for pod in node["pods"]:
        gpus = {gpu["index"]: gpu["allocated"] for gpu in pod["gpus"]}
        cells = [pod["name"], pod["namespace"], *(str(gpus.get(index, 0)) for index in columns)]
        yield [*cells, *([str(pod["pending"])] if some_pending else [])], "bad" if pod["pending"] else "plain"


def _render_bars(allocation: Allocation) -> list[Line]:
    rows = [
        (
            (
                f"  {node['name']}",
                f"GPU{gpu['index']}",
                draw_bar(gpu["allocated"], gpu["total"]),
                _format_share(gpu),
                f"{compute_percent(gpu['allocated'], gpu['total'])}%",
            ),
            _get_tone(gpu["allocated"], gpu["total"]),
        )
        for node in allocation["nodes"]
        for gpu in node["gpus"]
    ]
    return (
        [
            ("", "plain"),
            (f"GPUs, each with its {allocation['unit'] or 'memory'} allocated", "strong"),
            *align_columns(rows),
        ]
        if rows
        else []
    )


def draw_bar(part: int, whole: int, width: int = BAR_WIDTH) -> str:
    """Return a bar: without a mark only for 0, and without a gap only for the whole."""
    marks = min(width, part * width // whole) if whole > 0 else 0
    if part > 0:
        marks = max(1, marks)
    return FULL * marks + FREE * (width - marks)


def _render_csv(allocation: Allocation, details: bool) -> str:
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    if details:
        writer.writerow(["node", "namespace", "pod", "phase", "terminating", "gpu", "allocated", "unit"])
        writer.writerows([*row, allocation["unit"]] for row in _build_pod_records(allocation))
    else:
        writer.writerow(["node", "address", "gpu", "allocated", "total", "percent", "unit"])
        writer.writerows([*row, allocation["unit"]] for row in _build_gpu_records(allocation))
    return written.getvalue()


def _build_gpu_records(allocation: Allocation) -> Iterator[list[Any]]:
    """One record for each GPU, and one for amounts without a known GPU; their sum is the allocated amount."""
    for node in allocation["nodes"]:
        for gpu in node["gpus"]:
            share = [gpu["allocated"], gpu["total"], compute_percent(gpu["allocated"], gpu["total"])]
            yield [node["name"], node["address"], gpu["index"], *share]
        if node["pending"] or not node["gpus"]:
            yield [node["name"], node["address"], PENDING, node["pending"], "", ""]


def _build_pod_records(allocation: Allocation) -> Iterator[list[Any]]:
    """One record for each GPU of each pod."""
    for node in allocation["nodes"]:
        for pod in node["pods"]:
            who = [node["name"], pod["namespace"], pod["name"], pod["phase"], str(pod["terminating"]).lower()]
            yield from ([*who, gpu["index"], gpu["allocated"]] for gpu in pod["gpus"])
            if pod["pending"]:
                yield [*who, PENDING, pod["pending"]]
