#!/usr/bin/env python3
# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the facts of nvml_facts and the MIG profiles of mig_layout with what nvidia-smi reports, on a machine with a real NVIDIA GPU.

    tests/gpu/check.py

Requires Python 3.8 or newer and the driver, and nothing else. Prints one line per field, and exits 1 if one differs. No program should use the
GPUs meanwhile: memory in use, temperature, power, utilization and clocks may differ by a part of their range only.
"""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator, NamedTuple, Sequence
from xml.etree import ElementTree

MIB = 1024 * 1024
# Values move between two queries: only a field that differs each time differs.
TRIES = 5
NO_VALUES = (
    "",
    "n/a",
    "not_supported",
    "unknown_error",
    "insufficient_permissions",
    "requested_functionality_has_been_deprecated",
)
NOT_COMPARED = (
    "driver, xid_errors, nvswitches, processes except their pids, clocks.event_reasons, gpu_instances, nvlinks, peers, numa_node, memory_numa_node,"
    " cpu_affinity, fabric except its state"
)


def to_text(text: str) -> str:
    """The value itself."""
    return text


def to_number(text: str) -> float:
    """The number before a unit: 71.53 of ``71.53 W``. Raises ValueError without one."""
    return float(text.split(maxsplit=1)[0].rstrip("x"))


def to_bytes(text: str) -> float:
    """Bytes of ``81559 MiB``, or of that number without the unit."""
    return to_number(text) * MIB


def to_word(text: str) -> str:
    """``exclusive_process`` for ``Exclusive_Process``, ``in_progress`` for ``In Progress``."""
    return text.strip("[]").lower().replace(" ", "_")


def to_bool(text: str) -> bool:
    """Whether the value is yes."""
    return text.lower() in ("yes", "true", "1")


def to_address(text: str) -> str:
    """``0000:41:00.0`` for ``00000000:41:00.0``, as Linux writes it."""
    domain, _colon, rest = text.lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


class Field(NamedTuple):
    """A fact, the name of the value in nvidia-smi, how to read it, and how far both may differ."""

    fact: str
    name: str
    read: Callable[[str], Any] = to_text
    tolerance: float = 0.0


# Of `nvidia-smi --query-gpu`.
QUERY: Sequence[Field] = (
    Field("index", "index", to_number),
    Field("uuid", "uuid"),
    Field("name", "name"),
    Field("pci_device_id", "pci.device_id", lambda text: text[2:6].lower()),
    Field("compute_capability", "compute_cap"),
    Field("serial", "serial"),
    Field("vbios_version", "vbios_version"),
    Field("persistence_mode", "persistence_mode", to_word),
    Field("recovery_action", "gpu_recovery_action", to_word),
    Field("compute_mode", "compute_mode", to_word),
    Field("mig_mode", "mig.mode.current", to_word),
    Field("mig_mode_pending", "mig.mode.pending", to_word),
    Field("memory_total_bytes", "memory.total", to_bytes, MIB - 1),
    Field("memory_used_bytes", "memory.used", to_bytes, 256 * MIB),
    Field("memory_free_bytes", "memory.free", to_bytes, 256 * MIB),
    Field("temperature_celsius", "temperature.gpu", to_number, 5),
    Field("power_draw_watts", "power.draw", to_number, 15),
    Field("power.limit_watts", "power.limit", to_number, 0.01),
    Field("power.limit_enforced_watts", "enforced.power.limit", to_number, 0.01),
    Field("power.limit_default_watts", "power.default_limit", to_number, 0.01),
    Field("power.limit_min_watts", "power.min_limit", to_number, 0.01),
    Field("power.limit_max_watts", "power.max_limit", to_number, 0.01),
    Field("utilization_gpu_percent", "utilization.gpu", to_number, 20),
    Field("utilization_memory_percent", "utilization.memory", to_number, 20),
    *(
        Field(f"clocks.{name}_mhz", f"clocks.current.{name}", to_number, 150)
        for name in ("graphics", "sm", "memory", "video")
    ),
    *(Field(f"clocks.{name}_max_mhz", f"clocks.max.{name}", to_number) for name in ("graphics", "sm", "memory")),
    Field("pcie.generation", "pcie.link.gen.current", to_number),
    Field("pcie.generation_max", "pcie.link.gen.max", to_number),
    Field("pcie.width", "pcie.link.width.current", to_number),
    Field("pcie.width_max", "pcie.link.width.max", to_number),
    Field("ecc.mode", "ecc.mode.current", to_word),
    Field("ecc.mode_pending", "ecc.mode.pending", to_word),
    *(
        Field(f"ecc.{kind}_{since}", f"ecc.errors.{kind}.{since}.total", to_number)
        for kind in ("corrected", "uncorrected")
        for since in ("volatile", "aggregate")
    ),
    Field("retired_pages.single_bit", "retired_pages.single_bit_ecc.count", to_number),
    Field("retired_pages.double_bit", "retired_pages.double_bit.count", to_number),
    Field("retired_pages.pending", "retired_pages.pending", to_bool),
    Field("row_remapping.corrected", "remapped_rows.correctable", to_number),
    Field("row_remapping.uncorrected", "remapped_rows.uncorrectable", to_number),
    Field("row_remapping.pending", "remapped_rows.pending", to_bool),
    Field("row_remapping.failed", "remapped_rows.failure", to_bool),
)
# Of a GPU in `nvidia-smi -q -x`: what --query-gpu does not report.
LOG: Sequence[Field] = (
    Field("minor_number", "minor_number", to_number),
    Field("brand", "product_brand", to_word),
    Field("architecture", "product_architecture", lambda text: to_word(text).split("_")[0]),
    Field("board_part_number", "board_part_number"),
    Field(
        "virtualization_mode",
        "gpu_virtualization_mode/virtualization_mode",
        lambda text: to_word(text.replace("-", "")),
    ),
    Field("bar1.total_bytes", "bar1_memory_usage/total", to_bytes, MIB - 1),
    Field("clocks.video_max_mhz", "max_clocks/video_clock", to_number),
    Field("pcie.replays", "pci/replay_counter", to_number),
    Field("fabric.state", "fabric/state", to_word),
)
NODE: Sequence[Field] = (Field("driver_version", "driver_version"), Field("cuda_driver_version", "cuda_version"))
MIG_KEYS = ("index", "gpu_instance_id", "compute_instance_id")


class Result(NamedTuple):
    """The values of one field; None in the place of what nvidia-smi does not report."""

    gathered: Any
    reported: Any
    differs: bool


def compare(gathered: Any, reported: Any, tolerance: float = 0.0) -> Result:
    """The verdict on two values. What nvidia-smi does not report does not differ."""
    numbers = [
        value for value in (gathered, reported) if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    same = abs(numbers[0] - numbers[1]) <= tolerance if len(numbers) == 2 else gathered == reported
    return Result(gathered, reported, reported is not None and not same)


def compare_fields(
    label: str, facts: dict[str, Any], fields: Sequence[Field], texts: Callable[[str], str]
) -> Iterator[tuple[str, Result]]:
    """Name and result of each field; *texts* returns nvidia-smi's text for a name."""
    for field in fields:
        gathered: Any = facts
        for key in field.fact.split("."):
            gathered = gathered.get(key) if isinstance(gathered, dict) else None
        text = texts(field.name).strip()
        try:
            reported = None if to_word(text) in NO_VALUES else field.read(text)
        except ValueError:
            reported = text
        yield label + field.fact, compare(gathered, reported, field.tolerance)


