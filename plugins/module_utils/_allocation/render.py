# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders an allocation in lines with a tone, or as JSON or CSV: gpushare's as the tables of ``kubectl inspect gpushare``, others by node and resource."""

from __future__ import annotations

import csv
import io
import json
from typing import Any, Iterable, Iterator, Mapping, Sequence

from .._lines import Line, align_columns, render_section
from . import names
from .allocation import Allocation, compute_percent
from .resources import is_nvidia

FORMATS = ("table", "json", "csv")
BAR_WIDTH = 20
FULL, FREE = "#", "."
#: What the functions here read, for messages.
SOURCE = "what gpushare_info returns, with the pods for details"
NOTE = (
    "gpushare allocates memory and does not isolate it: a container can use more than its pod requests"
    " (except with Alibaba's cGPU, on nodes without the label cgpu.disable.isolation=true)."
)
GPU_NOTE = "The API does not report on which GPU a unit of NVIDIA's device plugin is; nvidia-smi on the node lists slices and processes of each GPU."
NOTHING = "No node has GPUs in its allocatable resources."
CLUSTER = "Allocated/Total GPU Memory In Cluster:"
PENDING = "pending"
# The result of a module has more keys than these.
PARTS = ("nodes", "cluster", "unit", "findings", "resources", "totals")

Node = Mapping[str, Any]


def render_text(allocation: Allocation, form: str = "table", details: bool = False, bars: bool = False) -> str:
    """Return the allocation as text that ends with a line feed. Raises KeyError or TypeError for other data."""
    return "".join(f"{line}\n" for line, _tone in render_lines(allocation, form, details, bars))


def render_lines(allocation: Allocation, form: str = "table", details: bool = False, bars: bool = True) -> list[Line]:
    """Return the allocation as lines; ``details`` lists each pod, ``bars`` draws one for each GPU, or for a resource where the GPUs are not known."""
    if form == "json":
        return [
            (line, "plain") for line in json.dumps({part: allocation[part] for part in PARTS}, indent=2).splitlines()
        ]
    if form == "csv":
        return [(line, "plain") for line in _render_csv(allocation, details).splitlines()]
    sections = [_render_gpushare(allocation, details, bars)] if allocation["nodes"] else []
    sections += _render_resources(allocation, details, bars) if allocation["resources"] else []
    rendered = _join(sections or [[(NOTHING, "plain")]])
    rendered += render_section("Findings", [found["message"] for found in allocation["findings"]], "bad")
    notes = [NOTE] if allocation["nodes"] else []
    notes += [GPU_NOTE] if any(is_nvidia(row["resource"]) for row in allocation["resources"]) else []
    return [*rendered, *(line for note in notes for line in (("", "plain"), (note, "weak")))]


def _join(sections: Iterable[Sequence[Line]]) -> list[Line]:
    """Return the sections with an empty line between them."""
    rendered: list[Line] = []
    for section in sections:
        rendered += [*([("", "plain")] if rendered else []), *section]
    return rendered


def _render_gpushare(allocation: Allocation, details: bool, bars: bool) -> list[Line]:
    rendered = _render_details(allocation) if details else _render_summary(allocation)
    return [*rendered, *(_render_bars(allocation) if bars else [])]


# -- what other device plugins offer


def _render_resources(allocation: Allocation, details: bool, bars: bool) -> list[list[Line]]:
    """Return the table of nodes and resources with the sums of the cluster, and with details that of the pods."""
    rows = [row for resource in allocation["resources"] for row in _build_resource_rows(resource, bars)]
    table = _align_filled(["NAME", "RESOURCE", "GPU", "", "Allocated/Total", "", "UNIT"], rows)
    sums = align_columns([((total["resource"], _format_sum(total)), "strong") for total in allocation["totals"]])
    pods = [row for resource in allocation["resources"] for row in _build_holder_rows(resource)] if details else []
    head = ["NAME", "NAMESPACE", "NODE", "RESOURCE", "GPU", "Allocated"]
    return [
        [*table, _draw_rule(table), ("Allocated/Total In Cluster:", "plain"), *sums],
        *([_align_filled(head, pods)] if pods else []),
    ]


