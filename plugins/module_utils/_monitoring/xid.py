# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about an Xid, by its number.

Source: NVIDIA's Xid catalogue ("Analyzing Xid Errors with the Xid Catalog"), compared on 2026-11-26. Of numbers that the catalogue has without a
remedy, or not at all, an alert reports the new ones, and the others need none.
"""

from __future__ import annotations

from typing import NamedTuple

#: The highest number that the table knows.
LAST = 172


class Bucket(NamedTuple):
    """Xids with the same remedy, and the severity of their alert; empty if there is no alert."""

    name: str
    xids: tuple[int, ...]
    severity: str
    cause: str
    remedy: str


_RESET = (46, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158)
_INSPECT = (48, 54, 74, 142, *range(144, 151))
_APPLICATION = (
    *(8, 11, 13, 25, 31, 32, 39, 40, 41, 60, 68, 69, 70, 71, 72, 75, 76, 77, 80, 82, 83, 84, 85, 86, 88, 89),
    *(*range(96, 106), *range(126, 136), 139),
)
_IGNORED = (37, 38, 43, 44, 66, 67, 92, 93, 106, 107, 121, 137, 141, 152, 153, 157, 160, 161)
_NEW = tuple(range(162, LAST + 1))

BUCKETS: tuple[Bucket, ...] = (
    Bucket(
        "reset_gpu",
        _RESET,
        "critical",
        "The GPU has an error from which only a reset recovers it",
        "Drain the node, reset the GPU with nvidia-smi --gpu-reset, with all GPUs of its NVLink group, and restart the device plugin's pod on the node."
        " A GPU that needs this twice in a week is to be replaced.",
    ),
    Bucket(
        "reboot",
        (79, 151),
        "critical",
        "The driver does not reach the GPU any more",
        "Cordon and drain the node, and reboot it; if the GPU stays away, switch the power off and on, then check its seating and its power cable.",
    ),
    Bucket(
        "inspect",
        _INSPECT,
        "critical",
        "The memory, the power supply or the NVLink of the GPU has a fault",
        "Drain the node, check the power cable, the seating and the NVLink bridges, and run the manufacturer's field diagnostics.",
    ),
    Bucket(
        "reset_when_idle",
        (63, 94),
        "warning",
        "The GPU has isolated a memory error, and replaces the row at its next reset",
        "Drain the node when that is convenient, and reset the GPU with nvidia-smi --gpu-reset.",
    ),
    Bucket(
        "unknown",
        _NEW,
        "warning",
        "The driver has reported an Xid for which the table of this release has no remedy",
        "Read the Xid in NVIDIA's catalogue and the kernel log of the node.",
    ),
    Bucket(
        "software", (45, 78, 154, 159), "", "Driver or fabric manager", "Update the driver, and read the other Xids."
    ),
    Bucket("restart_application", _APPLICATION, "", "A fault of the program", "Restart the pod."),
    Bucket("ignore", _IGNORED, "", "A notice of the driver", "None."),
)


def bucket_of(xid: int) -> Bucket | None:
    """Return the bucket of the number; None if it has no remedy."""
    return next((bucket for bucket in BUCKETS if xid in bucket.xids), None)


def build_selector(bucket: Bucket) -> str:
    """Return a regular expression of the numbers, in quotes, for a label of PromQL."""
    return f'"{"|".join(map(str, bucket.xids))}"'