def compare_gpu(gpu: dict[str, Any], row: dict[str, str], element: ElementTree.Element) -> Iterator[tuple[str, Result]]:
    """The results of one GPU, from its row of ``--query-gpu`` and its element of the log."""
    label = f"GPU {gpu['index']} "
    yield from compare_fields(label, gpu, QUERY, lambda name: row.get(name, ""))
    yield from compare_fields(label, gpu, LOG, lambda name: element.findtext(name) or "")
    devices = [
        [int(part.findtext(key) or -1) for key in MIG_KEYS] for part in element.iterfind("mig_devices/mig_device")
    ]
    yield label + "mig_devices", compare([[device[key] for key in MIG_KEYS] for device in gpu["mig_devices"]], devices)
    pids = sorted({int(pid.text or 0) for pid in element.iterfind("processes/process_info/pid")})
    known = to_word(element.findtext("processes") or "") != "n/a"
    yield label + "processes", compare(sorted({one["pid"] for one in gpu["processes"] or ()}), pids if known else None)


def smi(*arguments: str) -> str:
    """The output of nvidia-smi. Raises CalledProcessError with what it printed."""
    return subprocess.run(["nvidia-smi", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def query_gpus() -> dict[str, dict[str, str]]:
    """PCI address -> name -> text, of the fields that this version of nvidia-smi has."""
    known = set(re.findall(r'"([\w.]+)"', smi("--help-query-gpu")))
    names = ["pci.bus_id", *(field.name for field in QUERY if field.name in known)]
    lines = smi(f"--query-gpu={','.join(names)}", "--format=csv,noheader,nounits").splitlines()
    return {to_address(values[0]): dict(zip(names, values)) for values in (line.split(", ") for line in lines)}


def compare_profiles(gpus: Sequence[Any]) -> Iterator[tuple[str, Result]]:
    """The results of the MIG profiles of GPUs, as mig_layout reads them: name -> number and most instances."""
    listed = subprocess.run(["nvidia-smi", "mig", "-lgip"], check=False, stdout=subprocess.PIPE, text=True).stdout
    rows = re.findall(r"^\|\s+(\d+)\s+MIG (\S+)\s+(\d+)\s+\d+/(\d+)\s", listed, re.MULTILINE)
    for gpu in gpus:
        reported = {name: (int(number), int(limit)) for index, name, number, limit in rows if int(index) == gpu.index}
        gathered = {each.name: (each.number, each.limit) for each in gpu.profiles}
        yield f"GPU {gpu.index} profiles", compare(gathered, reported or None)


def gather_results(gather: Callable[[], dict[str, Any]], read_mig: Callable[[], Sequence[Any]]) -> dict[str, Result]:
    """Field -> result, of one query of each side."""
    facts, rows, log = gather(), query_gpus(), ElementTree.fromstring(smi("-q", "-x"))  # noqa: S314 - nvidia-smi's own output
    elements = {to_address(gpu.get("id", "")): gpu for gpu in log.iterfind("gpu")}
    results = {"source": compare(facts["source"], "nvml"), "error": compare(facts["error"] or "none", "none")}
    results.update(compare_fields("", facts, NODE, lambda name: log.findtext(name) or ""))
    results["gpus"] = compare(sorted(gpu["pci_address"] for gpu in facts["gpus"]), sorted(rows))
    for gpu in facts["gpus"]:
        address = gpu["pci_address"]
        if address in rows and address in elements:
            results.update(compare_gpu(gpu, rows[address], elements[address]))
    results.update(compare_profiles(read_mig()))
    return results


def main() -> int:
    """Print the results: 0 if both agree, 1 if a field differs, 2 without nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        print("nvidia-smi was not found; run this on a machine with an NVIDIA driver.", file=sys.stderr)
        return 2
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "plugins"))
    collect = importlib.import_module("module_utils._nvml.collect")
    options, mig = collect.Options(subset=collect.SUBSETS), importlib.import_module("module_utils._nvml.mig").Mig()
    results: dict[str, Result] = {}
    for _try in range(TRIES):
        again = gather_results(lambda: collect.gather_facts(options).as_dict(), mig.read)
        results = {**again, **{name: result for name, result in results.items() if not result.differs}}
        if not any(result.differs for result in results.values()):
            break
    for name, (gathered, reported, differs) in results.items():
        verdict = "DIFFERS" if differs else "unknown" if reported is None else "same   "
        print(f"{verdict} {name}: {gathered}" + (f", nvidia-smi: {reported}" if differs else ""))
    count = sum(result.differs for result in results.values())
    print(f"{len(results)} fields, {count} differ. Not compared: {NOT_COMPARED}.")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())
