# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the hardware: what the PCI bus shows, and what the driver reports of a GPU's health."""

from __future__ import annotations

from typing import Iterator

from .model import FAIL, WARN, Check, Finding, Observation, UnobservedError, is_served, name_gpu, read_gpus, read_part

SLOWDOWNS = {"hw_thermal_slowdown": "heat", "hw_power_brake_slowdown": "the power brake"}
SWITCHES = ("not_started", "in_progress")


def _find_count(observation: Observation) -> Iterator[Finding]:
    # Where the bus is not visible, as in WSL, the driver still reports its GPUs.
    served = len(observation["nvml"]["gpus"]) if is_served(observation) else 0
    found = max(len(read_part(observation, "pci")), served)
    expected = observation.get("expected_gpus")
    if expected is not None and found < expected:
        yield FAIL, f"{found} of {expected} GPUs are on the PCI bus"
    elif not found and observation.get("require_gpu", True):
        yield FAIL, "there is no NVIDIA GPU on the PCI bus"


def _find_dead(observation: Observation) -> Iterator[Finding]:
    for device in read_part(observation, "pci"):
        if device.get("alive") is False:
            yield FAIL, f"the GPU at {device['pci_address']} does not answer on the PCI bus"


def _find_unmapped(observation: Observation) -> Iterator[Finding]:
    for device in read_part(observation, "pci"):
        if device.get("bar1_missing"):
            yield FAIL, f"the firmware gave the GPU at {device['pci_address']} no address for its memory (BAR1)"


def _find_narrow(observation: Observation) -> Iterator[Finding]:
    nvml = (observation.get("nvml") or {}).get("gpus") or []
    links = [(name_gpu(gpu), gpu["pcie"]) for gpu in nvml if gpu.get("pcie")]
    if not links:
        links = [(f"the GPU at {device['pci_address']}", device) for device in read_part(observation, "pci")]
    for name, link in links:
        width, most = link.get("width"), link.get("width_max")
        if width and most and width < most:
            yield WARN, f"the PCIe link of {name} has {width} of {most} lanes"


def _find_ecc(observation: Observation) -> Iterator[Finding]:
    for name, ecc in read_gpus(observation, "ecc"):
        errors = ecc.get("uncorrected_volatile")
        if errors:
            yield FAIL, f"{name} has {errors} uncorrectable memory errors since the driver was loaded"


def _find_remap(observation: Observation) -> Iterator[Finding]:
    for name, rows in read_gpus(observation, "row_remapping"):
        if rows.get("failed"):
            yield FAIL, f"{name} has no spare memory rows left to replace a broken one; replace the GPU"
        elif rows.get("pending"):
            yield WARN, f"{name} replaces broken memory rows at its next reset"
    for name, pages in read_gpus(observation, "retired_pages"):
        if pages.get("pending"):
            yield WARN, f"{name} retires broken memory pages at its next reset"


def _find_recovery(observation: Observation) -> Iterator[Finding]:
    for name, action in read_gpus(observation, "recovery_action"):
        if action != "none":
            yield FAIL, f"the driver requires of {name}: {str(action).replace('_', ' ')}"


def _find_throttle(observation: Observation) -> Iterator[Finding]:
    for name, clocks in read_gpus(observation, "clocks"):
        reasons = [text for reason, text in SLOWDOWNS.items() if reason in (clocks.get("event_reasons") or ())]
        if reasons:
            yield WARN, f"{name} is slowed down by {' and '.join(reasons)}"


def _find_nvlink(observation: Observation) -> Iterator[Finding]:
    counted = [
        (name, sum(1 for link in links if link.get("active"))) for name, links in read_gpus(observation, "nvlinks")
    ]
    most = max(active for _name, active in counted)
    # NVSwitches join all GPUs, and a bridge only some.
    least = 0 if observation["nvml"].get("nvswitches") else 1
    for name, active in counted:
        if least <= active < most:
            yield WARN, f"{name} has {active} active NVLinks, others on this host have {most}"


def _find_fabric(observation: Observation) -> Iterator[Finding]:
    manager = observation.get("fabric_manager") or {}
    if manager.get("running") is False:
        yield FAIL, f"the machine has NVSwitches, and nvidia-fabricmanager does not run (its unit is {manager['unit']})"
        return
    if manager and not any(gpu.get("fabric") for gpu in read_part(observation, "nvml").get("gpus") or []):
        return  # GPUs before Hopper report no fabric
    for name, fabric in read_gpus(observation, "fabric"):
        if fabric.get("state") in SWITCHES:
            yield FAIL, f"the NVSwitch fabric of {name} is {fabric['state'].replace('_', ' ')}"
        elif fabric.get("state") == "completed" and fabric.get("status"):
            yield FAIL, f"{name} did not join the NVSwitch fabric (NVML status {fabric['status']})"


