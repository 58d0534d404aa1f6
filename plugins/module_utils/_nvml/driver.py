# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver as the kernel, its log and the file system show it, where NVML is not needed.

Source of Xids, the driver's error reports: the kernel's ``Documentation/ABI/testing/dev-kmsg`` and NVIDIA's catalogue of Xid errors.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
from typing import Any, Callable, Iterator, NamedTuple, Sequence, Tuple

from .. import _commands

#: Runs a command: its status, output and errors.
Run = Callable[[Sequence[str]], Tuple[int, str, str]]

# The variable is four bytes of attributes and one of value.
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#: Debian's packages that require a reboot, one a line. dnf and zypper report a reboot without naming the driver.
REBOOT_PACKAGES = "run/reboot-required.pkgs"

#: What vgpu_unlock changes: the services of a vGPU host, and the sources of the kernel module.
VGPU_UNLOCK = "vgpu_unlock"
VGPU_UNLOCK_PLACES = (
    "etc/systemd/system/nvidia-vgpu*.service",
    "etc/systemd/system/nvidia-vgpu*.service.d/*.conf",
    "lib/systemd/system/nvidia-vgpu*.service",
    "usr/lib/systemd/system/nvidia-vgpu*.service",
    "usr/src/nvidia-*/nvidia/os-interface.c",
)

KMSG = "/dev/kmsg"
KMSG_RECORD = 8192  # bytes; the kernel hands out one whole record at a time
# 4,1042,8613475110,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', GPU has fallen off the bus.
# The place of a MIG device has more parts: (PCI:0000:3b:00 GPU-I:05 GPU-CI:00).
XID_LINE = re.compile(
    r"^\d+,\d+,(?P<microseconds>\d+)[^;]*;"
    r"NVRM: Xid \((?:PCI:)?(?P<place>[0-9a-fA-F:.]+)(?: [^)]*)?\): (?P<xid>\d+),?\s*(?P<message>.*)$"
)


class Build(NamedTuple):
    """A kernel module nvidia. ``srcversion`` differs between builds of one version, as between the open and the proprietary one."""

    version: str | None = None
    srcversion: str | None = None


def read_driver(root: str, library_version: str | None, installed: Build) -> dict[str, Any]:
    """The driver below *root*: the loaded module, nouveau, Secure Boot, and whether a reboot is required.

    *library_version* is that of the driver's library, *installed* the module that the next boot would load.
    """
    loaded = Build(read_text(root, "sys/module/nvidia/version"), read_text(root, "sys/module/nvidia/srcversion"))
    reasons = _find_reboot_reasons(root, loaded, library_version, installed)
    return {
        "module_version": loaded.version,
        "module_flavor": _read_flavor(root) if loaded.version else None,
        "installed_module_version": installed.version,
        "library_version": library_version,
        "nouveau_loaded": os.path.isdir(os.path.join(root, "sys/module/nouveau")),
        "secure_boot": _read_secure_boot(root),
        "reboot_required": bool(reasons),
        "reboot_reasons": reasons,
        "vgpu_unlock": _find_vgpu_unlock(root),
    }


