# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What nvidia-smi tells of GPUs, and which fact each of it is.

The log is that of ``nvidia-smi -q -x``, as drivers 515 to 590 write it. What it leaves out, and another command of nvidia-smi has, is put
into it first (:func:`smi_query.complete`). Runs on Python 3.8.
"""

from __future__ import annotations

import re
from typing import Any, Callable, NamedTuple, Sequence
from xml.etree import ElementTree

Element = ElementTree.Element
MIB = 1024 * 1024
GIB = 1024 * MIB
#: nvidia-smi writes whole MiB.
WHOLE = MIB - 1
#: What a place that is not there, or has no value, is.
UNTOLD: Any = object()
#: What the types of processes in nvidia-smi's manual are called in facts.
KINDS = {"C": "compute", "G": "graphics", "M": "mps"}
NO_VALUES = (
    "n/a",
    "",
    "unknown_error",
    "not_supported",
    "insufficient_permissions",
    "requested_functionality_has_been_deprecated",
)


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


def gibibytes(text: str) -> float:
    """Bytes of ``39.50``."""
    return number(text) * GIB


def lower(text: str) -> str:
    """``Exclusive_Process`` as facts write it, ``enabled`` for ``Enabled``."""
    return text.strip().lower().replace(" ", "_").replace("-", "_")


def joined(text: str) -> str:
    """``passthrough`` for ``Pass-Through``, ``host_vgpu`` for ``Host VGPU``."""
    return lower(text.replace("-", ""))


def first(text: str) -> str:
    """``ada`` for ``Ada Lovelace``."""
    return lower(text).split("_")[0]


def address(text: str) -> str:
    """``00000000:41:00.0`` as Linux writes it: a domain has four digits or more."""
    domain, _colon, place = text.lower().partition(":")
    return f"{int(domain, 16):04x}:{place}"


def device(text: str) -> str:
    """The device of ``20B010DE``, behind which is the vendor."""
    return text.lower()[-8:-4]


def truth(text: str) -> bool:
    """Yes or no."""
    return lower(text) in ("yes", "true", "1")


def uuid(text: str) -> str | None:
    """A UUID; one of zeroes says that there is none."""
    return text.lower() if text.strip("0-") else None


def failed(text: str) -> bool:
    """Whether an outcome is any but ``Success``: facts have its code, nvidia-smi its words."""
    return lower(text) != "success"


def works(text: str) -> bool:
    """Whether an NVLink has a speed, ``26.562 GB/s``, and is not ``<inactive>``."""
    return text[0].isdigit()


def branch(text: str) -> str:
    """``570.124`` of ``570.124.06``: of the library nvidia-smi tells no more."""
    return ".".join(text.split(".")[:2])


def nearest(text: str) -> str:
    """The beginning of a set of processors: nvidia-smi draws ``0,2,4,6,8,10`` where it goes on."""
    return ",".join(text.split(",")[:6])


def node(text: str) -> Any:
    """A NUMA node; where several are near, ``0-1``, none of them is the one."""
    return int(text) if text.isdigit() else UNTOLD


def kinds(process: Element) -> list[Element]:
    """A process once for each list that NVML has it in: ``C+G`` computes and draws."""
    found = []
    for letter in process.findtext("type", "").split("+"):
        part = ElementTree.Element(process.tag)
        part.extend(child for child in process if child.tag != "type")
        ElementTree.SubElement(part, "type").text = KINDS.get(letter.strip(), letter)
        found.append(part)
    return found


def at(*places: str, read: Callable[[str], Any] = words) -> Callable[[Element], Any]:
    """Reads the first of *places* that has a value; what cannot be read is told as it is, and so differs."""

    def told(gpu: Element) -> Any:
        for place in places:
            text = gpu.findtext(place, "").strip()
            if lower(text).strip("[]") not in NO_VALUES:
                try:
                    return read(text)
                except ValueError:
                    return text
        return UNTOLD

    return told


def reasons(gpu: Element) -> Any:
    """What is active of the reasons for the clocks; up to driver 530 they throttle."""
    for name in ("event", "throttle"):
        texts = {reason.tag: lower(reason.text or "") for reason in gpu.iterfind(f"clocks_{name}_reasons/*")}
        if any(text not in NO_VALUES for text in texts.values()):
            start = len(f"clocks_{name}_reason_")
            active = [tag[start:] for tag, text in texts.items() if text == "active"]
            return sorted(reason.replace("display_clocks", "display_clock") for reason in active)
    return UNTOLD


def errors(kind: str, since: str) -> Callable[[Element], Any]:
    """The errors of a *kind* (``corrected``, ``uncorrected``), ``volatile`` or ``aggregate``.

    The fact is NVML's total, which is the sum of its counters of each memory. The log of a GPU up to Volta has that total, and later those
    counters, of SRAM and DRAM. But from Ampere and driver 550 on it takes those of SRAM, parity and SEC-DED apart, from elsewhere: no such sum.
    """
    bits, name = {"corrected": ("single_bit", "correctable"), "uncorrected": ("double_bit", "uncorrectable")}[kind]
    place = f"ecc_errors/{since}"
    total = at(query(kind, since), f"{place}/{bits}/total", read=number)
    parts = [at(f"{place}/{memory}_{name}", read=number) for memory in ("sram", "dram")]

    def told(gpu: Element) -> Any:
        found = total(gpu)
        if found is not UNTOLD or gpu.find(f"{place}/sram_uncorrectable") is None:
            return found
        counts = [part(gpu) for part in parts]
        return UNTOLD if UNTOLD in counts else sum(counts)

    return told


def query(kind: str, since: str) -> str:
    """A total of errors as ``--query-gpu`` calls it."""
    return f"ecc.errors.{kind}.{since}.total"


class Field(NamedTuple):
    """A fact, how nvidia-smi's word for it is read, how far both may differ, and what the fact is made before that.

    *nothing* is what nvidia-smi may say where there is no fact.
    """

    fact: str
    there: Callable[[Element], Any]
    tolerance: float = 0.0
    here: Callable[[Any], Any] | None = None
    nothing: Any = None


class Parts(NamedTuple):
    """A fact that is a list: what tells its items apart, where they are (``list/item``), and their fields.

    Items that are not told apart are taken in the order of some numbers. An item of nvidia-smi's may be several.
    """

    fact: str
    keys: tuple[str, ...]
    place: str
    fields: tuple[Field, ...]
    order: tuple[str, ...] = ()
    split: Callable[[Element], list[Element]] = lambda item: [item]


def limit(name: str, now: str, before: str) -> Field:
    """A limit of the power in watts, as it is called now and up to driver 530."""
    places = (f"gpu_power_readings/{now}_power_limit", f"power_readings/{before}power_limit")
    return Field(f"power.{name}_watts", at(*places, read=number), 0.01)


def clock(name: str, theirs: str) -> tuple[Field, Field]:
    """A clock in MHz, which moves, and its maximum."""
    return (
        Field(f"clocks.{name}_mhz", at(f"clocks/{theirs}_clock", read=number), 150),
        Field(f"clocks.{name}_max_mhz", at(f"max_clocks/{theirs}_clock", read=number)),
    )


#: Of the node.
NODE: Sequence[Field] = (
    Field("driver_version", at("driver_version")),
    Field("cuda_driver_version", at("cuda_version")),
    # before the driver's version the fact has CUDA's
    Field("nvml_version", at("nvml_version", read=branch), here=lambda text: branch(text.partition(".")[2])),
    Field("driver.module_version", at("driver_version")),
    Field("driver.library_version", at("nvml_version", read=branch), here=branch),
)
LINK = "pci/pci_gpu_link_info"
#: Of one GPU. What moves by itself while both are asked may differ by a part of its range: memory in use, temperature, power, use, clocks.
FIELDS: Sequence[Field] = (
    Field("index", at("index", read=number)),
    Field("uuid", at("uuid")),
    Field("name", at("product_name")),
    Field("pci_address", at("pci/pci_bus_id", read=address)),
    Field("pci_device_id", at("pci/pci_device_id", read=device)),
    Field("minor_number", at("minor_number", read=number)),
    Field("compute_capability", at("compute_cap")),
    Field("brand", at("product_brand", read=lower)),
    Field("architecture", at("product_architecture", read=first)),
    Field("serial", at("serial")),
    Field("board_part_number", at("board_part_number")),
    Field("vbios_version", at("vbios_version")),
    Field("persistence_mode", at("persistence_mode", read=lower)),
    Field("compute_mode", at("compute_mode", read=lower)),
    Field("virtualization_mode", at("gpu_virtualization_mode/virtualization_mode", read=joined)),
    Field("mig_mode", at("mig_mode/current_mig", read=lower)),
    Field("mig_mode_pending", at("mig_mode/pending_mig", read=lower)),
    Field("memory_total_bytes", at("fb_memory_usage/total", read=mebibytes), WHOLE),
    Field("memory_used_bytes", at("fb_memory_usage/used", read=mebibytes), 256 * MIB),
    Field("memory_free_bytes", at("fb_memory_usage/free", read=mebibytes), 256 * MIB),
    Field("bar1.total_bytes", at("bar1_memory_usage/total", read=mebibytes), WHOLE),
    Field("bar1.used_bytes", at("bar1_memory_usage/used", read=mebibytes), 32 * MIB),
    Field("bar1.free_bytes", at("bar1_memory_usage/free", read=mebibytes), 32 * MIB),
    Field("temperature_celsius", at("temperature/gpu_temp", read=number), 5),
    Field(
        "power_draw_watts",
        at(
            "gpu_power_readings/instant_power_draw",
            "gpu_power_readings/power_draw",
            "power_readings/power_draw",
            read=number,
        ),
        15,
    ),
    limit("limit", "requested", ""),
    limit("limit_enforced", "current", "enforced_"),
    limit("limit_default", "default", "default_"),
    limit("limit_min", "min", "min_"),
    limit("limit_max", "max", "max_"),
    Field("utilization_gpu_percent", at("utilization/gpu_util", read=number), 20),
    Field("utilization_memory_percent", at("utilization/memory_util", read=number), 20),
    *clock("graphics", "graphics"),
    *clock("sm", "sm"),
    *clock("memory", "mem"),
    *clock("video", "video"),
    Field("clocks.event_reasons", reasons, here=sorted),
    Field("pcie.generation_max", at(f"{LINK}/pcie_gen/max_link_gen", read=number)),
    Field("pcie.generation", at(f"{LINK}/pcie_gen/current_link_gen", read=number)),
    Field("pcie.width_max", at(f"{LINK}/link_widths/max_link_width", read=number)),
    Field("pcie.width", at(f"{LINK}/link_widths/current_link_width", read=number)),
    Field("pcie.replays", at("pci/replay_counter", read=number)),
    Field("ecc.mode", at("ecc_mode/current_ecc", read=lower)),
    Field("ecc.mode_pending", at("ecc_mode/pending_ecc", read=lower)),
    *(
        Field(f"ecc.{kind}_{since}", errors(kind, since))
        for kind in ("corrected", "uncorrected")
        for since in ("volatile", "aggregate")
    ),
    Field("row_remapping.corrected", at("remapped_rows/remapped_row_corr", read=number)),
    Field("row_remapping.uncorrected", at("remapped_rows/remapped_row_unc", read=number)),
    Field("row_remapping.pending", at("remapped_rows/remapped_row_pending", read=truth)),
    Field("row_remapping.failed", at("remapped_rows/remapped_row_failure", read=truth)),
    Field("retired_pages.single_bit", at("retired_pages/multiple_single_bit_retirement/retired_count", read=number)),
    Field("retired_pages.double_bit", at("retired_pages/double_bit_retirement/retired_count", read=number)),
    Field("retired_pages.pending", at("retired_pages/pending_retirement", read=truth)),
    Field("fabric.state", at("fabric/state", read=lower)),
    Field("fabric.status", at("fabric/status", read=failed), here=bool),
    Field("fabric.clique_id", at("fabric/cliqueId", read=number)),
    Field("fabric.cluster_uuid", at("fabric/clusterUuid", read=uuid)),
    # a bus that tells no node is that of a machine with one, which nvidia-smi may call 0
    Field("numa_node", at("topology/numa_affinity", read=node), nothing=0),
    Field("memory_numa_node", at("topology/gpu_numa_id", read=node)),
    Field("cpu_affinity", at("topology/cpu_affinity", read=nearest), here=nearest),
)
INSTANCES = ("gpu_instance_id", "compute_instance_id")
PARTS: Sequence[Parts] = (
    Parts(
        "mig_devices",
        ("index",),
        "mig_devices/mig_device",
        (
            Field("uuid", at("uuid")),
            Field("name", at("name")),
            *(Field(name, at(name, read=number)) for name in INSTANCES),
            Field("memory_total_bytes", at("fb_memory_usage/total", read=mebibytes), WHOLE),
        ),
    ),
    Parts(
        "gpu_instances",
        ("id",),
        "gpu_instances/gpu_instance",
        (
            *(
                Field(name, at(name, read=number))
                for name in ("profile_id", "slices", "placement_start", "placement_size")
            ),
            Field("memory_total_bytes", at("memory", read=gibibytes), 0.01 * GIB),
        ),
    ),
    Parts(
        "nvlinks",
        ("link",),
        "nvlinks/nvlink",
        (Field("active", at("state", read=works)), Field("remote_pci_address", at("remote", read=address))),
    ),
    # two GPUs on one board have at most a bridge between them
    Parts(
        "peers",
        ("index",),
        "peers/peer",
        (Field("level", at("level"), here=lambda level: "PIX" if level == "internal" else level),),
    ),
    # one process may be in several GPU instances
    Parts(
        "processes",
        ("pid", "type"),
        "processes/process_info",
        (
            Field("used_memory_bytes", at("used_memory", read=mebibytes), 64 * MIB),
            *(Field(name, at(name, read=number)) for name in INSTANCES),
        ),
        INSTANCES,
        kinds,
    ),
)
#: Facts of a GPU that are compared with nothing, and why.
NOT_COMPARED = {
    "lost": "nvidia-smi leaves a lost GPU out",
    "processes.name": "nvidia-smi has the command or a title, the fact is the kernel's own short name",
    "nvlinks.version": "nvidia-smi nvlink tells none",
    "nvlinks.remote": "nvidia-smi nvlink tells an address and not of what",
}
SYSTEM = "the system tells it, and nvidia-smi does not know it"
#: Facts of a node likewise.
NODE_NOT_COMPARED = {
    "source": "it says who told the facts",
    "error": "it is a sentence of the module's own",
    "nvswitches": "nvidia-smi tells of GPUs alone",
    "xid_errors": "the kernel log has them, and nvidia-smi has not",
    "driver.module_flavor": SYSTEM,
    "driver.installed_module_version": SYSTEM,
    "driver.nouveau_loaded": SYSTEM,
    "driver.secure_boot": SYSTEM,
    "driver.reboot_required": SYSTEM,
    "driver.reboot_reasons": SYSTEM,
}
