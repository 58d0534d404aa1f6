# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel drivers of AMD's and Intel's GPUs on a host: what is there, what keeps it from working, and whether a reboot is required."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from typing import Any, Iterable, Iterator, Mapping, Sequence

from .._compatibility.versions import parse_kernel
from .._driver.users import format_users, read_device_users
from .._nvml.driver import Build, Run, read_driver, read_modinfo
from .._vendors import BY_NAME
from . import sysfs


@dataclass(frozen=True)
class Driver:
    """The driver of one vendor: its kernel modules, and which packages of distributions have their firmware."""

    vendor: str
    title: str
    modules: tuple[str, ...]
    firmware: str
    #: Whether GPUs compute through /dev/kfd.
    kfd: bool = False

    @property
    def role(self) -> str:
        """Return the role that manages it."""
        return BY_NAME[self.vendor].driver_role


DRIVERS: dict[str, Driver] = {
    "amd": Driver("amd", "AMD", ("amdgpu",), "firmware-amd-graphics on Debian, else linux-firmware", kfd=True),
    "intel": Driver("intel", "Intel", ("i915", "xe"), "firmware-misc-nonfree on Debian, else linux-firmware"),
}


@dataclass(frozen=True)
class Support:
    """The first Linux whose own driver supports GPUs, whose PCI device ids begin so; empty where only the vendor's packages support them."""

    name: str
    vendor: str
    devices: tuple[str, ...]
    kernel: str
    source: str


#: GPUs that are newer than the kernels of distributions in use. Distributions also add newer drivers to older kernels.
SUPPORT: tuple[Support, ...] = (
    Support("Instinct MI350P", "amd", ("75a8",), "6.19", "https://github.com/ROCm/amdgpu-docs (driver 6.19)"),
    Support(
        "Arc A-Series", "intel", ("569", "56a", "56b"), "6.2", "https://github.com/intel-gpu/intel-gpu-i915-backports"
    ),
    Support(
        "Lunar Lake",
        "intel",
        ("6420", "64a0", "64b0"),
        "6.12",
        "https://dlstreamer.github.io/get_started/system_requirements.html",
    ),
    Support("Arc B-Series", "intel", ("e20", "e21", "e22"), "6.12", "Linux 6.12, drivers/gpu/drm/xe/xe_pci.c"),
    Support(
        "Data Center GPU Flex",
        "intel",
        ("56c",),
        "",
        "https://github.com/intel-gpu/intel-gpu-i915-backports",
    ),
    Support(
        "Data Center GPU Max",
        "intel",
        ("0b69", "0b6e", "0bd", "0be"),
        "",
        "https://github.com/intel-gpu/intel-gpu-i915-backports",
    ),
)

MODPROBE_FOLDERS = ("etc/modprobe.d", "run/modprobe.d", "usr/lib/modprobe.d", "lib/modprobe.d")
#: AMD's GPU operator writes and deletes this file; https://github.com/ROCm/gpu-operator.
OPERATOR_FILE = "/etc/modprobe.d/blacklist-amdgpu.conf"
# amdgpu 0000:63:00.0: Direct firmware load for amdgpu/gc_9_4_3_rlc.bin failed with error -2
# i915 0000:03:00.0: [drm] *ERROR* GT0: GuC firmware i915/dg2_guc_70.bin: fetch failed -ENOENT
FIRMWARE = re.compile(
    r";(?:amdgpu|i915|xe) (?P<address>[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]):? .*"
    r"firmware (?:load for )?(?P<file>\S+?):? (?:failed with error|fetch failed)"
)
DISPLAY_FIRMWARE = "_dmc"  # only saves power of displays
Facts = Mapping[str, Any]


def read_state(root: str, vendor: str, log: str | None, run: Run) -> dict[str, Any]:
    """Return the driver of a vendor below *root*. *log* is the kernel's log, and *run* runs modinfo of the running kernel."""
    driver = DRIVERS[vendor]
    gpus = _read_gpus(root, driver)
    nodes = [f"/dev/dri/{name}" for gpu in gpus for name in (gpu["card"], gpu["render"]) if name]
    devices = [*nodes, *(["/dev/kfd"] if driver.kfd else [])]
    return {
        "vendor": vendor,
        "kernel": sysfs.read_text(root, "proc/sys/kernel/osrelease") or os.uname().release,
        "gpus": gpus,
        "modules": {name: _read_module(root, name, run) for name in driver.modules},
        "kfd": os.path.isdir(os.path.join(root, "sys/class/kfd")),
        "missing_devices": [each for each in devices if not os.path.exists(os.path.join(root, each[1:]))],
        "missing_firmware": None if log is None else _find_firmware(log, gpus),
        "blockers": _find_blockers(root, driver.modules),
        "secure_boot": read_driver(root, None, Build())["secure_boot"],
        "unsupported_modules": _allows_unsupported(root),
        "users": format_users(read_device_users(root, devices)),
    }


