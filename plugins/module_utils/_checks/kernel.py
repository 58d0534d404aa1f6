# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the kernel: the driver's modules, their messages, and device files."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from .model import FAIL, INFO, WARN, Check, Finding, Observation, UnobservedError, is_served, read_part
from .xids import BUCKETS, find_bucket

#: What is searched in the kernel log, by name; each has a part of the lines that it collects, in lower case.
LOG_WORDS: Mapping[str, tuple[str, ...]] = {
    "open_only": ("not supported by open nvidia.ko",),
    "legacy": ("legacy drivers",),
    "key_rejected": (
        "key was rejected by service",
        "required key not available",
        "loading of module with unavailable key is rejected",
    ),
    "probe_failed": ("probe routine failed for", "no nvidia devices probed", "rminitadapter failed"),
    "fallen": ("fallen off the bus",),
    "sxid": ("sxid (pci:",),
    "hung": ("blocked for more than",),
}
FALLEN_XID = 79
#: How bad Xids are while the driver reports that the GPU requires no recovery: it was reset since.
RESET_SINCE = {
    BUCKETS["reset_gpu"]: WARN,
    BUCKETS["reboot"]: WARN,
    BUCKETS["inspect"]: WARN,
    BUCKETS["reset_when_idle"]: INFO,
}
_VFIO, _NOUVEAU = "vfio-pci", "nouveau"
_COMMON = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver"


def _read_driver(observation: Observation) -> Mapping[str, Any]:
    found: Mapping[str, Any] | None = read_part(observation, "nvml").get("driver")
    if found is None:
        raise UnobservedError("the files of the driver did not answer in time")
    return found


def _list_lines(observation: Observation, name: str) -> list[str]:
    """The lines of the kernel log; none once the driver serves all GPUs."""
    lines = read_part(observation, "log")["lines"].get(name) or []
    return [] if is_served(observation) else list(lines)


def _find_in_log(name: str) -> Any:
    def find(observation: Observation) -> Iterator[Finding]:
        for line in _list_lines(observation, name)[-1:]:
            yield FAIL, f"the kernel log has: {line}"

    return find


def _find_conflict(observation: Observation) -> Iterator[Finding]:
    driver, devices = _read_driver(observation), read_part(observation, "pci")
    bound = [device.get("driver") for device in devices]
    if driver.get("nouveau_loaded") and not driver.get("module_version"):
        yield FAIL, "nouveau is loaded in the place of NVIDIA's driver"
    elif bound and all(name == _VFIO for name in bound):
        yield FAIL, "all GPUs are bound to vfio-pci, for virtual machines"
    elif _VFIO in bound or _NOUVEAU in bound:
        count = sum(name in (_VFIO, _NOUVEAU) for name in bound)
        yield WARN, f"{count} of {len(bound)} GPUs are bound to vfio-pci or nouveau"


def _find_rejected(observation: Observation) -> Iterator[Finding]:
    driver = _read_driver(observation)
    if not driver.get("module_version"):
        lines = read_part(observation, "log")["lines"].get("key_rejected") or []
        if lines:
            yield FAIL, f"the kernel log has: {lines[-1]}"


def _find_unbuilt(observation: Observation) -> Iterator[Finding]:
    driver = _read_driver(observation)
    if is_served(observation):  # by a kernel whose modules are not visible, as in WSL
        return
    if not driver.get("module_version") and not driver.get("installed_module_version"):
        release = (observation.get("kernel") or {}).get("release") or "that runs"
        yield FAIL, f"the kernel {release} has no NVIDIA module"


def _find_unloaded(observation: Observation) -> Iterator[Finding]:
    if not _read_driver(observation).get("module_version") and not is_served(observation):
        yield FAIL, "the NVIDIA kernel module is installed and not loaded"


def _find_mismatch(observation: Observation) -> Iterator[Finding]:
    driver = _read_driver(observation)
    loaded = driver.get("module_version")
    for title, version in (
        ("library", driver.get("library_version")),
        ("installed module", driver.get("installed_module_version")),
    ):
        if loaded and version and version != loaded:
            verdict = FAIL if title == "library" else WARN
            yield verdict, f"the loaded kernel module is {loaded} and the {title} is {version}"


