# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The dashboard of health."""

from __future__ import annotations

from .rows import (
    BY_NODE,
    BY_NODE_AND_GPU,
    CELSIUS,
    COUNT,
    GPU,
    GPUS,
    MARGIN,
    MARGIN_WORDS,
    NODE,
    NODES,
    PRESENT,
    Dashboard,
    Query,
    bars,
    count_gpus,
    lines,
    stat,
    table,
    timeline,
)

_ACTION = f"gpu:recovery_action{{{NODE}}}"
_XID = f"gpu:xid:recent{{{NODE}}}"
_REMAP_FAILED = f"gpu:row_remap_failed{{{NODE}}}"
_REMAP_PENDING = f"gpu:row_remap_pending{{{NODE}}}"
_ECC = f"gpu:ecc_uncorrected:since_load{{{NODE}}}"
_COUNT = f"count by (node) ({GPUS})"
_THROTTLED = f"gpu:throttled{{{NODE}}}"

HEALTH = Dashboard(
    "health",
    "GPU health",
    "GPUs that need attention. The alerts read the same series.",
    [NODES],
    [
        stat(
            "Recovery action",
            "GPUs for which the driver itself requires a reset, a reboot or a drain.",
            COUNT,
            count_gpus(f"{_ACTION} > 0"),
            "findings",
        ),
        stat(
            "Recent Xid",
            "GPUs with an Xid, an error that the driver has logged, in the last five minutes.",
            COUNT,
            count_gpus(f"{_XID} > 0"),
            "findings",
        ),
        stat(
            "Row remap failed",
            "GPUs with a defective row of memory that could not be replaced: replace the card.",
            COUNT,
            count_gpus(f"{_REMAP_FAILED} > 0"),
            "findings",
        ),
        stat(
            "Row remap pending",
            "GPUs that replace a defective row of memory at their next reset.",
            COUNT,
            count_gpus(f"{_REMAP_PENDING} > 0"),
            "waiting",
        ),
        stat(
            "ECC errors",
            "GPUs with an uncorrected memory error since the driver was loaded.",
            COUNT,
            count_gpus(f"{_ECC} > 0"),
            "findings",
        ),
        stat(
            "Throttled",
            "GPUs whose clocks the hardware lowers, for heat or for the power supply.",
            COUNT,
            count_gpus(f"{_THROTTLED} > 0"),
            "waiting",
        ),
        table(
            "GPUs that are gone",
            "GPUs that exporters reported in the last day and do not report now. Check the node first, then its exporter, then the GPU.",
            Query(f"max by ({GPU}, model) (last_over_time({PRESENT}[1d])) unless on ({GPU}) gpu:present"),
            width=12,
        ),
        table(
            "Recent Xids",
            "What the driver has logged in the last five minutes. The runbook has the remedy of each Xid.",
            Query(f"max by ({GPU}, xid) ({_XID}) > 0"),
            width=12,
        ),
        table(
            "GPUs with an error",
            "A row for each GPU with a recovery action, a memory error, or a temperature margin below 5 degrees.",
            Query(f"max by ({GPU}) ({_ACTION}) > 0", "Recovery action", COUNT, "recovery"),
            Query(f"max by ({GPU}) ({_REMAP_FAILED}) > 0", "Row remap failed", COUNT, "flag"),
            Query(f"max by ({GPU}) ({_REMAP_PENDING}) > 0", "Row remap pending", COUNT, "flag"),
            Query(f"max by ({GPU}) ({_ECC}) > 0", "ECC errors", COUNT, "findings"),
            Query(f"min by ({GPU}) ({MARGIN}) < 5", "Temperature margin", CELSIUS, "margin"),
        ),
        timeline(
            "Throttled GPUs",
            "When the hardware lowered the clocks of a GPU, and why. Other GPUs have no line.",
            Query(f"max by ({GPU}, why) ({_THROTTLED}) > 0", f"{BY_NODE_AND_GPU} ${{__field.labels.why}}"),
            "throttled",
        ),
        bars(
            "Hottest GPUs",
            f"The ten GPUs with the lowest temperature margin. {MARGIN_WORDS}",
            CELSIUS,
            Query(f"bottomk(10, min by ({GPU}) ({MARGIN}))", BY_NODE_AND_GPU),
            state="margin",
        ),
        lines(
            "Nodes whose number of GPUs changed",
            "GPUs that exporters report, of nodes on which the number changed in the shown time.",
            COUNT,
            Query(f"{_COUNT} and on (node) changes({_COUNT}[$__range:5m]) > 0", BY_NODE),
        ),
        lines(
            "PCIe link width",
            "Lanes of the PCIe link that work, of GPUs with fewer than their slot has: check the riser and the seating.",
            "percentunit",
            Query(f"min by ({GPU}) (gpu:pcie_link_width:ratio{{{NODE}}}) < 1", BY_NODE_AND_GPU),
        ),
    ],
)
