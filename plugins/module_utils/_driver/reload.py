# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unloads and loads kernel modules by a plan, and explains errors of the kernel. It ends no process."""

from __future__ import annotations

import os
from typing import Sequence

from .._nvml import driver, pci
from .modules import NVIDIA, Desired, ModulesError, Plan, State, explain_stale, read_loaded_modules, reject_parameters

SIGNATURE = ("Key was rejected by service", "Required key not available")
DENIED = ("Operation not permitted", "Permission denied")
BUSY = ("in use", "Resource temporarily unavailable", "resource busy")
#: The public keys of DKMS and Ubuntu for signed modules.
KEY_FILES: tuple[str, ...] = ("var/lib/shim-signed/mok/MOK.der", "var/lib/dkms/mok.pub")


def apply_plan(plan: Plan, root: str, run: driver.Run) -> str | None:
    """Unload, then load. Returns the reason if a module is in use and nothing has changed. Raises ModulesError."""
    refusal = _unload(plan.unload, run)
    if refusal:
        return refusal
    for name in plan.load:
        message = _read_error(run(["modprobe", "--", name]))
        if message is not None:
            raise ModulesError(explain_load_failure(name, message, root) + _report_unloaded(plan.unload, root))
    return None


def verify_loaded(state: State, desired: Desired) -> None:
    """Raise ModulesError if the loaded modules still differ from the desired state."""
    reject_parameters(state, desired)
    reasons = explain_stale(state, desired)
    hint = (
        "check that a file in /etc/modprobe.d sets these parameters, that no other file overrides them, and that no install line "
        "loads another module ('modprobe -c' prints all of them)"
    )
    if reasons:
        raise ModulesError(f"The kernel modules were loaded, and still {'; '.join(reasons)}: {hint}.")


def explain_load_failure(name: str, message: str, root: str) -> str:
    """Why a module cannot be loaded, with a remedy, from the message of modprobe."""
    begin = f"The kernel module {name} cannot be loaded ({message})"
    refused = any(each in message for each in DENIED)
    secure_boot = bool(driver.read_driver(root, None, driver.Build())["secure_boot"])
    if any(each in message for each in SIGNATURE) or (refused and secure_boot):
        return f"{begin}: {_explain_signature(root)}."
    if refused:
        return f"{begin}: run this as root, and not in a container, which shares the modules of its host."
    if "No such device" in message:
        return f"{begin}: {_explain_no_device(root)}."
    return f"{begin}: read the kernel's log (dmesg)."


def _explain_signature(root: str) -> str:
    key = next((f"/{path}" for path in KEY_FILES if os.path.exists(os.path.join(root, path))), "the public key")
    return (
        "Secure Boot is on and the firmware does not know the key that the module is signed with; enrol it "
        f"(mokutil --import {key}, confirmed at the console during the next boot), or install the distribution's signed packages"
    )


def _explain_no_device(root: str) -> str:
    devices = os.path.join(root, "sys/bus/pci/devices")
    addresses = [gpu.pci_address for gpu in pci.read_gpus(devices) if gpu.pci_address]
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
        "Turing or newer, the newest GPUs need the open ones), and read the kernel's log (dmesg)"
    )


def _unload(names: Sequence[str], run: driver.Run) -> str | None:
    for count, name in enumerate(names):
        message = _read_error(run(["rmmod", "--", name]))
        if message is None:
            continue
        unloaded = list(reversed(names[:count]))
        reason = f"{name} cannot be unloaded ({message})" + _load_again(
            unloaded, f"{name} cannot be unloaded ({message})", run
        )
        if any(each in message for each in BUSY):
            return reason
        remedy = "read the kernel's log (dmesg)"
        if any(each in message for each in DENIED):
            remedy = "run this as root, and not in a container, which shares the modules of its host"
        raise ModulesError(f"The kernel module {reason}: {remedy}.")
    return None


def _load_again(names: Sequence[str], cause: str, run: driver.Run) -> str:
    """Load modules again after a failure; *names* in the order of loading. Raises ModulesError."""
    failed = {
        name: message
        for name in names
        for message in [_read_error(run(["modprobe", "--", name]))]
        if message is not None
    }
    if failed:
        texts = " and ".join(f"{name} ({message})" for name, message in failed.items())
        raise ModulesError(
            f"The kernel module {cause}, and of those that were unloaded before it, {texts} cannot be loaded again: "
            "end what uses the GPUs and run this again, or reboot."
        )
    return (
        f"; {' and '.join(names)}, unloaded before it, {'are' if len(names) > 1 else 'is'} loaded again"
        if names
        else ""
    )


def _report_unloaded(unloaded: Sequence[str], root: str) -> str:
    loaded = read_loaded_modules(root)
    names = [name for name in reversed(unloaded) if name not in loaded]
    return f" Loaded before and not loaded now: {', '.join(names)}." if names else ""


def _read_error(answer: tuple[int, str, str]) -> str | None:
    """The error of a failed command in one line; ``None`` if it did not fail."""
    status, output, errors = answer
    return " ".join((errors or output).split()) or f"status {status}" if status else None