def run_program(command: Sequence[str]) -> tuple[int, str, str]:
    """Run a command that may be outside of a user's PATH; status 127 if it does not exist."""
    program = shutil.which(command[0]) or shutil.which(command[0], path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        return 127, "", f"there is no {command[0]}"
    return _commands.run([program, *command[1:]])


def read_modinfo(field: str, name: str = "nvidia", run: Run = run_program) -> str | None:
    """A field that modinfo prints of a module of the running kernel; ``None`` without the module or without modinfo."""
    status, output, _errors = run(["modinfo", "-F", field, name])
    return output.strip() or None if status == 0 else None


def find_module_file(name: str = "nvidia", run: Run = run_program) -> str | None:
    """Name of the module's file for modinfo, also if modprobe.d installs another one instead; ``None`` if there is no such module.

    Debian's is nvidia-current.ko, with ``install nvidia modprobe -i nvidia-current`` in modprobe.d.
    """
    if read_modinfo("filename", name, run):
        return name
    _status, output, _errors = run(["modprobe", "--show-depends", name])
    instead = re.findall(r"\bmodprobe -i (\S+)", output)
    return instead[-1] if instead and read_modinfo("filename", instead[-1], run) else None


def read_installed_build() -> Build:
    """The module that the next boot would load, by modinfo; without fields if it cannot be read."""
    name = find_module_file()
    return Build(read_modinfo("version", name), read_modinfo("srcversion", name)) if name else Build()


def explain_outdated(loaded: Build, installed: Build) -> list[str]:
    """One sentence if the loaded module is not the installed one; empty if it is, or if one of them is unknown."""
    if loaded.version and installed.version and loaded.version != installed.version:
        return [f"the loaded kernel module is {loaded.version} and the installed one is {installed.version}"]
    if None in (loaded.srcversion, installed.srcversion) or loaded.srcversion == installed.srcversion:
        return []
    both = f"srcversion {loaded.srcversion}, and {installed.srcversion} is installed"
    return [f"the loaded kernel module is another build of {loaded.version} than the installed one ({both})"]


def _find_vgpu_unlock(root: str) -> str | None:
    """The path on the host of the first file that uses vgpu_unlock; ``None`` without one."""
    for place in VGPU_UNLOCK_PLACES:
        for path in sorted(glob.glob(os.path.join(glob.escape(root), place))):
            name = os.path.relpath(path, root)
            if VGPU_UNLOCK in (read_text(root, name) or ""):
                return f"/{name}"
    return None


def _find_reboot_reasons(root: str, loaded: Build, library: str | None, installed: Build) -> list[str]:
    found = []
    if loaded.version and library and loaded.version != library:
        found.append(f"the loaded kernel module is {loaded.version} and the library is {library}")
    found += explain_outdated(loaded, installed)
    packages = _list_reboot_packages(root)
    # They require it until the next boot, even if their module has been loaded since.
    if packages and (found or loaded.srcversion is None or loaded != installed):
        found.append(f"the package manager requires it because of {', '.join(packages)}")
    return found


def _list_reboot_packages(root: str) -> list[str]:
    """Packages of the driver that require a reboot; linux-image-6.8.0-1013-nvidia is a kernel of Ubuntu."""
    names = (read_text(root, REBOOT_PACKAGES) or "").split()
    return sorted({name for name in names if "nvidia" in name and not name.startswith("linux-image-")})


def _read_flavor(root: str) -> str | None:
    """Whether the loaded module is NVIDIA's open or proprietary one; both report it from 515 on."""
    text = read_text(root, "proc/driver/nvidia/version")
    if text is None:
        return None
    return "open" if "Open Kernel Module" in text else "proprietary"


def _read_secure_boot(root: str) -> bool | None:
    """Whether the firmware checks signatures; false without EFI, ``None`` where its variables cannot be read."""
    if not os.path.isdir(os.path.join(root, "sys/firmware/efi")):
        return False
    try:
        if not os.listdir(os.path.join(root, os.path.dirname(SECURE_BOOT))):
            return None
        with open(os.path.join(root, SECURE_BOOT), "rb") as file:
            value = file.read()
    except FileNotFoundError as error:
        return False if error.filename.endswith(SECURE_BOOT) else None
    except OSError:
        return None
    return len(value) == 5 and value[4] == 1


def read_text(root: str, path: str) -> str | None:
    """The content of a file below *root* without the space around it; ``None`` if it is empty or cannot be read."""
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            return file.read().strip() or None
    except OSError:
        return None


# -- Xids, the error reports of the driver


def read_xids(path: str = KMSG) -> list[dict[str, Any]] | None:
    """Every Xid in the kernel's log, oldest first; ``None`` if the log cannot be read."""
    text = read_kernel_log(path)
    return None if text is None else list(parse_xids(text))


def read_kernel_log(path: str = KMSG) -> str | None:
    """The records of the kernel's log, one a line, oldest first; ``None`` if the log cannot be read."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        return "".join(_read_records(handle))
    except OSError:
        return None
    finally:
        os.close(handle)


def _read_records(handle: int) -> Iterator[str]:
    """The records in the log, without waiting for more."""
    while True:
        try:
            record = os.read(handle, KMSG_RECORD)
        except BrokenPipeError:  # the next record was overwritten
            continue
        except BlockingIOError:
            return
        if not record:
            return
        yield record.decode("utf-8", "replace")


def parse_xids(text: str) -> Iterator[dict[str, Any]]:
    """The Xids among the records of a kernel log."""
    for line in text.splitlines():
        found = XID_LINE.match(line)
        if found:
            yield {
                "pci_address": _format_address(found.group("place")),
                "xid": int(found.group("xid")),
                "message": found.group("message").strip(),
                "uptime_seconds": round(int(found.group("microseconds")) / 1e6, 3),
            }


def _format_address(place: str) -> str:
    """``0000:3b:00`` as Linux writes addresses; the driver omits the function."""
    return place.lower() if "." in place else f"{place.lower()}.0"
