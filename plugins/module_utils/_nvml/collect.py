# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the GPUs from NVML, else nvidia-smi, else the PCI bus, and explains in one sentence why better sources failed."""

from __future__ import annotations

import contextlib
import time
from typing import Any, NamedTuple, Sequence

from .._vendors import OTHERS
from . import driver, isolation, library, pci, reader
from .details import KEYS, OPT_IN, TOPICS
from .model import Facts, Gpu

DEFAULT_PCI_PATH = "/sys/bus/pci/devices"
MODULE_VERSION = "/sys/module/nvidia/version"
MACHINE = "sys/class/dmi/id/product_name"
DRIVER, XID = "driver", "xid"
MIN_SECONDS = 0.5  # for the last query, once the time is used up
SUBSETS: tuple[str, ...] = (*TOPICS, DRIVER, XID)
# What `all` is.
DEFAULT_SUBSETS = tuple(name for name in SUBSETS if name not in (*OPT_IN, XID))


class Options(NamedTuple):
    """The sources. ``timeout`` (seconds) limits all queries of the driver."""

    library: str | None = None
    nvidia_smi: str | None = None
    pci_path: str = DEFAULT_PCI_PATH
    timeout: float = 60.0
    module_version: str = MODULE_VERSION
    subset: tuple[str, ...] = ()
    root: str = "/"
    kernel_log: str = driver.KMSG


def parse_subset(requested: Sequence[str]) -> tuple[str, ...]:
    """The topics of a ``gather_subset``: names, ``all``, ``min``, and each with ``!`` to leave it out.

    Raises ValueError for an unknown name.
    """
    unknown = [name for name in requested if name.lstrip("!") not in ("all", "min", *SUBSETS)]
    if unknown:
        raise ValueError(", ".join(unknown))
    included = {name for name in requested if not name.startswith("!")}
    excluded = {name[1:] for name in requested if name.startswith("!")}
    if "all" in included or (not included and "all" not in excluded):
        included.update(DEFAULT_SUBSETS)
    return tuple(name for name in SUBSETS if name in included - excluded)


def gather_facts(options: Options) -> Facts:
    """The node's GPUs from the best source that answers. Missing GPUs, drivers or answers raise nothing."""
    begin = time.monotonic()
    facts = _read_best_source(options)
    if XID in options.subset:
        facts = facts._replace(xid_errors=driver.read_xids(options.kernel_log))
    if DRIVER in options.subset:
        facts = _add_driver(facts, options, max(options.timeout - (time.monotonic() - begin), MIN_SECONDS))
    keys = [key for name in options.subset for key in KEYS.get(name, ())]
    gpus = (
        gpu._replace(
            pci_class=pci.read_class(options.pci_path, gpu.pci_address),
            details={**dict.fromkeys(keys), **gpu.details, **_find_numa_node(gpu, keys, options)},
        )
        for gpu in _add_device_ids(facts.gpus, options)
    )
    return facts._replace(
        gpus=tuple(gpus),
        nvswitches=pci.count_switches(options.pci_path),
        machine=driver.read_text(options.root, MACHINE),
    )


def gather_other_gpus(pci_path: str, timeout: float) -> tuple[list[dict[str, Any]], list[str]]:
    """GPUs of other vendors as ``pci.others`` returns them, and a warning if the PCI bus does not answer in *timeout* seconds."""
    if not pci.has_other_gpus(pci_path):
        return [], []
    try:
        return isolation.call(lambda: pci.read_other_gpus(pci_path), timeout), []
    except isolation.Hung:
        problem = "did not answer in time"
    except isolation.Crashed as error:
        problem = str(error)
    except isolation.Failed as error:
        problem = f"failed ({error})"
    vendors = " and ".join(vendor.title for vendor in OTHERS)
    return [], [f"GPUs of {vendors} are not reported, because {pci_path} {problem}; look into the kernel log."]


def _find_numa_node(gpu: Gpu, keys: Sequence[str], options: Options) -> dict[str, Any]:
    """The facts that only the bus has."""
    if "numa_node" not in keys or not gpu.pci_address:
        return {}
    return {"numa_node": pci.read_numa_node(options.pci_path, gpu.pci_address)}


def _add_device_ids(gpus: Sequence[Gpu], options: Options) -> list[Gpu]:
    """The GPUs with their PCI device ids, from the bus if the driver did not report them, as with nvidia-smi."""
    if all(gpu.pci_device_id for gpu in gpus):
        return list(gpus)
    ids = {gpu.pci_address: gpu.pci_device_id for gpu in pci.read_gpus(options.pci_path)}
    return [gpu._replace(pci_device_id=gpu.pci_device_id or ids.get(gpu.pci_address)) for gpu in gpus]


def _add_driver(facts: Facts, options: Options, timeout: float) -> Facts:
    """The facts with the driver as the system shows it; a file that hangs is left out."""
    library_version = _get_driver_version(facts.nvml_version) if facts.nvml_version else None
    with contextlib.suppress(isolation.Hung, isolation.Crashed, isolation.Failed):
        found = isolation.call(
            lambda: driver.read_driver(options.root, library_version, driver.read_installed_build()), timeout
        )
        return facts._replace(driver=found)
    return facts


