# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host's GPUs by the tables: their architecture, drivers and kernel modules."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterable, Iterator, Mapping, Sequence

from .tables import Row, Tables
from .versions import get_branch, parse_device, parse_version

IMPOSSIBLE, POSSIBLE, REQUIRED = "impossible", "possible", "required"
OPEN, PROPRIETARY = "open", "proprietary"


@dataclasses.dataclass(frozen=True)
class Gpu:
    """One GPU. A value that is in no table is ``None``; *sources* has the source of each other field."""

    label: str
    device_id: str | None = None
    architecture: str | None = None
    capability: str | None = None
    first_driver: str | None = None
    last_driver: int | None = None
    open_modules: str | None = None
    sources: Mapping[str, str] = dataclasses.field(default_factory=dict)

    @property
    def is_unknown(self) -> bool:
        """Whether its device id is in no table."""
        return self.device_id is not None and self.architecture is None


def identify_gpu(gpu: Mapping[str, Any], tables: Tables) -> Gpu:
    """A GPU of ``ansible_facts.nvml``, by its PCI device id, else by the architecture that its driver reports.

    Raises CompatibilityError for an invalid device id.
    """
    given = gpu.get("pci_device_id")
    number = None if given is None else parse_device(given)
    row = next(_find_rows(tables, "devices", number), None)
    architecture = str(row["architecture"] if row else gpu.get("architecture") or "") or None
    about = [entry for entry in tables.get_rows("gpu_driver", "architectures") if entry["architecture"] == architecture]
    if not about:
        architecture, about = None, list(_find_rows(tables, "others", number))
    facts, sources = _merge_rows([*about, *_find_rows(tables, "exceptions", number)])
    return Gpu(
        label=str(gpu.get("name") or "") or f"the GPU with PCI device id {given or 'unknown'}",
        device_id=None if number is None else f"{number:04x}",
        architecture=architecture,
        capability=gpu.get("compute_capability"),
        first_driver=facts.get("first_driver"),
        last_driver=facts.get("last_driver"),
        open_modules=facts.get("open_modules"),
        sources=sources,
    )


def _find_rows(tables: Tables, part: str, number: int | None) -> Iterator[Row]:
    if number is None:
        return
    for row in tables.get_rows("gpu_driver", part):
        if parse_device(row["from"]) <= number <= parse_device(row["to"]):
            yield row


def _merge_rows(rows: Iterable[Row]) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of the rows, and the source of each; later rows take precedence."""
    facts: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for row in rows:
        for name in ("first_driver", "last_driver", "open_modules"):
            if row.get(name) is not None:
                facts[name], sources[name] = row[name], str(row["source"])
    return facts, sources


def choose_open_modules(gpus: Sequence[Gpu]) -> str | None:
    """Whether the GPUs need the open kernel modules, by the rule of NVIDIA's installer for different GPUs in one host.

    Required if one needs them (the driver then ignores those that they do not support), else impossible if they do not support one, else
    possible. ``None`` if nothing is known of any GPU.
    """
    known = {gpu.open_modules for gpu in gpus}
    return next((answer for answer in (REQUIRED, IMPOSSIBLE, POSSIBLE) if answer in known), None)


def choose_modules(gpus: Sequence[Gpu]) -> str | None:
    """The flavour of kernel modules that NVIDIA's installer would choose: open if possible."""
    answer = choose_open_modules(gpus)
    return None if answer is None else PROPRIETARY if answer == IMPOSSIBLE else OPEN


def find_branches(gpus: Sequence[Gpu]) -> dict[str, int | None]:
    """The first and the last driver branch that support all GPUs; ``None`` if no table has a bound."""
    firsts = [get_branch(parse_version(gpu.first_driver)) for gpu in gpus if gpu.first_driver is not None]
    lasts = [int(gpu.last_driver) for gpu in gpus if gpu.last_driver is not None]
    return {"first": max(firsts, default=None), "last": min(lasts, default=None)}
