# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dashboards of allocation and of cost."""

from __future__ import annotations

import re
from typing import Mapping

from .rows import (
    BY_NODE,
    COUNT,
    GPU,
    GPU_HOURS,
    MONEY,
    RATIO,
    UTILIZATION_WORDS,
    Dashboard,
    Panel,
    Query,
    Variable,
    bars,
    lines,
    or_zero,
    stat,
    table,
)

# Each GPU of all nodes once; two jobs may report it.
_GPUS = f"group by ({GPU}) (gpu:present)"
_REQUESTED = 'gpu:requested:by_pod{namespace=~"$namespace",resource=~"$resource"'
_PLACED, _PENDING = f'{_REQUESTED},node!=""}}', f'{_REQUESTED},node=""}}'
_BY_NAMESPACE = "${__field.labels.namespace}"
_RESOURCE = "${__field.labels.resource}"
_UNIT_WORDS = "in units of the resource: GPUs, replicas, slices or memory"
_IDLE = "max by (node) (max_over_time(gpu:utilization:ratio[1h])) < 0.01"


def _count_pods(pods: str, labels: str = "namespace, pod") -> str:
    return or_zero(f"count(count by ({labels}) ({pods}))", "gpu:present")


ALLOCATION = Dashboard(
    "allocation",
    "GPU allocation and sharing",
    "Which namespaces and pods have GPUs or parts of them, which pods are pending, and what is allocated but idle.",
    [
        Variable("namespace", "Namespace", "gpu:requested:by_pod"),
        Variable("resource", "Resource", "gpu:requested:by_pod"),
    ],
    [
        stat("Pods with GPUs", "Pods on a node that request a GPU or a part of one.", COUNT, _count_pods(_PLACED)),
        stat(
            "Pending pods",
            "Pods without a node that request a GPU or a part of one.",
            COUNT,
            _count_pods(_PENDING),
            "waiting",
        ),
        stat(
            "Namespaces",
            "Namespaces whose pods on nodes request a GPU or a part of one.",
            COUNT,
            _count_pods(_PLACED, "namespace"),
        ),
        stat(
            "Nodes in use",
            "Nodes with a pod that requests a GPU or a part of one.",
            COUNT,
            _count_pods(_PLACED, "node"),
        ),
        stat(
            "Free nodes",
            "Nodes with GPUs and without a pod, of any namespace, that requests them.",
            COUNT,
            _count_pods('gpu:present unless on (node) gpu:requested:by_pod{node!=""}', "node"),
        ),
        stat(
            "Allocated and idle nodes",
            "Nodes with pods that request GPUs, and a utilization below 1 % of each GPU in the last hour.",
            COUNT,
            or_zero(f"count(count by (node) ({_PLACED}) and on (node) {_IDLE})", "gpu:present"),
            "waiting",
        ),
        lines(
            "Units by namespace",
            f"What pods on nodes request, {_UNIT_WORDS}.",
            COUNT,
            Query(
                'gpu:allocated:by_namespace{namespace=~"$namespace",resource=~"$resource"}',
                f"{_BY_NAMESPACE} {_RESOURCE}",
            ),
            stacked=True,
        ),
        lines(
            "Pending units by namespace",
            f"What pods without a node request, {_UNIT_WORDS}.",
            COUNT,
            Query(f"sum by (namespace, resource) ({_PENDING})", f"{_BY_NAMESPACE} {_RESOURCE}"),
            stacked=True,
        ),
        bars(
            "Units per GPU",
            "Requested units divided by the GPUs of the node, of twenty nodes. Of a resource that counts GPUs, more than 1 means sharing.",
            COUNT,
            Query(
                f"topk(20, sum by (node, resource) ({_PLACED}) / on (node) group_left () count by (node) ({_GPUS}))",
                f"{BY_NODE} {_RESOURCE}",
            ),
        ),
        bars(
            "Least used nodes with pods",
            f"The twenty nodes with the lowest average of their GPUs, of those with pods that request them. {UTILIZATION_WORDS}",
            RATIO,
            Query(f"bottomk(20, avg by (node) (gpu:utilization:ratio) and on (node) {_PLACED})", BY_NODE),
        ),
        table(
            "Pods on nodes",
            f"What each pod requests, {_UNIT_WORDS}.",
            Query(f"sum by (namespace, pod, node, resource) ({_PLACED})", "Units"),
            width=12,
        ),
        table(
            "Pods without a node",
            "What each pending pod requests. The events of the pod have the reason of kube-scheduler.",
            Query(f"sum by (namespace, pod, resource) ({_PENDING})", "Units"),
            width=12,
        ),
    ],
)

_ALLOCATED = 'gpu:requested:by_pod{node!="",resource="$resource"}'
_TOTAL_HOURS = f"sum_over_time(count({_GPUS})[$__range:5m]) / 12"
_ALLOCATED_HOURS = f"(sum_over_time(sum({_ALLOCATED})[$__range:5m]) / 12 / $units or count(gpu:present) * 0)"
_UNUSED = "on (node) group_left () (1 - avg by (node) (gpu:utilization:ratio))"
_NAMESPACE_HOURS = f"sum_over_time(sum by (namespace, node) ({_ALLOCATED})[$__range:5m]) / 12 / $units"
_NODE_TOTAL = f"sum_over_time(count by (node) ({_GPUS})[$__range:5m]) / 12"
_NODE_HOURS = f"sum_over_time(sum by (node) ({_ALLOCATED})[$__range:5m]) / 12 / $units"
_NODE_WASTED = f"sum_over_time((sum by (node) ({_ALLOCATED}) * {_UNUSED})[$__range:5m]) / 12 / $units"
_HOURS_WORDS = "in the shown time, one hour of one GPU"
_PRICE_WORDS = "The price of the GPU's model is in the table of prices; other models have that of the field above."