def _find_pending(observation: Observation) -> Iterator[Finding]:
    gpus = read_part(observation, "nvml").get("gpus") or []
    if not is_served(observation) and not gpus:
        raise UnobservedError("the driver does not report it")
    for gpu in gpus:
        for title, now, later in (
            ("MIG mode", gpu.get("mig_mode"), gpu.get("mig_mode_pending")),
            ("ECC mode", (gpu.get("ecc") or {}).get("mode"), (gpu.get("ecc") or {}).get("mode_pending")),
        ):
            if now and later and now != later:
                yield WARN, f"the {title} of {name_gpu(gpu)} is {now}, and {later} after a reset of the GPU"


HARDWARE: tuple[Check, ...] = (
    Check(
        "hw.pci_count",
        "hardware",
        "GPUs on the PCI bus",
        _find_count,
        ("No devices were found",),
        "a GPU is broken, not seated, or not passed through to the virtual machine",
        "reseat the GPU, and check its slot, the BIOS and the hypervisor",
    ),
    Check(
        "hw.pci_alive",
        "hardware",
        "GPUs answer on the PCI bus",
        _find_dead,
        (
            "GPU is lost",
            "Reboot the system to recover this GPU",
            "Unable to determine the device handle for GPU … GPU is lost",
        ),
        "the GPU fell off the bus: power supply, cable, riser or the GPU itself",
        "drain the node and switch its power off and on, since a warm reboot may not suffice; then check power supply and riser",
        ("hw.pci_count",),
    ),
    Check(
        "hw.bar",
        "hardware",
        "Addresses for the GPU's memory",
        _find_unmapped,
        ("This PCI I/O region assigned to your NVIDIA device is invalid",),
        "the BIOS does not decode addresses above 4 GiB",
        "enable Above 4G Decoding and Resizable BAR in the BIOS, or boot with pci=realloc",
        ("hw.pci_alive",),
    ),
    Check(
        "hw.pci_link",
        "hardware",
        "Width of the PCIe link",
        _find_narrow,
        ("training is slower on one node",),
        "seating, riser, or bifurcation of the slot",
        "reseat the GPU and its riser, and check the bifurcation in the BIOS",
        ("hw.pci_alive",),
    ),
    Check(
        "hw.ecc",
        "hardware",
        "Uncorrectable memory errors",
        _find_ecc,
        ("uncorrectable ECC error encountered", "CUDA_ERROR_ECC_UNCORRECTABLE", "cudaErrorECCUncorrectable"),
        "a fault of the GPU's memory",
        "drain the node and reset the GPU; if the errors return, run the field diagnostics and replace it",
        ("hw.pci_alive",),
    ),
    Check(
        "hw.remap",
        "hardware",
        "Replacement of memory rows and pages",
        _find_remap,
        ("row remapping pending", "row remapper … failure", "retired pages pending"),
        "broken memory waits for its replacement at a reset, or cannot be replaced any more",
        "reset the GPU when it is idle; replace a GPU whose replacement failed",
        ("hw.pci_alive",),
    ),
    Check(
        "hw.recovery",
        "hardware",
        "Recovery that the driver requires",
        _find_recovery,
        ("GPU requires reset", "GPU recovery action changed"),
        "the driver found a fault that it cannot correct by itself",
        "drain the node, then reset the GPU or reboot the node as required",
        ("hw.pci_alive", "hw.ecc", "hw.remap"),
    ),
    Check(
        "hw.throttle",
        "hardware",
        "Slowdown by heat or power",
        _find_throttle,
        ("HW Thermal Slowdown", "HW Power Brake Slowdown", "GPU clocks stay at 300 MHz"),
        "cooling, power supply or power cable",
        "check fans, airflow, power supply and power cables",
        ("hw.pci_alive",),
    ),
    Check(
        "hw.nvlink",
        "hardware",
        "NVLinks",
        _find_nvlink,
        ("NCCL is slow", "NVLink … inactive", "NVLink … fatal error"),
        "an NVLink bridge or an NVSwitch",
        "reseat the bridge or the board, and read the log of nvidia-fabricmanager",
        ("hw.pci_alive",),
    ),
    Check(
        "hw.fabric",
        "hardware",
        "NVSwitch fabric",
        _find_fabric,
        ("CUDA error 802", "system not yet initialized", "CUDA_ERROR_SYSTEM_NOT_READY", "cudaErrorSystemNotReady"),
        "nvidia-fabricmanager does not run, or is another version than the driver",
        "install nvidia-fabricmanager in exactly the driver's version, and start it",
        ("hw.pci_alive", "lib.fm_version"),
    ),
    Check(
        "hw.mig_pending",
        "hardware",
        "Modes that wait for a reset",
        _find_pending,
        ("In use by another client", "MIG mode … is in pending … state"),
        "MIG or ECC mode was changed, and the GPU was not reset since",
        "stop what uses the GPU, exporters included, and reset it",
        ("hw.pci_alive",),
    ),
)
