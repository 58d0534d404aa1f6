# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unloads and loads kernel modules as a plan says, and words what the kernel answers.  Nobody is killed for it."""

from __future__ import annotations

import os
from typing import Sequence

from .._nvml import driver, pci
from .modules import NVIDIA, ModulesError, Plan, State, Wanted, loaded_modules, refuse_parameters, stale

SIGNATURE = ("Key was rejected by service", "Required key not available")
REFUSED = ("Operation not permitted", "Permission denied")
BUSY = ("in use", "Resource temporarily unavailable", "resource busy")
#: Where DKMS and Ubuntu keep the public half of the key that they sign with.
KEYS: tuple[str, ...] = ("var/lib/shim-signed/mok/MOK.der", "var/lib/dkms/mok.pub")


def carry_out(plan: Plan, root: str, run: driver.Run) -> str | None:
    """Unload, then load. Returns why not, if modules came into use meanwhile and all is as before; raises ModulesError."""
    refusal = _unload(plan.unload, run)
    if refusal:
        return refusal
    for name in plan.load:
        words = _words(run(["modprobe", "--", name]))
        if words is not None:
            raise ModulesError(trouble(name, words, root) + _left(plan.unload, root))
    return None


def proved(state: State, wanted: Wanted) -> None:
    """Raise ModulesError if modules that were just loaded are still not what was wanted."""
    refuse_parameters(state, wanted)
    reasons = stale(state, wanted)
    hint = (
        "see that a file in /etc/modprobe.d gives these parameters and no other file contradicts it, and that no install line "
        "loads another module ('modprobe -c' shows what is read)"
    )
    if reasons:
        raise ModulesError(f"The kernel modules were loaded, and still {'; '.join(reasons)}: {hint}.")


def trouble(name: str, words: str, root: str) -> str:
    """Why a module cannot be loaded, from the words of modprobe, with a remedy."""
    begin = f"The kernel module {name} cannot be loaded ({words})"
    refused = any(each in words for each in REFUSED)
    secure_boot = bool(driver.read(root, None, driver.Build())["secure_boot"])
    if any(each in words for each in SIGNATURE) or (refused and secure_boot):
        return f"{begin}: {_signature(root)}."
    if refused:
        return (
            f"{begin}: run this as root, and on the host if this is a container, which shares the modules of its host."
        )
    if "No such device" in words:
        return f"{begin}: {_no_device(root)}."
    return f"{begin}: see what the kernel wrote about it (dmesg)."


def _signature(root: str) -> str:
    key = next((f"/{path}" for path in KEYS if os.path.exists(os.path.join(root, path))), "the public key")
    return (
        "Secure Boot is on and the firmware does not know the key that the module is signed with; enrol it "
        f"(mokutil --import {key}, confirmed at the console during the next boot), or install the distribution's signed packages"
    )


def _no_device(root: str) -> str:
    devices = os.path.join(root, "sys/bus/pci/devices")
    addresses = [gpu.pci_address for gpu in pci.read(devices) if gpu.pci_address]
    if not addresses:
        return "there is no NVIDIA GPU on the PCI bus; pass one through to this machine, or leave this host out"
    links = {address: os.path.join(devices, address, "driver") for address in addresses}
    holders = {
        address: os.path.basename(os.path.realpath(link)) for address, link in links.items() if os.path.exists(link)
    }
    others = [f"{address} is held by {name}" for address, name in holders.items() if name != NVIDIA]
    if others:
        return f"{' and '.join(others)}; release it there (driverctl, or the kernel's command line), or leave this host out"
    return (
        f"this driver supports none of the GPUs ({', '.join(addresses)}); install a version that does (the open modules need "
        "Turing or newer, the newest GPUs need the open ones), and see what the kernel wrote about it (dmesg)"
    )


def _unload(names: Sequence[str], run: driver.Run) -> str | None:
    for count, name in enumerate(names):
        words = _words(run(["rmmod", "--", name]))
        if words is None:
            continue
        gone = list(reversed(names[:count]))
        reason = f"{name} cannot be unloaded ({words})" + _load_again(gone, f"{name} cannot be unloaded ({words})", run)
        if any(each in words for each in BUSY):
            return reason
        remedy = "see what the kernel wrote about it (dmesg)"
        if any(each in words for each in REFUSED):
            remedy = "run this as root, and on the host if this is a container, which shares the modules of its host"
        raise ModulesError(f"The kernel module {reason}: {remedy}.")
    return None


def _load_again(names: Sequence[str], cause: str, run: driver.Run) -> str:
    """Undo an unloading that could not be finished; *names* in the order of loading. Raises ModulesError."""
    failed = {name: words for name in names for words in [_words(run(["modprobe", "--", name]))] if words is not None}
    if failed:
        texts = " and ".join(f"{name} ({words})" for name, words in failed.items())
        raise ModulesError(
            f"The kernel module {cause}, and of those that were unloaded before it, {texts} cannot be loaded again: "
            "end what uses the GPUs and run this again, or reboot."
        )
    return (
        f"; {' and '.join(names)}, unloaded before it, {'are' if len(names) > 1 else 'is'} loaded again"
        if names
        else ""
    )


def _left(unloaded: Sequence[str], root: str) -> str:
    loaded = loaded_modules(root)
    names = [name for name in reversed(unloaded) if name not in loaded]
    return f" Loaded before and not loaded now: {', '.join(names)}." if names else ""


def _words(answer: tuple[int, str, str]) -> str | None:
    """What a command that failed said, in one line; ``None`` if it did not fail."""
    status, output, errors = answer
    return " ".join((errors or output).split()) or f"status {status}" if status else None
