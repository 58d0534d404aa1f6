# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renders the report as lines with a tone; the caller chooses the colours."""

from __future__ import annotations

from typing import Any, Collection, Iterable, Iterator, Mapping, Sequence

from .._lines import Line, align_columns, render_section
from .._vendors import WHOLE_RESOURCES

GIB = 1024**3
STAR = "*"
NOT_RUN = "not run"
HEAD = ("NODE", "GPUS", "DRIVER", "CUDA", "RUNTIME", "DEFAULT", "ALLOCATABLE", "SMOKE", "STATUS")


def render_lines(
    report: Mapping[str, Any],
    path: str = "",
    hosts: Collection[str] | None = None,
    tested: Collection[str] | None = None,
) -> list[Line]:
    """Return the whole report; ``path`` is its JSON file, if any.

    A star marks results of an earlier run: of hosts that are not in ``hosts``, and smoke tests of nodes that are not in
    ``tested``. None means that all of them are of this run.
    """
    rows = render_table(report, hosts, tested)
    rendered: list[Line] = [(_format_title(report), "good" if report["ok"] else "bad"), ("", "plain"), *rows]
    if any(STAR in text for text, _tone in rows):
        rendered.append((f"{STAR} as of an earlier run", "weak"))
    rendered += [("", "plain"), (f"Device plugin  {', '.join(report['plugin_images']) or 'none'}", "plain")]
    rendered.append((f"RuntimeClass   {_format_runtime_class(report['runtime_class'])}", "plain"))
    shares = align_columns([row for node in report["nodes"] for row in _build_share_rows(node)])
    rendered += render_section("Slices and shares of GPUs", [text for text, _tone in shares], "plain", bullet="")
    rendered += render_section("Problems", [problem["sentence"] for problem in report["problems"]], "bad")
    left_out = [f"{host}: unreachable; restore its connection, and run again." for host in report.get("left_out") or []]
    rendered += render_section("Hosts that this run has left out", left_out, "bad")
    for node in report["nodes"]:
        drift = node["runtime"].get("drift") or []
        rendered += render_section(
            f"Drift of the container runtime's configuration on {node['host']}", drift, "plain", bullet=""
        )
    rendered += render_section("Notes", report["notes"], "plain")
    rendered += render_section("Fakes of vendors' programs", report["fakes"], "plain")
    return [*rendered, *([("", "plain"), (f"As JSON: {path}", "weak")] if path else [])]


def _format_title(report: Mapping[str, Any]) -> str:
    summary = report["summary"]
    verdict = "all well" if report["ok"] else _format_count(summary["problems"], "problem")
    title = f"GPU report: {_format_count(summary['nodes'], 'node')}, {_format_count(summary['gpus'], 'GPU')}, {verdict}"
    left_out = report.get("left_out") or []
    return f"{title}, {_format_count(len(left_out), 'host')} left out" if left_out else title


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def render_table(
    report: Mapping[str, Any], hosts: Collection[str] | None = None, tested: Collection[str] | None = None
) -> list[Line]:
    """Return the head and one row for each node; a node with different GPUs has further rows for them."""
    rows: list[tuple[tuple[str, ...], str]] = [(HEAD, "strong")]
    for node in report["nodes"]:
        first, *others = format_gpus(node["gpus"]["products"])
        tone = "good" if node["ok"] else "bad"
        smoke, status = node["smoke_test"]["result"], "ok" if node["ok"] else "problem"
        smoke += STAR if smoke != NOT_RUN and _is_old(node["node"], tested) else ""
        status += STAR if _is_old(node["host"], hosts) else ""
        rows.append(((*_build_cells(node, first), smoke, status), tone))
        rows += [(("", other, *[""] * (len(HEAD) - 2)), tone) for other in others]
    return align_columns(rows)


def _is_old(name: str, of_this_run: Collection[str] | None) -> bool:
    return of_this_run is not None and name not in of_this_run


def format_gpus(products: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return one text for each product, such as C(8 x NVIDIA A100-SXM4-40GB 40 GiB)."""
    cells = []
    for product in products:
        memory = product.get("memory_total_bytes")
        size = f" {memory / GIB:.0f} GiB" if memory else ""
        cells.append(f"{product['count']} x {product.get('name') or 'unknown'}{size}")
    return cells or ["none"]


def _build_cells(node: Mapping[str, Any], gpus: str) -> tuple[str, ...]:
    runtime, kubernetes = node["runtime"], node["kubernetes"]
    allocatable = kubernetes.get("allocatable")
    return (
        node["node"],
        gpus,
        node["driver"]["version"] or "-",
        node["driver"]["cuda_version"] or "-",
        " ".join(part for part in (runtime["name"], _shorten_version(runtime["version"])) if part) or "-",
        runtime["default"] or "-",
        f"{'-' if allocatable is None else allocatable}/{kubernetes.get('expected') or node['gpus']['count']}",
    )


def _build_share_rows(node: Mapping[str, Any]) -> Iterator[tuple[Sequence[str], str]]:
    """Yield a row for each GPU of a node with MIG mode, and for what the node offers of its GPUs; none for a node that offers whole GPUs only."""
    devices = [gpu for gpu in node["gpus"]["devices"] if not gpu.get("lost")]
    if any(gpu.get("mig_mode") == "enabled" for gpu in devices):
        for gpu in devices:
            slices = ", ".join(f"{count} x {profile}" for profile, count in gpu["mig_slices"].items())
            state = (slices or "no slices") if gpu.get("mig_mode") == "enabled" else "whole"
            yield (node["node"], f"GPU{gpu['index']}", state), "plain"
    count, offered = node["gpus"]["count"], node["kubernetes"]["resources"]
    if set(offered) - WHOLE_RESOURCES or sum(offered.values()) > count:
        units = ", ".join(f"{units} {name}" for name, units in offered.items())
        yield (node["node"], "", f"{units} allocatable of {_format_count(count, 'GPU')}"), "plain"


def _shorten_version(version: str | None) -> str:
    """Return a version without its build part."""
    return (version or "").partition("+")[0].lstrip("v")


def _format_runtime_class(found: Mapping[str, Any]) -> str:
    if not found.get("name"):
        return "not requested"
    return f"{found['name']} (handler {found.get('handler')})" if found.get("found") else f"{found['name']} is missing"
