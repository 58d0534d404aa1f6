# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node with its pods and GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Sequence

from .extract import NodeShare, PodShare


@dataclass(frozen=True)
class Device:
    """A GPU of a node. A pod's annotation can name one beyond the node's number."""

    index: int
    total: int
    allocated: int


class Shares(NamedTuple):
    """A node with its pods and GPUs."""

    node: NodeShare
    pods: Sequence[PodShare]
    devices: tuple[Device, ...]
    pending: int
