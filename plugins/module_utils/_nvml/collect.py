# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks NVML, else nvidia-smi, else the PCI bus, and says in one sentence what was wrong with the better ones."""

from __future__ import annotations

import contextlib
import time
from typing import Any, NamedTuple, Sequence

from .._vendors import OTHERS
from . import binding, driver, isolation, library, pci, smi, xid
from .details import KEYS, OPT_IN, TOPICS
from .model import Facts, Gpu

DEFAULT_PCI_PATH = "/sys/bus/pci/devices"
MODULE_VERSION = "/sys/module/nvidia/version"
DRIVER, XID = "driver", "xid"
LAST_SECONDS = 0.5  # for what is asked last, once the time is used up
SUBSETS: tuple[str, ...] = (*TOPICS, DRIVER, XID)
# What `all` is.
USUAL = tuple(name for name in SUBSETS if name not in (*OPT_IN, XID))


class Options(NamedTuple):
    """Where to look. ``timeout`` (seconds) bounds everything that may touch the driver."""

    library: str | None = None
    nvidia_smi: str | None = None
    pci_path: str = DEFAULT_PCI_PATH
    timeout: float = 60.0
    module_version: str = MODULE_VERSION
    subset: tuple[str, ...] = ()
    root: str = "/"
    kernel_log: str = xid.KMSG


def subset(asked: Sequence[str]) -> tuple[str, ...]:
    """The topics that a `gather_subset` asks for: names, ``all``, ``min``, and either with ``!`` to leave it out.

    Raises ValueError for a name that is none.
    """
    unknown = [name for name in asked if name.lstrip("!") not in ("all", "min", *SUBSETS)]
    if unknown:
        raise ValueError(", ".join(unknown))
    wanted = {name for name in asked if not name.startswith("!")}
    refused = {name[1:] for name in asked if name.startswith("!")}
    if "all" in wanted or (not wanted and "all" not in refused):
        wanted.update(USUAL)
    return tuple(name for name in SUBSETS if name in wanted - refused)


def gather(options: Options) -> Facts:
    """The node's GPUs from the best source that answers. Raises nothing for want of GPUs, drivers or answers."""
    begin = time.monotonic()
    facts = _from_best(options)
    if XID in options.subset:
        facts = facts._replace(xid_errors=xid.read(options.kernel_log))
    if DRIVER in options.subset:
        facts = _with_driver(facts, options, max(options.timeout - (time.monotonic() - begin), LAST_SECONDS))
    keys = [key for name in options.subset for key in KEYS.get(name, ())]
    gpus = (
        gpu._replace(details={**dict.fromkeys(keys), **gpu.details, **_place(gpu, keys, options)})
        for gpu in _with_device_ids(facts.gpus, options)
    )
    return facts._replace(gpus=tuple(gpus), nvswitches=pci.switches(options.pci_path))


def others(pci_path: str, timeout: float) -> tuple[list[dict[str, Any]], list[str]]:
    """GPUs of other vendors as ``pci.others`` returns them, and a warning if the PCI bus does not answer in *timeout* seconds."""
    if not pci.has_others(pci_path):
        return [], []
    try:
        return isolation.call(lambda: pci.others(pci_path), timeout), []
    except isolation.Hung:
        problem = "did not answer in time"
    except isolation.Crashed as error:
        problem = str(error)
    except isolation.Failed as error:
        problem = f"failed ({error})"
    vendors = " and ".join(vendor.title for vendor in OTHERS)
    return [], [f"GPUs of {vendors} are not reported, because {pci_path} {problem}; look into the kernel log."]


def _place(gpu: Gpu, keys: Sequence[str], options: Options) -> dict[str, Any]:
    """What the bus knows and the driver does not."""
    if "numa_node" not in keys or not gpu.pci_address:
        return {}
    return {"numa_node": pci.numa_node(options.pci_path, gpu.pci_address)}


def _with_device_ids(gpus: Sequence[Gpu], options: Options) -> list[Gpu]:
    """The GPUs, each with the PCI device id that the bus tells where the driver did not: nvidia-smi is not asked for it."""
    if all(gpu.pci_device_id for gpu in gpus):
        return list(gpus)
    there = {gpu.pci_address: gpu.pci_device_id for gpu in pci.read(options.pci_path)}
    return [gpu._replace(pci_device_id=gpu.pci_device_id or there.get(gpu.pci_address)) for gpu in gpus]


def _with_driver(facts: Facts, options: Options, timeout: float) -> Facts:
    """The facts with the driver as the system shows it; nobody waits for a file that hangs."""
    library_version = _driver_part(facts.nvml_version) if facts.nvml_version else None
    with contextlib.suppress(isolation.Hung, isolation.Crashed, isolation.Failed):
        told = isolation.call(lambda: driver.read(options.root, library_version, driver.installed_build()), timeout)
        return facts._replace(driver=told)
    return facts


