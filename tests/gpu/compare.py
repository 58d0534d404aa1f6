# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvml_facts gathers beside what ``nvidia-smi -q -x`` tells: ``compare.py [FILE OF nvidia-smi -q -x]``.

Prints every field of every GPU that is told otherwise, and counts. Values that change by themselves may differ somewhat.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Callable, NamedTuple, Sequence
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
MIB = 1024 * 1024


class Field(NamedTuple):
    """Where a fact is, where nvidia-smi has it (the first of *places* that it has), how it is read, and how far they may differ."""

    fact: str
    places: tuple[str, ...]
    read: Callable[[str], Any]
    tolerance: float = 0.0


def words(text: str) -> str:
    """The text as it is."""
    return text


def number(text: str) -> float:
    """The number before a unit: ``71.53 W``, ``16x``."""
    found = re.match(r"-?[\d.]+", text)
    if found is None:
        raise ValueError(text)
    return float(found.group())


def mebibytes(text: str) -> float:
    """Bytes of ``81559 MiB``."""
    return number(text) * MIB


def lower(text: str) -> str:
    """``Exclusive_Process`` as facts write it, ``enabled`` for ``Enabled``."""
    return text.strip().lower().replace(" ", "_").replace("-", "_")


def address(text: str) -> str:
    """``00000000:41:00.0`` as Linux writes it."""
    return text.lower()[-12:]


def device(text: str) -> str:
    """The device of ``20B010DE``, behind which is the vendor."""
    return text.lower().removeprefix("0x")[:4]


def truth(text: str) -> bool:
    """Yes or no."""
    return lower(text) in ("yes", "true", "1")


#: Of one GPU. What moves by itself while both ask may differ: memory in use, temperature, power, use, clocks.
FIELDS: Sequence[Field] = (
    Field("uuid", ("uuid",), words),
    Field("name", ("product_name",), words),
    Field("pci_address", ("pci/pci_bus_id",), address),
    Field("pci_device_id", ("pci/pci_device_id",), device),
    Field("minor_number", ("minor_number",), number),
    Field("brand", ("product_brand",), lower),
    Field("architecture", ("product_architecture",), lower),
    Field("serial", ("serial",), words),
    Field("board_part_number", ("board_part_number",), words),
    Field("vbios_version", ("vbios_version",), words),
    Field("persistence_mode", ("persistence_mode",), lower),
    Field("compute_mode", ("compute_mode",), lower),
    Field("virtualization_mode", ("gpu_virtualization_mode/virtualization_mode",), lower),
    Field("mig_mode", ("mig_mode/current_mig",), lower),
    Field("mig_mode_pending", ("mig_mode/pending_mig",), lower),
    Field("memory_total_bytes", ("fb_memory_usage/total",), mebibytes),
    Field("memory_used_bytes", ("fb_memory_usage/used",), mebibytes, 256 * MIB),
    Field("memory_free_bytes", ("fb_memory_usage/free",), mebibytes, 256 * MIB),
    Field("bar1.total_bytes", ("bar1_memory_usage/total",), mebibytes),
    Field("temperature_celsius", ("temperature/gpu_temp",), number, 5),
    Field(
        "power_draw_watts",
        ("gpu_power_readings/instant_power_draw", "gpu_power_readings/power_draw", "power_readings/power_draw"),
        number,
        60,
    ),
    Field(
        "power.limit_enforced_watts",
        ("gpu_power_readings/current_power_limit", "power_readings/enforced_power_limit"),
        number,
        0.01,
    ),
    Field(
        "power.limit_watts", ("gpu_power_readings/requested_power_limit", "power_readings/power_limit"), number, 0.01
    ),
    Field(
        "power.limit_default_watts",
        ("gpu_power_readings/default_power_limit", "power_readings/default_power_limit"),
        number,
        0.01,
    ),
    Field(
        "power.limit_min_watts", ("gpu_power_readings/min_power_limit", "power_readings/min_power_limit"), number, 0.01
    ),
    Field(
        "power.limit_max_watts", ("gpu_power_readings/max_power_limit", "power_readings/max_power_limit"), number, 0.01
    ),
    Field("utilization_gpu_percent", ("utilization/gpu_util",), number, 100),
    Field("utilization_memory_percent", ("utilization/memory_util",), number, 100),
    Field("clocks.graphics_mhz", ("clocks/graphics_clock",), number, 2000),
    Field("clocks.graphics_max_mhz", ("max_clocks/graphics_clock",), number),
    Field("clocks.sm_max_mhz", ("max_clocks/sm_clock",), number),
    Field("clocks.memory_max_mhz", ("max_clocks/mem_clock",), number),
    Field("clocks.video_max_mhz", ("max_clocks/video_clock",), number),
    Field("pcie.generation_max", ("pci/pci_gpu_link_info/pcie_gen/max_link_gen",), number),
    Field("pcie.generation", ("pci/pci_gpu_link_info/pcie_gen/current_link_gen",), number, 5),
    Field("pcie.width_max", ("pci/pci_gpu_link_info/link_widths/max_link_width",), number),
    Field("pcie.width", ("pci/pci_gpu_link_info/link_widths/current_link_width",), number),
    Field("pcie.replays", ("pci/replay_counter",), number),
    Field("ecc.mode", ("ecc_mode/current_ecc",), lower),
    Field("ecc.mode_pending", ("ecc_mode/pending_ecc",), lower),
    Field("row_remapping.corrected", ("remapped_rows/remapped_row_corr",), number),
    Field("row_remapping.uncorrected", ("remapped_rows/remapped_row_unc",), number),
    Field("row_remapping.pending", ("remapped_rows/remapped_row_pending",), truth),
    Field("row_remapping.failed", ("remapped_rows/remapped_row_failure",), truth),
    Field("retired_pages.single_bit", ("retired_pages/multiple_single_bit_retirement/retired_count",), number),
    Field("retired_pages.double_bit", ("retired_pages/double_bit_retirement/retired_count",), number),
    Field("fabric.state", ("fabric/state",), lower),
)
UNKNOWN = ("n/a", "", "[n/a]", "unknown_error", "not_supported")