def _read_gpus(root: str, driver: Driver) -> list[dict[str, str]]:
    """Return the vendor's GPUs with its driver or none; not those of a virtual machine."""
    row = BY_NAME[driver.vendor]
    found = []
    for address in sysfs.list_gpus_on_bus(root, row.pci_vendor, row.pci_classes):
        folder = os.path.join(root, sysfs.BUS, address)
        bound = sysfs.read_driver(folder)
        if bound in ("", *driver.modules):
            card, render = sysfs.find_nodes(folder)
            device = sysfs.read_text(folder, "device").lower()[2:]
            found.append({"pci_address": address, "device_id": device, "driver": bound, "card": card, "render": render})
    return found


def _read_module(root: str, name: str, run: Run) -> dict[str, Any]:
    """Return the loaded module, and the one that the next boot loads; ``file`` is empty without one."""
    folder = os.path.join(root, "sys/module", name)
    return {
        "loaded": os.path.isdir(folder),
        "version": sysfs.read_text(folder, "version"),
        "srcversion": sysfs.read_text(folder, "srcversion"),
        "file": read_modinfo("filename", name, run) or "",
        "installed_version": read_modinfo("version", name, run) or "",
        "installed_srcversion": read_modinfo("srcversion", name, run) or "",
    }


def _find_firmware(log: str, gpus: Iterable[Facts]) -> list[dict[str, str]]:
    """Return the firmware that the kernel did not find for these GPUs since its boot, each file once."""
    addresses = {gpu["pci_address"] for gpu in gpus}
    found = {
        (match.group("address"), match.group("file")): None
        for match in map(FIRMWARE.search, log.splitlines())
        if match and match.group("address") in addresses and DISPLAY_FIRMWARE not in match.group("file")
    }
    return [{"pci_address": address, "file": file} for address, file in found]


def _find_blockers(root: str, modules: Sequence[str]) -> list[str]:
    """Return what keeps the kernel from loading the modules: parameters of the kernel, and paths of files for modprobe."""
    words = sysfs.read_text(root, "proc/cmdline").split()
    found = [
        word
        for word in words
        if word == "nomodeset"
        or (
            re.match(r"(module_blacklist|modprobe\.blacklist)=", word)
            and set(word.partition("=")[2].split(",")) & set(modules)
        )
    ]
    pattern = re.compile(
        rf"^\s*(blacklist\s+({'|'.join(modules)})|install\s+({'|'.join(modules)})\s+/\S*bin/(true|false))\b",
        re.MULTILINE,
    )
    return found + [
        f"/{os.path.relpath(path, root)}" for path in _list_modprobe(root) if pattern.search(sysfs.read_text(path))
    ]


def _allows_unsupported(root: str) -> bool:
    """Return whether modprobe of SUSE loads modules that SUSE does not support."""
    pattern = re.compile(r"^\s*allow_unsupported_modules\s+1\b", re.MULTILINE)
    return any(pattern.search(sysfs.read_text(path)) for path in _list_modprobe(root))


def _list_modprobe(root: str) -> list[str]:
    """Return the paths of modprobe's files. A file hides those of the same name in later folders."""
    found: dict[str, str] = {}
    for folder in MODPROBE_FOLDERS:
        for path in glob.glob(os.path.join(glob.escape(root), folder, "*.conf")):
            found.setdefault(os.path.basename(path), path)
    return [found[name] for name in sorted(found)]


def find_problems(state: Facts) -> list[str]:
    """Return why pods could not use the GPUs: sentences with cause and remedy, without the name of the host."""
    driver = DRIVERS[state["vendor"]]
    if not state["gpus"]:
        return [
            f"no {driver.title} GPU was found on the PCI bus; leave the role {driver.role} out for this host, or check its slots and its hypervisor."
        ]
    return [*_check_unbound(driver, state), *_check_bound(driver, state)]


def _check_unbound(driver: Driver, state: Facts) -> Iterator[str]:
    """Yield why GPUs have no driver, once for each cause."""
    causes: dict[str, list[Facts]] = {}
    for gpu in state["gpus"]:
        if not gpu["driver"]:
            causes.setdefault(_explain_unbound(driver, state, gpu), []).append(gpu)
    for cause, gpus in causes.items():
        yield f"{_name(gpus)} has no driver: {cause}."


def _explain_unbound(driver: Driver, state: Facts, gpu: Facts) -> str:
    """Return the most probable cause and its remedy, as a clause."""
    modules, kernel = " or ".join(driver.modules), state["kernel"]
    known = [*_explain_blockers(state["blockers"], modules), *_explain_support(driver, state, gpu["device_id"])]
    if known:
        return known[0]
    firmware = [each["file"] for each in state["missing_firmware"] or [] if each["pci_address"] == gpu["pci_address"]]
    if not any(module["file"] for module in state["modules"].values()):
        return (
            f"the kernel {kernel} has no module {modules}; install the distribution's package that has it (linux-modules-extra-{kernel} on Ubuntu, "
            "kernel-modules-extra on RHEL), or boot a standard kernel"
        )
    if not any(module["loaded"] for module in state["modules"].values()):
        return f"{modules} is not loaded; load it (modprobe), and read the kernel's log (dmesg) if that fails"
    if firmware:
        return (
            f"the kernel has not found {' and '.join(firmware)}; install the firmware ({driver.firmware}), and reboot"
        )
    return f"{modules} is loaded and has not accepted it; read the kernel's log (dmesg) for its address"


