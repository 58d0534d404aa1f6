# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares a layout with the facts of GPUs, for the plan of a change."""

from __future__ import annotations

from collections import Counter
from typing import Any, Mapping

from .._nvml.partitions import Gpu
from .layout import Desired, LayoutError, count_slots, parse_layout, select

_MODES = {"enabled": True, "disabled": False}


def differs(facts: Mapping[str, Any], layout: Any) -> bool:
    """Return whether the GPUs of ``ansible_facts.nvml`` have other MIG devices than the layout.

    False for a layout or facts that cannot be read: the module mig_layout refuses these.
    """
    gpus, desired = _select(facts, layout)
    return any(
        (desired[gpu["index"]].mode, count_slots(desired[gpu["index"]].slots))
        != (gpu["mig_mode"] == "enabled", count_profiles(gpu))
        for gpu in gpus
        if gpu["index"] in desired
    )


def has_whole(facts: Mapping[str, Any], layout: Any) -> bool:
    """Return whether the layout leaves GPUs of ``ansible_facts.nvml`` without MIG. True for a layout or facts that cannot be read."""
    gpus, desired = _select(facts, layout)
    return not gpus or any(gpu["index"] not in desired or not desired[gpu["index"]].mode for gpu in gpus)


def _select(facts: Mapping[str, Any], layout: Any) -> tuple[list[Mapping[str, Any]], dict[int, Desired]]:
    """Return the working GPUs, and the desired state of those that have MIG by index; both are empty for what cannot be read."""
    gpus = [each for each in facts.get("gpus") or [] if not each.get("lost") and each.get("index") is not None]
    if facts.get("source") != "nvml":
        return [], {}
    try:
        return gpus, select(parse_layout(layout), [_read_gpu(each) for each in gpus])
    except LayoutError:
        return [], {}


def _read_gpu(gpu: Mapping[str, Any]) -> Gpu:
    mode = _MODES.get(str(gpu.get("mig_mode")))
    return Gpu(gpu["index"], str(gpu.get("uuid")), str(gpu.get("pci_address")), name=str(gpu.get("name")), mode=mode)


def count_profiles(gpu: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of MIG devices of a GPU in ``ansible_facts.nvml`` by profile, in the order of the devices."""
    return dict(Counter(str(each.get("name") or "").rpartition(" ")[2] for each in gpu.get("mig_devices") or []))