def told(gpu: ElementTree.Element, field: Field) -> Any:
    """What nvidia-smi says; None where it says nothing."""
    for place in field.places:
        text = gpu.findtext(place)
        if text is not None and lower(text) not in UNKNOWN:
            return field.read(text.strip())
    return None


def gathered(facts: dict[str, Any], field: Field) -> Any:
    """The fact, or None."""
    value: Any = facts
    for name in field.fact.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def agree(one: Any, other: Any, tolerance: float) -> bool:
    """Whether two values are the same, or near enough if they are numbers."""
    if isinstance(one, (int, float)) and isinstance(other, (int, float)) and not isinstance(one, bool):
        return abs(one - other) <= tolerance
    return bool(one == other)


def compare(facts: dict[str, Any], log: ElementTree.Element) -> tuple[list[str], int, int]:
    """(differences, how many fields agree, how many nvidia-smi does not know); what it alone knows is a difference."""
    different: list[str] = []
    same = open_ = 0
    gpus = {address(gpu.get("id", "")): gpu for gpu in log.findall("gpu")}
    places = {gpu["pci_address"] for gpu in facts["gpus"]}
    different += [f"GPU {place} is known to one side alone" for place in sorted(places ^ set(gpus))]
    for name, text in (
        ("driver_version", log.findtext("driver_version")),
        ("cuda_driver_version", log.findtext("cuda_version")),
    ):
        if text and facts[name] != text:
            different.append(f"{name}: {facts[name]} here, {text} there")
    for gpu in facts["gpus"]:
        for field in FIELDS if gpu["pci_address"] in gpus else ():
            here, there = gathered(gpu, field), told(gpus[gpu["pci_address"]], field)
            if there is None:
                open_ += 1
            elif here is None:
                different.append(f"GPU {gpu['index']} {field.fact}: nothing here, {there} there")
            elif agree(here, there, field.tolerance):
                same += 1
            else:
                different.append(f"GPU {gpu['index']} {field.fact}: {here} here, {there} there")
    return different, same, open_


def collection() -> Any:
    """The module's own code, importable under the collection's name from wherever the checkout lies."""
    folder = Path(tempfile.mkdtemp())
    place = folder / "ansible_collections" / "gpu"
    place.mkdir(parents=True)
    (folder / "ansible_collections" / "__init__.py").touch()
    os.symlink(ROOT, place / "kubernetes")
    sys.path.insert(0, str(folder))
    from ansible_collections.gpu.kubernetes.plugins.module_utils._nvml import collect

    return collect


def main(arguments: list[str]) -> int:
    """0 if all that both know is the same."""
    collect = collection()
    facts = collect.gather(collect.Options(subset=collect.SUBSETS, timeout=60.0)).as_dict()
    if arguments:
        text = Path(arguments[0]).read_text(encoding="utf-8")
    else:
        text = subprocess.run(["nvidia-smi", "-q", "-x"], check=True, stdout=subprocess.PIPE, text=True).stdout
    different, same, open_ = compare(facts, ElementTree.fromstring(text))  # noqa: S314 - nvidia-smi's own
    print("\n".join(different), end="\n" if different else "")
    print(
        f"{len(facts['gpus'])} GPUs, source {facts['source']}: {same} fields agree, {len(different)} differ, {open_} are not known to nvidia-smi"
    )
    return int(bool(different) or not same)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
