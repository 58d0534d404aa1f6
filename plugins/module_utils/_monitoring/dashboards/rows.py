# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of which dashboards consist, and what the dashboards have in common.

Expressions read the normalised series (``gpu:…``) alone, so that one dashboard serves each exporter and each generation of its names.
"""

from __future__ import annotations

from typing import NamedTuple, Sequence

RATIO, COUNT, CELSIUS, WATTS, GPU_HOURS = "percentunit", "none", "celsius", "watt", "suffix: h"
#: Replaced by the unit of the currency.
MONEY = "money"


class Mapping(NamedTuple):
    """A value that is shown as text with a symbol, so that its meaning does not depend on the colour alone."""

    value: str
    text: str
    color: str


class State(NamedTuple):
    """How values are judged: ``steps`` are (lowest value, colour), the first of them for all lower values."""

    steps: Sequence[tuple[float, str]]
    mappings: Sequence[Mapping] = ()


class Query(NamedTuple):
    """An expression; ``name`` is that of its series, or of its column in a table, which may have its own unit and state."""

    expression: str
    name: str = ""
    unit: str = ""
    state: str = ""


class Panel(NamedTuple):
    """A panel. ``state`` is a name in STATES; ``width`` and ``height`` are in cells of Grafana's grid, which has 24 columns."""

    title: str
    description: str
    kind: str
    unit: str
    queries: Sequence[Query]
    width: int
    height: int
    state: str = ""
    stacked: bool = False


class Variable(NamedTuple):
    """A variable: the values of the label ``name`` of a ``metric``, or without a metric a text that begins as ``value``."""

    name: str
    title: str
    metric: str = ""
    multi: bool = True
    value: str = ""


class Dashboard(NamedTuple):
    """A dashboard; its ``panels`` fill the grid from left to right, and it shows the time since ``begin``."""

    name: str
    title: str
    description: str
    variables: Sequence[Variable]
    panels: Sequence[Panel]
    begin: str = "now-6h"


STATES = {
    "": State([(0, "blue")]),
    "findings": State([(0, "green"), (1, "red")], [Mapping("0", "✔ 0", "green")]),
    "waiting": State([(0, "green"), (1, "orange")], [Mapping("0", "✔ 0", "green")]),
    "margin": State([(0, "red"), (5, "orange"), (15, "green")]),
    "flag": State([(0, "green"), (1, "red")], [Mapping("0", "✔ no", "green"), Mapping("1", "▲ yes", "red")]),
    "throttled": State(
        [(0, "green"), (1, "orange")], [Mapping("0", "✔ full clocks", "green"), Mapping("1", "▲ throttled", "orange")]
    ),
    "recovery": State(
        [(0, "green"), (1, "orange"), (2, "red")],
        [
            Mapping("0", "✔ none", "green"),
            Mapping("1", "▲ reset the GPU", "orange"),
            Mapping("2", "■ reboot the node", "red"),
            Mapping("3", "▲ drain the peers", "orange"),
            Mapping("4", "■ drain and reset", "red"),
        ],
    ),
}


def stat(title: str, description: str, unit: str, expression: str, state: str = "") -> Panel:
    """Return a panel with one number."""
    return Panel(title, description, "stat", unit, [Query(expression)], 4, 4, state)


def lines(title: str, description: str, unit: str, *queries: Query, state: str = "", stacked: bool = False) -> Panel:
    """Return a panel with lines over time."""
    return Panel(title, description, "timeseries", unit, queries, 12, 8, state, stacked)


def bars(title: str, description: str, unit: str, *queries: Query, state: str = "", width: int = 12) -> Panel:
    """Return a panel with a bar for each series, as of now."""
    return Panel(title, description, "bargauge", unit, queries, width, 9, state)


def timeline(title: str, description: str, query: Query, state: str) -> Panel:
    """Return a panel with the states of each series over time."""
    return Panel(title, description, "state-timeline", COUNT, [query], 12, 9, state)


def table(title: str, description: str, *queries: Query, width: int = 24) -> Panel:
    """Return a panel with a row for each set of labels, as of now; queries with the same labels share rows."""
    return Panel(title, description, "table", COUNT, queries, width, 9)


NODE = 'node=~"$node"'
PRESENT = f"gpu:present{{{NODE}}}"
UTILIZATION = f"gpu:utilization:ratio{{{NODE}}}"
MEMORY = f"gpu:memory_used:ratio{{{NODE}}}"
MARGIN = f"gpu:temperature_margin:celsius{{{NODE}}}"
GPU = "node, gpu_uuid"
#: Two jobs may report one GPU, with other labels beside these: to count GPUs, and one series for each GPU.
GPUS = f"group by ({GPU}) ({PRESENT})"
ONE = f"topk by ({GPU}) (1, {PRESENT})"
BY_NODE = "${__field.labels.node}"
BY_GPU = "${__field.labels.gpu_uuid}"
BY_NODE_AND_GPU = f"{BY_NODE} {BY_GPU}"
NODES = Variable("node", "Node", "gpu:present")

UTILIZATION_WORDS = "The share of time in which a program ran on the GPU, not how much of the GPU it used."
MEMORY_WORDS = (
    "The used part of the GPU's memory, not the load of its controller. Many frameworks take all memory at once."
)
MARGIN_WORDS = "Degrees up to the temperature at which the GPU slows down; unlike a temperature, it fits each model."
FINDING_WORDS = "GPUs that are throttled, or have a recent Xid, a memory error or a recovery action."

_FINDINGS = (
    "gpu:recovery_action",
    "gpu:row_remap_failed",
    "gpu:row_remap_pending",
    "gpu:ecc_uncorrected:since_load",
    "gpu:throttled",
    "gpu:xid:recent",
)
ANY_FINDING = " or ".join(f"{name}{{{NODE}}} > 0" for name in _FINDINGS)


def or_zero(count: str, present: str = PRESENT) -> str:
    """Return an expression that is 0 where *count* has no value and GPUs are reported; without GPUs it has no value."""
    return f"{count} or count({present}) * 0"


def count_gpus(condition: str) -> str:
    """Return an expression for the number of GPUs for which *condition* has a value."""
    return or_zero(f"count(max by ({GPU}) ({condition}))")
