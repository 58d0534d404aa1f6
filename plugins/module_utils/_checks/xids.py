# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's Xids, the error reports of its driver, by what they require.

Source: NVIDIA's catalogue of Xid errors ("Analyzing Xid Errors"), as of 2025-10-29.
"""

from __future__ import annotations

from typing import Mapping, NamedTuple

from .model import FAIL, INFO, WARN

SOURCE = "NVIDIA, Analyzing Xid Errors, 2025-10-29"


class Bucket(NamedTuple):
    """Xids with one remedy. ``verdict`` is how bad they are."""

    verdict: str
    remedy: str
    xids: frozenset[int]


def _list(*parts: int | tuple[int, int]) -> frozenset[int]:
    """The numbers; a pair is a range with both ends."""
    ranges = [(part, part) if isinstance(part, int) else part for part in parts]
    return frozenset(number for first, last in ranges for number in range(first, last + 1))


BUCKETS: Mapping[str, Bucket] = {
    "reset_gpu": Bucket(
        FAIL,
        "drain the pods of this GPU, reset it with nvidia-smi --gpu-reset -i INDEX, and restart the device plugin's pod. Reset all GPUs of an NVLink "
        "group together, and replace a GPU that needs it twice in a week",
        _list(46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158),
    ),
    "reboot": Bucket(
        FAIL,
        "cordon and drain the node, and reboot it; after Xid 79 switch the power off and on",
        _list(79, 151),
    ),
    "inspect": Bucket(
        FAIL,
        "check cables, seating, power and NVLink of the GPU, run the field diagnostics, and ask the vendor's support",
        _list(48, 54, 74, 142, (144, 150)),
    ),
    "reset_when_idle": Bucket(
        WARN,
        "drain the node when that is convenient, and reset the GPU, which then replaces the broken memory row",
        _list(63, 94),
    ),
    "software": Bucket(
        WARN,
        "update the driver; for Xid 154 read the recovery action of the GPU, for Xid 45 alone the log of the fabric manager",
        _list(45, 78, 154, 159),
    ),
    "restart_application": Bucket(
        INFO,
        "restart the program that used the GPU; the same Xid in many programs is a fault of the GPU or the driver",
        _list(
            8,
            11,
            13,
            25,
            31,
            32,
            (39, 41),
            60,
            (68, 72),
            (75, 77),
            80,
            (82, 86),
            88,
            89,
            (96, 105),
            (126, 135),
            139,
        ),
    ),
    "ignore": Bucket(
        INFO,
        "nothing; it is a notice of the driver",
        _list(37, 38, 43, 44, 66, 67, 92, 93, 106, 107, 121, 137, 141, 152, 153, 157, 160, 161),
    ),
    "unknown": Bucket(WARN, "look the number up in NVIDIA's catalogue of Xid errors", _list((162, 172))),
}


def find_bucket(xid: int) -> Bucket:
    """The bucket of an Xid; of a number that the catalogue does not list, ``unknown``."""
    return next((bucket for bucket in BUCKETS.values() if xid in bucket.xids), BUCKETS["unknown"])