def _from_best(options: Options) -> Facts:
    try:
        answer = isolation.call(lambda: _ask_driver(options), options.timeout)
    except isolation.Hung:
        answer = _refusal(
            f"The NVIDIA driver did not answer within {options.timeout:g} seconds; "
            "look for Xid errors in the kernel log and reboot the node."
        )
    except isolation.Crashed as crash:
        answer = _refusal(
            f"The query of the NVIDIA driver {crash}; look for Xid errors in the kernel log and reinstall the driver."
        )
    except isolation.Failed as failure:
        answer = _refusal(f"gpu.kubernetes itself failed ({failure}); report that to its authors.")
    if answer["facts"] is None:
        return _from_bus(options, answer)
    return _with_unserved(_place_lost(Facts.from_dict(answer["facts"]), options), options)


def _refusal(error: str, code: int | None = None, nvml_version: str | None = None) -> dict[str, Any]:
    return {"facts": None, "error": error, "code": code, "nvml_version": nvml_version}


def _ask_driver(options: Options) -> dict[str, Any]:
    """Runs in the child process; the result has JSON types."""
    try:
        topics = [name for name in options.subset if name in TOPICS]
        return {"facts": binding.read(library.Nvml(library.load(options.library)), topics).as_dict()}
    except library.NvmlError as error:
        return _refusal(_explain(error, options), error.code, error.library_version)
    except library.LibraryMissing as missing:
        reason = str(missing)
    program = smi.find(options.nvidia_smi)
    if program is None:
        return _refusal(f"NVIDIA GPUs are present but {reason}; install the NVIDIA driver.", library.DRIVER_NOT_LOADED)
    try:
        return {"facts": smi.read(program).as_dict()}
    except smi.SmiError as error:
        return _refusal(f"{program} failed ({error}); repair or reinstall the NVIDIA driver.")


def _explain(error: library.NvmlError, options: Options) -> str:
    if error.code == library.VERSION_MISMATCH:
        loaded = _loaded_version(options)
        of_module = f"the loaded kernel module is {loaded}" if loaded else "the loaded kernel module is another version"
        return (
            f"NVIDIA driver/library version mismatch: {of_module} and the library is {_driver_part(error.library_version)}; "
            "reboot the node or reload the nvidia kernel modules."
        )
    if error.code == library.DRIVER_NOT_LOADED:
        return "The NVIDIA kernel module is not loaded; load it (modprobe nvidia) or repair its installation."
    return f"NVML does not start ({error}, code {error.code}); look for the cause in the kernel log."


def _driver_part(nvml_version: str | None) -> str:
    """NVML 12.570.124.06 belongs to driver 570.124.06: the first number is CUDA's."""
    return "another" if not nvml_version else nvml_version.partition(".")[2]


def _loaded_version(options: Options) -> str | None:
    try:
        with open(options.module_version, encoding="ascii", errors="replace") as file:
            return file.read().strip() or None
    except OSError:
        return None


def _from_bus(options: Options, answer: dict[str, Any]) -> Facts:
    """What the bus shows. A node without NVIDIA GPUs needs no driver, so its absence is no error there."""
    gpus = pci.read(options.pci_path)
    harmless = not gpus and answer["code"] == library.DRIVER_NOT_LOADED
    return Facts(
        source="pci" if gpus else "none",
        driver_version=_loaded_version(options),
        nvml_version=answer["nvml_version"],
        gpus=gpus,
        error=None if harmless else answer["error"],
    )


def _with_unserved(facts: Facts, options: Options) -> Facts:
    """The facts with the GPUs that are there and of which the driver says nothing, as it does where it could not start them."""
    known = {gpu.pci_address for gpu in facts.gpus}
    if None in known:
        return facts
    unserved = [gpu for gpu in pci.for_the_driver(options.pci_path) if gpu.pci_address not in known]
    if not unserved:
        return facts
    gpus = (*facts.gpus, *(gpu._replace(lost=True) for gpu in unserved))
    error = (
        f"The NVIDIA driver does not serve {len(unserved)} of {len(gpus)} GPUs ({', '.join(str(gpu.pci_address) for gpu in unserved)}); "
        "look for NVRM in the kernel log: another branch or the other kernel modules may know them, else they are broken."
    )
    return facts._replace(gpus=gpus, error=" ".join(filter(None, [facts.error, error])))


def _place_lost(facts: Facts, options: Options) -> Facts:
    """Says which GPUs are lost; those without a handle get the places that are left over on the bus, if the numbers agree."""
    if not any(gpu.lost for gpu in facts.gpus):
        return facts
    gpus = list(facts.gpus)
    homeless = [position for position, gpu in enumerate(gpus) if gpu.lost and gpu.pci_address is None]
    if homeless:
        known = {gpu.pci_address for gpu in gpus}
        free = [gpu for gpu in pci.read(options.pci_path) if gpu.pci_address not in known]
        for position, place in zip(homeless, free if len(free) == len(homeless) else []):
            gpus[position] = gpus[position]._replace(pci_address=place.pci_address, name=place.name)
    where = [gpu.pci_address or f"index {gpu.index}" for gpu in gpus if gpu.lost]
    error = (
        f"{len(where)} of {len(gpus)} GPUs are lost to the driver ({', '.join(where)}); "
        "reboot the node and look for NVRM in the kernel log, such as Xid 79 of one that fell off the bus."
    )
    return facts._replace(gpus=tuple(gpus), error=" ".join(filter(None, [error, facts.error])))
