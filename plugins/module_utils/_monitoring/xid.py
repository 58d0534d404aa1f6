# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an alert says about an Xid; its numbers are those of ``_checks.xids``."""

from __future__ import annotations

from typing import NamedTuple

from .._checks import xids


class Bucket(NamedTuple):
    """Xids with the same remedy, and the severity of their alert; empty if there is no alert."""

    name: str
    severity: str
    cause: str
    remedy: str

    @property
    def xids(self) -> tuple[int, ...]:
        """The numbers, in order."""
        return tuple(sorted(xids.BUCKETS[self.name].xids))


BUCKETS: tuple[Bucket, ...] = (
    Bucket(
        "reset_gpu",
        "critical",
        "The GPU has an error from which only a reset recovers it",
        "Drain the node, reset the GPU with nvidia-smi --gpu-reset, with all GPUs of its NVLink group, and restart the device plugin's pod on the node."
        " A GPU that needs this twice in a week is to be replaced.",
    ),
    Bucket(
        "reboot",
        "critical",
        "The driver does not reach the GPU any more",
        "Cordon and drain the node, and reboot it; if the GPU stays away, switch the power off and on, then check its seating and its power cable.",
    ),
    Bucket(
        "inspect",
        "critical",
        "The memory, the power supply or the NVLink of the GPU has a fault",
        "Drain the node, check the power cable, the seating and the NVLink bridges, and run the manufacturer's field diagnostics.",
    ),
    Bucket(
        "reset_when_idle",
        "warning",
        "The GPU has isolated a memory error, and replaces the row at its next reset",
        "Drain the node when that is convenient, and reset the GPU with nvidia-smi --gpu-reset.",
    ),
    Bucket(
        "unknown",
        "warning",
        "The driver has reported an Xid for which the table of this release has no remedy",
        "Read the Xid in NVIDIA's catalogue and the kernel log of the node.",
    ),
    Bucket("software", "", "Driver or fabric manager", "Update the driver, and read the other Xids."),
    Bucket("restart_application", "", "A fault of the program", "Restart the pod."),
    Bucket("ignore", "", "A notice of the driver", "None."),
)


def is_rest(bucket: Bucket) -> bool:
    """Whether every number that no other bucket has belongs to the bucket, also those of later drivers."""
    return xids.BUCKETS[bucket.name] is xids.BUCKETS["unknown"]


def build_selector(bucket: Bucket) -> str:
    """Return the matcher of the numbers for the label ``xid`` of PromQL."""
    known = sorted(number for each in BUCKETS if not is_rest(each) for number in each.xids)
    operator, numbers = ("!~", known) if is_rest(bucket) else ("=~", bucket.xids)
    return f'xid{operator}"{"|".join(map(str, numbers))}"'
