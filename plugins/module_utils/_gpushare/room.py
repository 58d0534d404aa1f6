# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is free on the GPUs of a node, and where gpushare's extender puts a pod.

A row is the part of an allocation that is about one node, with its pods. Amounts are whole units of ``aliyun.com/gpu-mem``. Pods
are named by namespace and name.
"""

from __future__ import annotations

from typing import Any, Collection, Mapping, Sequence

from .allocation import compute_percent

Row = Mapping[str, Any]


def free_by_gpu(row: Row, count: int, gone: Collection[str] = ()) -> dict[int, int]:
    """Return what is free on each GPU of the node, as if the pods that are *gone* did not count."""
    free = {gpu["index"]: gpu["total"] - gpu["allocated"] for gpu in row["gpus"] if gpu["index"] in range(count)}
    for pod in row["pods"]:
        if full_name(pod) in gone:
            for gpu in pod["gpus"]:
                if gpu["index"] in free:
                    free[gpu["index"]] += gpu["allocated"]
    return free


def full_name(pod: Mapping[str, Any]) -> str:
    """Return namespace and name of a pod in a row."""
    return f"{pod['namespace']}/{pod['name']}"


def best_fit(free: Mapping[int, int], amount: int) -> int | None:
    """Return the GPU that gpushare's extender takes: of those with enough the one with least free, the lowest index among equals."""
    fitting = [(left, index) for index, left in free.items() if left >= amount]
    return min(fitting)[1] if fitting else None


def landing(free: Mapping[int, int], amounts: Sequence[int]) -> list[int | None]:
    """Return the GPU for each of the amounts, one after the other."""
    left, found = dict(free), []
    for amount in amounts:
        index = best_fit(left, amount)
        found.append(index)
        if index is not None:
            left[index] -= amount
    return found


def has_room(row: Row, free: Mapping[int, int], amount: int) -> bool:
    """Say whether one GPU has that much free, and the node as a whole too: what is on no known GPU counts for kube-scheduler."""
    return row["total"] - row["allocated"] >= amount and max(free.values(), default=0) >= amount


def percent_of(row: Row, index: int | None) -> int:
    """Return how much of a GPU is allocated, in whole percents; 0 of one that is not there."""
    return next((compute_percent(gpu["allocated"], gpu["total"]) for gpu in row["gpus"] if gpu["index"] == index), 0)


def allocated_to(row: Row, pods: Collection[str], index: int | None) -> int:
    """Return how much of a GPU these pods have."""
    having = [gpu for pod in row["pods"] if full_name(pod) in pods for gpu in pod["gpus"]]
    return sum(gpu["allocated"] for gpu in having if gpu["index"] == index)
