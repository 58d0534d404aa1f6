# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the report from hours and prices: rows by namespace, node, product and resource, totals, and notes. All of it is plain JSON."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Mapping, NamedTuple

from .integrate import Hours, Usage
from .prices import find_price
from .times import HOUR, format_time

SCHEMA = "gpu.kubernetes/cost/v1"
HOUR_DIGITS, COST_DIGITS = 4, 4
#: The values of a row that need the number of GPUs; a namespace has none.
OF_CAPACITY = ("gpu_hours", "idle_hours", "idle_cost")
#: A source that misses less than this part of the window gets no note.
COMPLETE = 0.99

Report = Dict[str, Any]
Row = Dict[str, Any]


class Request(NamedTuple):
    """What the report is of: its source, its first and last second, the prices of a GPU hour by pattern, and their currency."""

    source: str
    start: int
    end: int
    prices: Mapping[str, float]
    currency: str
    #: Below which ratio a GPU counts as without load; what the source is read by, such as ``{step_seconds: 300}``.
    settings: Mapping[str, Any]


def build_report(usage: Usage, request: Request, notes: Iterable[str] = ()) -> Report:
    """Return the report. Hours are GPU hours; a value that the source does not have, and a cost without a price, are None."""
    build = _RowBuilder(usage, request)
    models: dict[str, list[str]] = {}
    for node, product in sorted(usage.nodes):
        models.setdefault(node, []).append(product)
    nodes = build.group(usage.nodes, lambda key: key[0])
    for row in nodes:
        row["products"] = models[row["name"]]
        if not usage.sized.get(row["name"]):
            row.update(dict.fromkeys(OF_CAPACITY))
    products = build.group(usage.nodes, lambda key: key[1])
    for row in products:
        row["price"] = find_price(request.prices, row["name"])
    namespaces = build.group(usage.namespaces, lambda key: key[0])
    for row in namespaces:
        for name in OF_CAPACITY:
            del row[name]
    [totals] = build.group(usage.nodes, lambda _key: "") or [build.build_row("", [])]
    del totals["name"]
    if usage.nodes and not any(usage.sized.values()):
        totals.update(dict.fromkeys(OF_CAPACITY))
    return {
        "schema": SCHEMA,
        "source": request.source,
        "start": format_time(request.start),
        "end": format_time(request.end),
        "window_hours": round((request.end - request.start) / HOUR, HOUR_DIGITS),
        "covered_hours": round(usage.covered, HOUR_DIGITS),
        "settings": dict(request.settings),
        "currency": request.currency if request.prices else "",
        "totals": totals,
        "namespaces": namespaces,
        "nodes": nodes,
        "products": products,
        "rows": _list_rows(build, usage),
        "resources": [
            {
                "name": name,
                "unit": unit,
                "unit_hours": round(units, HOUR_DIGITS),
                "allocated_hours": round(gpus, HOUR_DIGITS),
            }
            for (name, unit), (units, gpus) in sorted(usage.resources.items())
        ],
        "notes": [*_build_notes(usage, request), *notes],
    }


def _list_rows(build: _RowBuilder, usage: Usage) -> list[Row]:
    """Return a row for each namespace and product, and for each product one without a namespace, which has the idle hours and their cost."""
    parts: dict[tuple[str, str], Hours] = {}
    for (namespace, _node, product), hours in usage.namespaces.items():
        parts.setdefault((namespace, product), Hours()).add(hours)
    for (_node, product), hours in usage.nodes.items():
        parts.setdefault(("", product), Hours()).idle += hours.idle
    rows = []
    for (namespace, product), hours in sorted(parts.items()):
        row = build.build_row("", [(product, hours)])
        names = ("allocated_hours", "idle_hours", "wasted_hours")
        cost = row["allocated_cost" if namespace else "idle_cost"]
        rows.append({"namespace": namespace, "product": product, **{name: row[name] for name in names}, "cost": cost})
    return rows


class _RowBuilder:
    """Sums hours to rows, with their costs."""

    def __init__(self, usage: Usage, request: Request) -> None:
        self.measured = usage.measured
        self.priced = request.prices

    def group(self, hours: Mapping[Any, Hours], name_of: Callable[[Any], str]) -> list[Row]:
        """Return a row for each name, by name. The last part of each key is a product."""
        grouped: dict[str, list[tuple[str, Hours]]] = {}
        for key, found in hours.items():
            grouped.setdefault(name_of(key), []).append((key[-1], found))
        return [self.build_row(name, grouped[name]) for name in sorted(grouped)]

    def build_row(self, name: str, parts: Iterable[tuple[str, Hours]]) -> Row:
        """Return a row of hours by product."""
        total, costs = Hours(), Hours()
        is_priced = False
        for product, hours in parts:
            total.add(hours)
            price = find_price(self.priced, product)
            if price is not None:
                is_priced = True
                costs.add(Hours(**{key: value * price for key, value in vars(hours).items()}))
        return {
            "name": name,
            "gpu_hours": round(total.gpu, HOUR_DIGITS),
            "allocated_hours": round(total.allocated, HOUR_DIGITS),
            "idle_hours": round(total.idle, HOUR_DIGITS),
            "wasted_hours": round(total.wasted, HOUR_DIGITS) if self.measured else None,
            "unmeasured_hours": round(total.unmeasured, HOUR_DIGITS),
            "allocated_cost": round(costs.allocated, COST_DIGITS) if is_priced else None,
            "idle_cost": round(costs.idle, COST_DIGITS) if is_priced else None,
            "wasted_cost": round(costs.wasted, COST_DIGITS) if is_priced and self.measured else None,
        }


def _build_notes(usage: Usage, request: Request) -> Iterable[str]:
    window = (request.end - request.start) / HOUR
    if usage.covered < window * COMPLETE:
        yield (
            f"The source covers {usage.covered:.1f} of {window:.1f} hours; nothing is known about the others, and they are in no sum."
        )
    unsized = {
        name: hours for name, hours in usage.unsized.items() if hours > usage.sized.get(name, 0.0) * (1 - COMPLETE)
    }
    names = [f"{name} for {unsized[name]:.1f} hours" if usage.sized.get(name) else name for name in sorted(unsized)]
    if names:
        yield (
            f"The number of GPUs is not known of {', '.join(names[:5])}{' and others' if len(names) > 5 else ''}, so that their idle hours are in no"
            " sum; check that Prometheus has gpu:present of them."
        )
    if usage.covered and not usage.measured:
        yield "Wasted hours are not known: the load of GPUs is in Prometheus alone, as gpu:utilization:ratio."
    unpriced = {product for _node, product in usage.nodes if find_price(request.prices, product) is None}
    if request.prices and unpriced:
        yield f"No price in gpu_cost_prices, so that their hours are in no cost: {', '.join(sorted(unpriced))}."