# What stands for a hyphen in the name of a model: names in labels of nodes have hyphens where the driver's names have spaces.
_OTHER = "[^a-zA-Z0-9_.*?-]+"
_REGULAR = {"*": ".*", "?": ".", ".": r"\\.", "-": f"(-|{_OTHER})"}


def _write_pattern(pattern: str) -> str:
    """Return the regular expression of a shell pattern for models, whose case does not matter, as a string of PromQL without its quotes."""
    folded = re.sub(_OTHER, "-", pattern.strip())
    return "(?i)" + "".join(_REGULAR.get(character, character) for character in folded)


def _build_price(prices: Mapping[str, float]) -> str:
    """Return an expression for the price of a GPU hour on each node that was there in the shown time.

    A whole name counts before patterns, and a longer pattern before a shorter one.
    """
    order = sorted(prices, key=lambda pattern: (not set(pattern) & set("*?"), len(pattern)), reverse=True)
    rows = [
        f'max by (node) (last_over_time(gpu:present{{model=~"{_write_pattern(pattern)}"}}[$__range])) * {prices[pattern]}'
        for pattern in order
    ]
    return " or ".join([*rows, "max by (node) (last_over_time(gpu:present[$__range])) * $price"])


def build_cost(prices: Mapping[str, float]) -> Dashboard:
    """Return the dashboard of cost; *prices* are those of a GPU hour, by shell patterns of models."""
    price = f"on (node) group_left () ({_build_price(prices)})"
    return Dashboard(
        "cost",
        "GPU cost",
        "GPU hours that exist, that are allocated and that are not used, and what they cost.",
        [
            Variable("resource", "Resource", "gpu:requested:by_pod", multi=False),
            Variable("units", "Units of the resource per GPU", value="1"),
            Variable("price", "Price of a GPU hour, other models", value="1"),
        ],
        [*_build_totals(price), *_build_charts(price)],
        begin="now-7d",
    )


def _build_totals(price: str) -> list[Panel]:
    """Return the panels with one number; *price* joins the price of a GPU hour to a vector by node."""
    return [
        stat("GPU hours", f"GPUs that exporters reported {_HOURS_WORDS}.", GPU_HOURS, _TOTAL_HOURS),
        stat("Allocated GPU hours", f"What pods on nodes requested {_HOURS_WORDS}.", GPU_HOURS, _ALLOCATED_HOURS),
        stat(
            "Idle GPU hours",
            f"What no pod requested {_HOURS_WORDS}.",
            GPU_HOURS,
            f"{_TOTAL_HOURS} - {_ALLOCATED_HOURS}",
        ),
        stat(
            "Wasted GPU hours",
            "Allocated hours, without the share of time in which programs ran on the GPUs of the node.",
            GPU_HOURS,
            f"sum({_NODE_WASTED})",
        ),
        stat("Cost of allocated GPUs", _PRICE_WORDS, MONEY, f"sum({_NAMESPACE_HOURS} * {price})"),
        stat("Cost of all GPUs", _PRICE_WORDS, MONEY, f"sum({_NODE_TOTAL} * {price})"),
    ]


def _build_charts(price: str) -> list[Panel]:
    """Return the panels by namespace, by time and by node."""
    return [
        bars(
            "Allocated GPU hours by namespace",
            f"What the pods of a namespace requested {_HOURS_WORDS}.",
            GPU_HOURS,
            Query(f"topk(20, sum by (namespace) ({_NAMESPACE_HOURS}))", _BY_NAMESPACE),
        ),
        bars(
            "Cost by namespace",
            f"Allocated hours by their price. {_PRICE_WORDS}",
            MONEY,
            Query(f"topk(20, sum by (namespace) ({_NAMESPACE_HOURS} * {price}))", _BY_NAMESPACE),
        ),
        lines(
            "Allocated and existing GPUs",
            "GPUs that exporters report, and those that pods on nodes request. What lies between them is idle.",
            COUNT,
            Query(f"count({_GPUS})", "existing"),
            Query(f"sum({_ALLOCATED}) / $units", "allocated"),
        ),
        lines(
            "Allocated GPUs by namespace",
            "GPUs that the pods of a namespace request.",
            COUNT,
            Query(f"sum by (namespace) ({_ALLOCATED}) / $units", _BY_NAMESPACE),
            stacked=True,
        ),
        table(
            "Nodes",
            "GPU hours of each node in the shown time, and their cost.",
            Query(f"sum by (node) ({_NODE_TOTAL})", "GPU hours", GPU_HOURS),
            Query(f"sum by (node) ({_NODE_HOURS})", "Allocated GPU hours", GPU_HOURS),
            Query(f"sum by (node) ({_NODE_WASTED})", "Wasted GPU hours", GPU_HOURS),
            Query(f"sum by (node) ({_NODE_TOTAL} * {price})", "Cost", MONEY),
        ),
    ]
