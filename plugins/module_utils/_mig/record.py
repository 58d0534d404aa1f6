# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""States of GPUs in a JSON file, by UUID: as first met, for the undo, and as desired, for each boot.

By UUID, because the indices of the other GPUs change when one falls off the bus.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Mapping, Sequence

from .._config import files
from .._nvml.partitions import Gpu
from .layout import Desired, LayoutError, Slot

VERSION = 1
States = Mapping[str, Desired]


def encode(gpus: Sequence[Gpu], states: Callable[[Gpu], Desired | None], **more: Any) -> bytes:
    """The file with the states of the GPUs; those without one are left out."""
    rows = [(gpu, states(gpu)) for gpu in gpus]
    content = {
        "version": VERSION,
        "gpus": [
            {
                "uuid": gpu.uuid,
                "pci_address": gpu.pci_address,
                "mode": state.mode,
                "instances": [{"profile": slot.profile, "compute": list(slot.compute)} for slot in state.slots],
            }
            for gpu, state in rows
            if state is not None
        ],
        **more,
    }
    return json.dumps(content, indent=2, sort_keys=True).encode("ascii") + b"\n"


def read(path: str) -> dict[str, Any] | None:
    """The content of the file, with the states by UUID in ``states``; None without a file. Raises LayoutError or FilesError."""
    data = files.read_bytes(path)
    if data is None:
        return None
    try:
        content = json.loads(data.decode("utf-8"))
        if content["version"] != VERSION:
            raise LayoutError(f"{path} is of version {content['version']}; run the collection that wrote it")
        states = {str(row["uuid"]): _decode(row) for row in content["gpus"]}
    except (KeyError, TypeError, ValueError) as error:
        raise LayoutError(f"{path}, the MIG layout of the GPUs, is damaged ({error}); restore or remove it") from None
    return {**content, "states": states}


def _decode(row: Mapping[str, Any]) -> Desired:
    slots = (Slot(str(each["profile"]), tuple(int(size) for size in each["compute"])) for each in row["instances"])
    return Desired(bool(row["mode"]), tuple(slots))


def select(states: States, gpus: Sequence[Gpu]) -> dict[int, Desired]:
    """The states by the index that each GPU has now. GPUs without one, and states of GPUs that are gone, are left out."""
    return {gpu.index: states[gpu.uuid] for gpu in gpus if gpu.uuid in states and gpu.mode is not None}