def _find_xids(observation: Observation) -> Iterator[Finding]:
    xids = read_part(observation, "log")["xids"]
    if xids is None:
        raise UnobservedError("the kernel log cannot be read")
    actions = {
        gpu.get("pci_address"): gpu.get("recovery_action") for gpu in (observation.get("nvml") or {}).get("gpus") or []
    }
    counted: dict[tuple[int, str], int] = {}
    for each in xids:
        key = (int(each["xid"]), str(each["pci_address"]))
        counted[key] = counted.get(key, 0) + 1
    for (xid, address), count in sorted(counted.items()):
        bucket = find_bucket(xid)
        times = f" {count} times" if count > 1 else ""
        state = f"; {bucket.remedy}"
        verdict = bucket.verdict
        if actions.get(address) == "none" and bucket in RESET_SINCE:
            verdict, state = RESET_SINCE[bucket], ", and the driver requires no recovery now"
        yield verdict, f"Xid {xid} of the GPU at {address}{times}{state}"


def _find_fallen(observation: Observation) -> Iterator[Finding]:
    log = read_part(observation, "log")
    if any(int(each["xid"]) == FALLEN_XID for each in log["xids"] or ()):
        return
    for line in (log["lines"].get("fallen") or [])[-1:]:
        yield FAIL, f"the kernel log has: {line}"


def _find_switch_errors(observation: Observation) -> Iterator[Finding]:
    for line in (read_part(observation, "log")["lines"].get("sxid") or [])[-1:]:
        verdict = FAIL if ", fatal" in line.lower() else WARN
        yield verdict, f"the kernel log has: {line}"


def _find_blocked(observation: Observation) -> Iterator[Finding]:
    nvml, log = observation.get("nvml") or {}, observation.get("log") or {}
    # A process may wait for a second while the driver works.
    hangs = bool(nvml.get("error")) and nvml.get("source") != "nvml"
    lines = (log.get("lines") or {}).get("hung") or []
    for process in read_part(observation, "blocked")[:3]:
        text = f"the process {process['command']} ({process['pid']}) waits in the driver"
        if hangs or any(f":{process['pid']} blocked for more than" in line for line in lines):
            yield FAIL, f"{text} and cannot be killed"
        else:
            yield WARN, f"{text}, which answers others"


def _find_device_files(observation: Observation) -> Iterator[Finding]:
    devices = read_part(observation, "devices")
    if not read_part(observation, "nvml").get("gpus"):
        raise UnobservedError("the driver reports no GPU")
    if not devices["majors"]:
        raise UnobservedError("the kernel lists no devices of the driver")
    files = {each["name"]: each for each in devices["files"]}
    minors = {gpu.get("minor_number") for gpu in observation["nvml"]["gpus"]} - {None}
    names = ["nvidiactl", *(f"nvidia{minor}" for minor in sorted(minors))]
    missing = [f"/dev/{name}" for name in names if name not in files]
    if missing:
        yield FAIL, f"{', '.join(missing)} is missing" if len(missing) == 1 else f"{', '.join(missing)} are missing"
    uvm, major = files.get("nvidia-uvm"), devices["majors"].get("nvidia-uvm")
    if uvm and major is not None and uvm["major"] != major:
        yield FAIL, f"/dev/nvidia-uvm has the major number {uvm['major']}, and the driver has {major}"
    elif not uvm:
        yield WARN, "/dev/nvidia-uvm is missing until nvidia-uvm is loaded"


