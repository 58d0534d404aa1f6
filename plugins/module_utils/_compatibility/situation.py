# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The situation that is checked, its findings, and functions that the checks share."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any, Iterable, Mapping, NamedTuple

from .._image import split_tag
from . import versions
from .gpus import OPEN, PROPRIETARY, Gpu, find_branches, identify_gpu
from .tables import Tables
from .versions import CompatibilityError, Version

STOP, WARN = "stop", "warn"


class Finding(NamedTuple):
    """One sentence with cause and remedy. *level* is STOP for what is known not to work, else WARN."""

    level: str
    topic: str
    message: str
    source: str | None = None


@dataclasses.dataclass(frozen=True)
class Situation:
    """A host, observed or planned. ``None`` is a missing or unknown value.

    *driver* is a version or a branch, which stands for its newest version. *running* is the driver that works on the host with this
    kernel and these kernel modules. *plugin* is the device plugin, as the tag of its image. *today* is a month such as ``2026-05``.
    """

    today: str
    driver: str | None = None
    flavor: str | None = None
    cuda: str | None = None
    kernel: str | None = None
    toolkit: str | None = None
    running: str | None = None
    containerd: str | None = None
    kubernetes: str | None = None
    plugin: str | None = None
    kubelet_cgroup_driver: str | None = None
    runtime_cgroup_driver: str | None = None
    gpus: tuple[Gpu, ...] = ()

    @property
    def version(self) -> Version | None:
        """The driver's version as numbers."""
        return None if self.driver is None else versions.parse_driver(self.driver)

    @property
    def is_running(self) -> bool:
        """Whether the running driver is this driver, or one of this branch."""
        if self.running is None or self.driver is None:
            return False
        requested, running = versions.parse_driver(self.driver), versions.parse_driver(self.running)
        return requested == running or (requested[-1] == math.inf and requested[:-1] == running[: len(requested) - 1])

    def list_kinds(self) -> list[Gpu]:
        """The GPUs, one of each kind."""
        return list({(gpu.label, gpu.device_id, gpu.capability): gpu for gpu in self.gpus}.values())


def read_situation(given: Mapping[str, Any], tables: Tables, today: str) -> Situation:
    """The situation from plain values; an empty text counts as missing. Raises CompatibilityError for invalid values."""
    names = {field.name for field in dataclasses.fields(Situation)} - {"today"}
    unknown = sorted(str(name) for name in given if name not in names)
    if unknown:
        raise CompatibilityError(f"the situation has {', '.join(unknown)}; it takes {', '.join(sorted(names))}")
    if not re.fullmatch(r"\d{4}-\d{2}", today):
        raise CompatibilityError(f"{today!r} is not a month; write it as 2026-05")
    texts = {name: str(given[name]) for name in names - {"gpus"} if given.get(name) not in (None, "")}
    if texts.get("flavor", OPEN) not in (OPEN, PROPRIETARY):
        raise CompatibilityError(f"flavor is {texts['flavor']!r}; choose one of {OPEN}, {PROPRIETARY}")
    plugin, _digest = split_tag(texts.pop("plugin", ""))
    if re.fullmatch(r"v?\d+(\.\d+)+([-+~_].*)?", plugin):  # not a digest, or a name without a version
        texts["plugin"] = plugin
    gpus = given.get("gpus") or []
    if not isinstance(gpus, (list, tuple)) or not all(isinstance(gpu, Mapping) for gpu in gpus):
        raise CompatibilityError("gpus is not a list of dictionaries; pass those of ansible_facts.nvml")
    return Situation(today=today, gpus=tuple(identify_gpu(gpu, tables) for gpu in gpus), **texts)


def join_choices(items: Iterable[Any]) -> str:
    """``a``, ``a or b``, ``a, b or c``."""
    texts = [str(item) for item in items]
    return " or ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def list_supported(situation: Situation, tables: Tables) -> list[int]:
    """The driver branches that NVIDIA supports and that support all GPUs, the oldest first."""
    bounds = find_branches(situation.gpus)
    first, last = bounds["first"], bounds["last"]
    return [
        number
        for number in tables.list_supported(situation.today)
        if (first is None or number >= first) and (last is None or number <= last)
    ]
