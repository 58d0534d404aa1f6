# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dashboards of the fleet and of one node."""

from __future__ import annotations

from .rows import (
    ANY_FINDING,
    BY_GPU,
    BY_NODE,
    CELSIUS,
    COUNT,
    FINDING_WORDS,
    GPU,
    GPUS,
    MARGIN,
    MARGIN_WORDS,
    MEMORY,
    MEMORY_WORDS,
    NODE,
    NODES,
    ONE,
    PRESENT,
    RATIO,
    UTILIZATION,
    UTILIZATION_WORDS,
    WATTS,
    Dashboard,
    Query,
    Variable,
    bars,
    count_gpus,
    lines,
    or_zero,
    stat,
    table,
    timeline,
)

_BY_MODEL = "${__field.labels.model}"
_FINDINGS_OF_NODE = f"count by (node) (max by ({GPU}) ({ANY_FINDING})) or count by (node) ({PRESENT}) * 0"

FLEET = Dashboard(
    "fleet",
    "GPU fleet",
    "All GPU nodes: how many GPUs, of which models, how busy, and which need attention.",
    [NODES],
    [
        stat("Nodes", "Nodes whose exporter reports a GPU.", COUNT, f"count(count by (node) ({PRESENT}))"),
        stat("GPUs", "GPUs that the exporters report.", COUNT, f"count({GPUS})"),
        stat("Utilization", f"Average of all GPUs. {UTILIZATION_WORDS}", RATIO, f"avg({UTILIZATION})"),
        stat("Memory used", f"Average of all GPUs. {MEMORY_WORDS}", RATIO, f"avg({MEMORY})"),
        stat("Idle GPUs", "GPUs with a utilization below 1 %.", COUNT, count_gpus(f"{UTILIZATION} < 0.01")),
        stat("GPUs with a finding", FINDING_WORDS, COUNT, count_gpus(ANY_FINDING), "findings"),
        lines(
            "Utilization by model",
            f"Average of the GPUs of a model. {UTILIZATION_WORDS}",
            RATIO,
            Query(f"avg by (model) ({UTILIZATION} * on ({GPU}) group_left (model) {ONE})", _BY_MODEL),
        ),
        lines(
            "GPUs by model",
            "GPUs that the exporters report. A step down is a GPU or a node that is gone.",
            COUNT,
            Query(f"count by (model) ({ONE})", _BY_MODEL),
            stacked=True,
        ),
        bars(
            "Busiest nodes",
            f"The ten nodes with the highest average of their GPUs. {UTILIZATION_WORDS}",
            RATIO,
            Query(f"topk(10, avg by (node) ({UTILIZATION}))", BY_NODE),
            width=8,
        ),
        bars(
            "Idlest nodes",
            f"The ten nodes with the lowest average of their GPUs. {UTILIZATION_WORDS}",
            RATIO,
            Query(f"bottomk(10, avg by (node) ({UTILIZATION}))", BY_NODE),
            width=8,
        ),
        bars(
            "Hottest nodes",
            f"The ten nodes with the lowest temperature margin of a GPU. {MARGIN_WORDS}",
            CELSIUS,
            Query(f"bottomk(10, min by (node) ({MARGIN}))", BY_NODE),
            state="margin",
            width=8,
        ),
        table(
            "Nodes and models",
            "A row for each node and model. The number of expected GPUs is the inventory's; exporters report the rest.",
            Query(f"count by (node, model, gpu_expected) ({ONE})", "GPUs"),
            Query(f"avg by (node) ({UTILIZATION})", "Utilization", RATIO),
            Query(f"avg by (node) ({MEMORY})", "Memory used", RATIO),
            Query(f"min by (node) ({MARGIN})", "Temperature margin", CELSIUS, "margin"),
            Query(_FINDINGS_OF_NODE, "GPUs with a finding", COUNT, "findings"),
        ),
    ],
)

_PODS = f"count(count by (namespace, pod) (gpu:requested:by_pod{{{NODE}}}))"

ONE_NODE = Dashboard(
    "node",
    "GPU node",
    "One node: each of its GPUs, and the pods that request them.",
    [Variable("node", "Node", "gpu:present", multi=False)],
    [
        stat("GPUs", "GPUs that the node's exporter reports.", COUNT, f"count({GPUS})"),
        stat("Utilization", f"Average of the node's GPUs. {UTILIZATION_WORDS}", RATIO, f"avg({UTILIZATION})"),
        stat("Memory used", f"Average of the node's GPUs. {MEMORY_WORDS}", RATIO, f"avg({MEMORY})"),
        stat("Temperature margin", f"Of the hottest GPU. {MARGIN_WORDS}", CELSIUS, f"min({MARGIN})", "margin"),
        stat("Pods", "Pods on this node that request a GPU or a part of one.", COUNT, or_zero(_PODS)),
        stat("GPUs with a finding", FINDING_WORDS, COUNT, count_gpus(ANY_FINDING), "findings"),
        lines("Utilization of each GPU", UTILIZATION_WORDS, RATIO, Query(f"max by ({GPU}) ({UTILIZATION})", BY_GPU)),
        lines("Memory used of each GPU", MEMORY_WORDS, RATIO, Query(f"max by ({GPU}) ({MEMORY})", BY_GPU)),
        lines(
            "Temperature margin of each GPU",
            f"{MARGIN_WORDS} The lines are at 5 and at 15 degrees.",
            CELSIUS,
            Query(f"min by ({GPU}) ({MARGIN})", BY_GPU),
            state="margin",
        ),
        lines(
            "Temperature of each GPU",
            "Of the GPU, not of its memory. Which temperature is too high depends on the model; see the margin.",
            CELSIUS,
            Query(f"max by ({GPU}) (gpu:temperature:celsius{{{NODE}}})", BY_GPU),
        ),
        lines(
            "Power of each GPU",
            "The power that each GPU draws; the stack is that of the node's GPUs.",
            WATTS,
            Query(f"max by ({GPU}) (gpu:power:watts{{{NODE}}})", BY_GPU),
            stacked=True,
        ),
        timeline(
            "Throttled GPUs",
            "Whether the hardware lowers the clocks: for heat, or for a power supply that is too weak.",
            Query(f"max by ({GPU}, why) (gpu:throttled{{{NODE}}})", f"{BY_GPU} ${{__field.labels.why}}"),
            "throttled",
        ),
        table(
            "GPUs of the node",
            "A row for each GPU.",
            Query(f"max by ({GPU}, model) ({ONE})"),
            Query(f"max by ({GPU}) ({UTILIZATION})", "Utilization", RATIO),
            Query(f"max by ({GPU}) ({MEMORY})", "Memory used", RATIO),
            Query(f"min by ({GPU}) ({MARGIN})", "Temperature margin", CELSIUS, "margin"),
            Query(f"max by ({GPU}) (gpu:recovery_action{{{NODE}}})", "Recovery action", COUNT, "recovery"),
            Query(f"max by ({GPU}) (gpu:row_remap_failed{{{NODE}}})", "Row remap failed", COUNT, "flag"),
            Query(f"max by ({GPU}) (gpu:row_remap_pending{{{NODE}}})", "Row remap pending", COUNT, "flag"),
            Query(f"max by ({GPU}) (gpu:ecc_uncorrected:since_load{{{NODE}}})", "ECC errors", COUNT, "findings"),
        ),
        table(
            "Pods of the node",
            "What each pod requests, in units of the resource: GPUs, replicas, slices or memory.",
            Query(f"max by (namespace, pod, resource) (gpu:requested:by_pod{{{NODE}}})", "Units"),
        ),
    ],
)