def _explain_blockers(blockers: Iterable[str], modules: str) -> Iterator[str]:
    """Yield what keeps the kernel from loading the modules, with the remedy."""
    for blocker in blockers:
        if blocker == OPERATOR_FILE:
            yield (
                f"{modules} is blacklisted by {blocker}, the file of AMD's GPU operator; let the operator deploy the driver, or set spec.driver.blacklist of "
                "its DeviceConfig to false, and reboot"
            )
        elif blocker.startswith("/"):
            yield f"{modules} is blacklisted by {blocker}; remove the line, rebuild the initial RAM disk, and reboot"
        else:
            yield f"the kernel was booted with {blocker}; remove that parameter from the boot loader, and reboot"


def _explain_support(driver: Driver, state: Facts, device: str) -> Iterator[str]:
    """Yield why the driver of the running kernel does not support a GPU; nothing for a driver that DKMS has built."""
    support, kernel = find_support(driver.vendor, device), state["kernel"]
    if support is None or any(map(_is_built, state["modules"].values())):
        return
    if not support.kernel:
        yield f"{driver.title} supports {support.name} only with its own driver packages; set {driver.role}_source to vendor ({support.source})"
    elif parse_kernel(kernel) < (*map(int, support.kernel.split(".")), 0):
        yield (
            f"the driver of Linux supports {support.name} from {support.kernel} on, and {kernel} runs; boot a newer kernel of the distribution, or set "
            f"{driver.role}_source to vendor ({support.source})"
        )


def _check_bound(driver: Driver, state: Facts) -> Iterator[str]:
    """Yield what is missing although GPUs have their driver."""
    bound = [gpu for gpu in state["gpus"] if gpu["driver"]]
    blind = [gpu for gpu in bound if not gpu["render"]]
    if blind:
        yield f"{_name(blind)} has a driver and no render node; read the kernel's log (dmesg) for its address."
    if bound and driver.kfd and not state["kfd"]:
        yield (
            "the driver has no /dev/kfd, through which programs compute; boot a kernel with CONFIG_HSA_AMD, such as a standard one of the distribution, or "
            f"set {driver.role}_source to vendor."
        )
    missing = [each for each in state["missing_devices"] if each != "/dev/kfd" or (state["kfd"] and bound)]
    if missing:
        yield f"the kernel has {' and '.join(missing)}, and the folder /dev does not; restart udev (udevadm trigger)."
    addresses = {gpu["pci_address"] for gpu in bound}
    firmware = {each["file"]: None for each in state["missing_firmware"] or [] if each["pci_address"] in addresses}
    if firmware:
        yield (
            f"the kernel has not found the firmware {' and '.join(firmware)} since its boot, without which GPUs fail under load; install it "
            f"({driver.firmware}), and reboot."
        )


def find_support(vendor: str, device: str) -> Support | None:
    """Return what is known of a GPU by its PCI device id; None if every kernel in use is new enough, or nothing is known."""
    return next((row for row in SUPPORT if row.vendor == vendor and device.startswith(row.devices)), None)


def find_reboot_reasons(state: Facts) -> list[str]:
    """Return why the loaded modules are not the installed ones, as clauses.

    The kernel shows both numbers of a loaded module if the file has them.
    """
    unbound = any(not gpu["driver"] for gpu in state["gpus"])
    missing = [
        f"the installed module {name} is not loaded"
        for name, module in state["modules"].items()
        if unbound and not module["loaded"] and _is_built(module)
    ]
    return missing + [
        f"the loaded module {name} is {module['version'] or module['srcversion'] or 'that of the kernel'}, and the installed one is "
        f"{module['installed_version'] or module['installed_srcversion'] or 'that of the kernel'}"
        for name, module in state["modules"].items()
        if module["loaded"]
        and module["file"].startswith("/")
        and (module["version"], module["srcversion"]) != (module["installed_version"], module["installed_srcversion"])
    ]


def _is_built(module: Facts) -> bool:
    """Return whether a module to be loaded was built by DKMS."""
    return bool(re.search(r"/(updates|extra|weak-updates)/", module["file"]))


def _name(gpus: Sequence[Facts]) -> str:
    """Return the addresses of GPUs with their device ids, as the subject of a sentence."""
    return "GPU " + " and ".join(f"{gpu['pci_address']} ({gpu['device_id']})" for gpu in gpus)
