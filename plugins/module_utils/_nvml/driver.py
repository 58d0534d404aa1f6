# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver as the kernel and the file system show it, where NVML is not needed."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import Any

# The variable is four bytes of attributes and one of value.
SECURE_BOOT = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
#: What Debian's packages write down, one package a line.
REBOOT_PACKAGES = "run/reboot-required.pkgs"


def read(root: str, library_version: str | None, installed_version: str | None) -> dict[str, Any]:
    """What is below *root*: the loaded module, nouveau, Secure Boot, and whether a reboot is due.

    *library_version* is that of the driver's library, *installed_version* that of the module which the next start would load.
    """
    loaded = _text(root, "sys/module/nvidia/version")
    reasons = list(_reasons(root, loaded, library_version, installed_version))
    return {
        "module_version": loaded,
        "module_flavor": _flavor(root) if loaded else None,
        "installed_module_version": installed_version,
        "library_version": library_version,
        "nouveau_loaded": os.path.isdir(os.path.join(root, "sys/module/nouveau")),
        "secure_boot": _secure_boot(root),
        "reboot_required": bool(reasons),
        "reboot_reasons": reasons,
    }


def installed_version() -> str | None:
    """Version of the module that the next start would load, by modinfo; ``None`` where there is none, or nobody to ask."""
    program = shutil.which("modinfo") or shutil.which("modinfo", path="/usr/sbin:/sbin:/usr/bin:/bin")
    if program is None:
        return None
    command = [program, "-F", "version", "nvidia"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.stdout.decode("utf-8", "replace").strip() or None if done.returncode == 0 else None


def _reasons(root: str, loaded: str | None, library: str | None, installed: str | None) -> list[str]:
    found = []
    if loaded and library and loaded != library:
        found.append(f"the loaded kernel module is {loaded} and the library is {library}")
    if loaded and installed and loaded != installed:
        found.append(f"the loaded kernel module is {loaded} and the installed one is {installed}")
    packages = sorted({line for line in (_text(root, REBOOT_PACKAGES) or "").split() if "nvidia" in line})
    if packages:
        found.append(f"the package manager asks for it because of {', '.join(packages)}")
    return found


def _flavor(root: str) -> str | None:
    """Whether the loaded module is NVIDIA's open or proprietary one; it says so itself from 515 on."""
    text = _text(root, "proc/driver/nvidia/version")
    if text is None:
        return None
    return "open" if "Open Kernel Module" in text else "proprietary"


def _secure_boot(root: str) -> bool | None:
    """Whether the firmware checks signatures; false without EFI, ``None`` where nobody may look."""
    if not os.path.isdir(os.path.join(root, "sys/firmware/efi")):
        return False
    try:
        with open(os.path.join(root, SECURE_BOOT), "rb") as file:
            value = file.read()
    except FileNotFoundError:
        return False
    except OSError:
        return None
    return len(value) == 5 and value[4] == 1


def _text(root: str, path: str) -> str | None:
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            return file.read().strip() or None
    except OSError:
        return None
