# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits that NVIDIA's control daemon of MPS sets for each client, and whether it has set them.

Source: cmd/mps-control-daemon of NVIDIA/k8s-device-plugin v0.20; the answers are those of nvidia-cuda-mps-control 535.
"""

from __future__ import annotations

import re
from typing import Any, Iterable, Mapping, NamedTuple

_MIB = 1024 * 1024
# How many KiB the unit of an answer has.
_UNITS = {"K": 1, "M": 1024, "G": 1024**2, "T": 1024**3}
_SIZE = re.compile(r"([0-9]{1,12})([KMGT])B?")
_PERCENTAGE = re.compile(r"[0-9]{1,3}(\.[0-9]+)?")
# An answer is quoted up to this length.
_QUOTED = 40


class Limits(NamedTuple):
    """``percentage`` of a GPU's threads, and ``memory`` in MiB by the index of the GPU; or the answers of the daemon about them."""

    percentage: Any
    memory: dict[int, Any]


def compute_limits(gpus: Iterable[Mapping[str, Any]], replicas: int) -> Limits:
    """Return the limits with *replicas* clients for each of the GPUs, which have ``index`` and ``memory_total_bytes``."""
    memory = {gpu["index"]: gpu["memory_total_bytes"] // replicas // _MIB for gpu in gpus}
    return Limits(100 // replicas, memory)


def find_difference(desired: Limits, answers: Limits) -> str:
    """Return a clause about the first limit that the daemon does not have; empty if it has all."""
    if not _is_percentage(str(answers.percentage), desired.percentage):
        return f"a client gets {_quote(answers.percentage)} per cent of the threads and not {desired.percentage}"
    for index, mebibytes in desired.memory.items():
        answer = answers.memory.get(index, "")
        if not _is_size(str(answer), mebibytes):
            return f"a client gets {_quote(answer)} of the memory of GPU {index} and not {mebibytes}M"
    return ""


def _is_percentage(answer: str, desired: int) -> bool:
    return bool(_PERCENTAGE.fullmatch(answer)) and float(answer) == desired


def _is_size(answer: str, mebibytes: int) -> bool:
    """Whether the answer is that size: the program rounds down to whole units, such as 10110 MiB to ``9G``."""
    match = _SIZE.fullmatch(answer)
    return match is not None and int(match.group(1)) == mebibytes * 1024 // _UNITS[match.group(2)]


def _quote(answer: Any) -> str:
    """Return the answer for a sentence. Without a limit, the daemon returns nothing."""
    return re.sub(r"[^ -~]", "?", str(answer))[:_QUOTED] or "all"