KERNEL: tuple[Check, ...] = (
    Check(
        "kernel.conflict",
        "kernel",
        "Other drivers of the GPU",
        _find_conflict,
        ("The NVIDIA probe routine was not called for … device", "NVRM: GPU … is already bound to nouveau"),
        "nouveau or vfio-pci owns the GPU",
        "block nouveau, rebuild the initramfs and reboot; or unbind the GPU from vfio-pci",
        ("hw.pci_count",),
    ),
    Check(
        "kernel.secure_boot",
        "kernel",
        "Signature of the module",
        _find_rejected,
        (
            "Key was rejected by service",
            "Required key not available",
            "Loading of module with unavailable key is rejected",
        ),
        "Secure Boot is on, and the key that signed the module is not enrolled in the firmware",
        "enrol the key with mokutil and reboot, or install signed packages",
        ("hw.pci_count",),
    ),
    Check(
        "kernel.module_built",
        "kernel",
        "NVIDIA module of the kernel",
        _find_unbuilt,
        ("modprobe: FATAL: Module nvidia not found in directory", _COMMON),
        "the driver is not installed, or the kernel was updated without its headers",
        "install the driver with the playbook prepare_gpu_nodes; with DKMS, install the kernel's headers and run dkms autoinstall",
        ("hw.pci_count", "kernel.conflict"),
    ),
    Check(
        "kernel.module_loaded",
        "kernel",
        "NVIDIA module is loaded",
        _find_unloaded,
        (_COMMON, "Failed to initialize NVML: Driver Not Loaded"),
        "the module was not loaded after its installation",
        "run modprobe nvidia, and read the kernel log if it fails",
        ("kernel.conflict", "kernel.secure_boot", "kernel.module_built"),
    ),
    Check(
        "kernel.mismatch",
        "kernel",
        "Versions of module and library",
        _find_mismatch,
        ("Driver/library version mismatch", "API mismatch: the client … has the version"),
        "the driver was upgraded, and the former module is still loaded",
        "reboot the node or reload the module; hold the driver's packages",
        ("kernel.module_loaded",),
    ),
    Check(
        "kernel.flavour",
        "kernel",
        "Open or proprietary module",
        _find_in_log("open_only"),
        ("not supported by open nvidia.ko", "No devices were found"),
        "the open module does not support GPUs before Turing",
        "install the proprietary kernel module",
        ("hw.pci_count",),
    ),
    Check(
        "kernel.legacy",
        "kernel",
        "Branch of the driver",
        _find_in_log("legacy"),
        ("supported through the NVIDIA … Legacy drivers", "No devices were found"),
        "this branch of the driver no longer supports the GPU",
        "install an older branch",
        ("hw.pci_count",),
    ),
    Check(
        "kernel.probe_failed",
        "kernel",
        "Start of the GPUs by the driver",
        _find_in_log("probe_failed"),
        ("RmInitAdapter failed", "probe routine failed for", "No NVIDIA devices probed"),
        "the GPU is broken, or the firmware gave it no addresses",
        "read the lines before it in the kernel log; reseat or replace the GPU",
        ("hw.pci_alive", "hw.bar", "kernel.conflict", "kernel.flavour", "kernel.legacy"),
    ),
    Check(
        "kernel.xid",
        "kernel",
        "Xids, the error reports of the driver",
        _find_xids,
        ("NVRM: Xid",),
        "the GPU, the driver or a program failed; the number shows which",
        "follow the remedy of the number in the table of Xids",
        ("hw.pci_alive", "hw.ecc", "hw.remap"),
    ),
    Check(
        "kernel.fallen",
        "kernel",
        "GPUs that fell off the bus without an Xid",
        _find_fallen,
        ("GPU has fallen off the bus", "fallen off the bus and is not responding to commands"),
        "power supply, cable, riser or the GPU itself",
        "drain the node and switch its power off and on; then check power supply and riser",
        ("hw.pci_alive", "kernel.xid"),
    ),
    Check(
        "kernel.sxid",
        "kernel",
        "SXids, the error reports of NVSwitches",
        _find_switch_errors,
        ("SXid (PCI:",),
        "an NVSwitch or an NVLink of the board failed",
        "read the log of nvidia-fabricmanager; after a fatal SXid, drain the node and reset all GPUs",
        ("hw.pci_alive", "kernel.xid"),
    ),
    Check(
        "kernel.dstate",
        "kernel",
        "Processes that wait in the driver",
        _find_blocked,
        (
            "nvidia-smi hangs",
            "INFO: task nvidia … blocked for more than",
            "INFO: task … blocked for more than 120 seconds",
        ),
        "the driver hangs",
        "run the diagnosis again; if the processes still wait, reboot the node, since nothing else ends them",
        ("hw.pci_alive", "kernel.xid", "kernel.fallen"),
    ),
    Check(
        "kernel.nodes",
        "kernel",
        "Device files",
        _find_device_files,
        ("CUDA unknown error", "no CUDA-capable device is detected", "CUDA_ERROR_UNKNOWN"),
        "nvidia-uvm is not loaded, or a device file has an old major number",
        "run nvidia-modprobe -c0 -u, and enable nvidia-persistenced",
        ("kernel.module_loaded", "kernel.mismatch"),
    ),
)