def _align_filled(head: Sequence[str], rows: Sequence[tuple[Sequence[str], str]]) -> list[Line]:
    """Return the table without the columns that are empty in all rows."""
    filled = [number for number in range(len(head)) if any(cells[number] for cells, _tone in rows)]
    return align_columns(
        [([cells[number] for number in filled], tone) for cells, tone in [(head, "strong"), *rows]],
    )


def _build_resource_rows(row: Node, bars: bool) -> Iterator[tuple[Sequence[str], str]]:
    """Yield a row for each GPU, or one where the API does not report the GPUs, and one for amounts without a known GPU."""
    unit = row["unit"]
    if row["gpu_count"] and unit != "GPUs" and not row["gpus"]:
        unit += f" of {row['gpu_count']} GPU{'' if row['gpu_count'] == 1 else 's'}"
    for gpu in row["gpus"] or [{**row, "index": None}]:
        allocated, total = gpu["allocated"], gpu["total"]
        cells = [row["name"], row["resource"], "" if gpu["index"] is None else f"GPU{gpu['index']}"]
        cells += [
            draw_bar(allocated, total) if bars else "",
            _format_share(gpu),
            f"{compute_percent(allocated, total)}%",
        ]
        yield [*cells, unit], _get_tone(allocated, total)
    if row["pending"]:
        yield [row["name"], row["resource"], PENDING, "", str(row["pending"]), "", unit], "bad"


def _build_holder_rows(row: Node) -> Iterator[tuple[Sequence[str], str]]:
    """Yield a row for each GPU of each pod, or one for a pod whose GPU is not known."""
    for pod in row["pods"]:
        for gpu, allocated in _list_shares(pod):
            who = [pod["name"], pod["namespace"], row["name"], row["resource"]]
            yield (
                [*who, gpu if gpu in ("", PENDING) else f"GPU{gpu}", str(allocated)],
                "bad" if gpu == PENDING else "plain",
            )


def _list_shares(pod: Node) -> list[tuple[Any, int]]:
    """Return the amounts of a pod by GPU index, or PENDING for an unknown GPU, or an empty text where the API never reports the GPU."""
    shares = [(gpu["index"], gpu["allocated"]) for gpu in pod["gpus"]]
    shares += [(PENDING, pod["pending"])] if pod["pending"] else []
    return shares or [("", pod["allocated"])]


# -- gpushare's tables


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
        writer.writerow(["node", "namespace", "pod", "phase", "terminating", "gpu", "allocated", "unit", "resource"])
    else:
        writer.writerow(["node", "address", "gpu", "allocated", "total", "percent", "unit", "resource"])
    build = _build_pod_records if details else _build_gpu_records
    memory = {"resource": names.GPU_MEM, "unit": allocation["unit"]}
    for row in [*({**node, **memory} for node in allocation["nodes"]), *allocation["resources"]]:
        writer.writerows([*record, row["unit"], row["resource"]] for record in build(row))
    return written.getvalue()


def _build_gpu_records(row: Node) -> Iterator[list[Any]]:
    """One record for each GPU, and one for amounts without a known GPU; their sum is the allocated amount. One where the API never reports the GPU."""
    for gpu in row["gpus"]:
        share = [gpu["allocated"], gpu["total"], compute_percent(gpu["allocated"], gpu["total"])]
        yield [row["name"], row["address"], gpu["index"], *share]
    if row["pending"]:
        yield [row["name"], row["address"], PENDING, row["pending"], "", ""]
    elif not row["gpus"]:
        yield [row["name"], row["address"], "", row["allocated"], row["total"], row["percent"]]


def _build_pod_records(row: Node) -> Iterator[list[Any]]:
    """One record for each GPU of each pod."""
    for pod in row["pods"]:
        who = [row["name"], pod["namespace"], pod["name"], pod["phase"], str(pod["terminating"]).lower()]
        yield from ([*who, gpu, allocated] for gpu, allocated in _list_shares(pod))