def _read_best_source(options: Options) -> Facts:
    try:
        answer = isolation.call(lambda: _query_driver(options), options.timeout)
    except isolation.Hung:
        answer = _build_failure(
            f"The NVIDIA driver did not answer within {options.timeout:g} seconds; "
            "look for Xid errors in the kernel log and reboot the node."
        )
    except isolation.Crashed as crash:
        answer = _build_failure(
            f"The query of the NVIDIA driver {crash}; look for Xid errors in the kernel log and reinstall the driver."
        )
    except isolation.Failed as failure:
        answer = _build_failure(f"gpu.kubernetes itself failed ({failure}); report that to its authors.")
    if answer["facts"] is None:
        return _read_bus(options, answer)
    return _add_unserved(_locate_lost(Facts.from_dict(answer["facts"]), options), options)


def _build_failure(error: str, code: int | None = None, nvml_version: str | None = None) -> dict[str, Any]:
    return {"facts": None, "error": error, "code": code, "nvml_version": nvml_version}


def _query_driver(options: Options) -> dict[str, Any]:
    """Runs in the child process; the result has JSON types."""
    try:
        topics = [name for name in options.subset if name in TOPICS]
        return {"facts": reader.read_gpus(library.Nvml(library.load_library(options.library)), topics).as_dict()}
    except library.NvmlError as error:
        return _build_failure(_explain(error, options), error.code, error.library_version)
    except library.LibraryMissing as missing:
        reason = str(missing)
    program = reader.find_smi(options.nvidia_smi)
    if program is None:
        return _build_failure(
            f"NVIDIA GPUs are present but {reason}; install the NVIDIA driver.", library.DRIVER_NOT_LOADED
        )
    try:
        return {"facts": reader.read_gpus_of_smi(program).as_dict()}
    except reader.SmiError as error:
        return _build_failure(f"{program} failed ({error}); repair or reinstall the NVIDIA driver.")


def _explain(error: library.NvmlError, options: Options) -> str:
    if error.code == library.VERSION_MISMATCH:
        loaded = _read_loaded_version(options)
        of_module = f"the loaded kernel module is {loaded}" if loaded else "the loaded kernel module is another version"
        return (
            f"NVIDIA driver/library version mismatch: {of_module} and the library is {_get_driver_version(error.library_version)}; "
            "reboot the node or reload the nvidia kernel modules."
        )
    if error.code == library.DRIVER_NOT_LOADED:
        return "The NVIDIA kernel module is not loaded; load it (modprobe nvidia) or repair its installation."
    return f"NVML does not start ({error}, code {error.code}); look for the cause in the kernel log."


def _get_driver_version(nvml_version: str | None) -> str:
    """NVML 12.570.124.06 belongs to driver 570.124.06: the first number is CUDA's."""
    return "another" if not nvml_version else nvml_version.partition(".")[2]


def _read_loaded_version(options: Options) -> str | None:
    try:
        with open(options.module_version, encoding="ascii", errors="replace") as file:
            return file.read().strip() or None
    except OSError:
        return None


def _read_bus(options: Options, answer: dict[str, Any]) -> Facts:
    """The facts of the bus. A node without NVIDIA GPUs needs no driver, so that a missing driver is not an error there."""
    gpus = pci.read_gpus(options.pci_path)
    harmless = not gpus and answer["code"] == library.DRIVER_NOT_LOADED
    return Facts(
        source="pci" if gpus else "none",
        driver_version=_read_loaded_version(options),
        nvml_version=answer["nvml_version"],
        gpus=gpus,
        error=None if harmless else answer["error"],
    )


def _add_unserved(facts: Facts, options: Options) -> Facts:
    """The facts with the GPUs on the bus that the driver does not report, as after a failed start."""
    known = {gpu.pci_address for gpu in facts.gpus}
    if None in known:
        return facts
    unserved = [gpu for gpu in pci.read_driver_gpus(options.pci_path) if gpu.pci_address not in known]
    if not unserved:
        return facts
    gpus = (*facts.gpus, *(gpu._replace(lost=True) for gpu in unserved))
    error = (
        f"The NVIDIA driver does not serve {len(unserved)} of {len(gpus)} GPUs ({', '.join(str(gpu.pci_address) for gpu in unserved)}); "
        "look for NVRM in the kernel log: another branch or the other kernel modules may support them, else they are broken."
    )
    return facts._replace(gpus=gpus, error=" ".join(filter(None, [facts.error, error])))


def _locate_lost(facts: Facts, options: Options) -> Facts:
    """The facts with an error that names the lost GPUs; those without a handle get the remaining addresses of the bus, if the numbers agree."""
    if not any(gpu.lost for gpu in facts.gpus):
        return facts
    gpus = list(facts.gpus)
    unlocated = [position for position, gpu in enumerate(gpus) if gpu.lost and gpu.pci_address is None]
    if unlocated:
        known = {gpu.pci_address for gpu in gpus}
        free = [gpu for gpu in pci.read_gpus(options.pci_path) if gpu.pci_address not in known]
        for position, place in zip(unlocated, free if len(free) == len(unlocated) else []):
            gpus[position] = gpus[position]._replace(pci_address=place.pci_address, name=place.name)
    where = [gpu.pci_address or f"index {gpu.index}" for gpu in gpus if gpu.lost]
    error = (
        f"{len(where)} of {len(gpus)} GPUs are lost to the driver ({', '.join(where)}); "
        "reboot the node and look for NVRM in the kernel log, such as Xid 79 of one that fell off the bus."
    )
    return facts._replace(gpus=tuple(gpus), error=" ".join(filter(None, [error, facts.error])))
