# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the driver's packages and its library, and of NVIDIA's container toolkit."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from .model import (
    FAIL,
    INFO,
    WARN,
    Check,
    Finding,
    Observation,
    UnobservedError,
    is_served,
    name_gpu,
    offers_otherwise,
    read_gpus,
    read_part,
)

_FABRIC_MANAGER = "nvidia-fabricmanager"


def get_version(text: Any) -> str:
    """The version of a package without the epoch before it and the release after it."""
    return str(text or "").rpartition(":")[2].partition("-")[0]


def _get_loaded(observation: Observation) -> str:
    return str(((observation.get("nvml") or {}).get("driver") or {}).get("module_version") or "")


# -- driver


def _find_unheld(observation: Observation) -> Iterator[Finding]:
    packages = read_part(observation, "packages")
    if not packages.get("unattended"):
        return
    loose = [name for name, each in sorted(packages["driver"].items()) if each.get("held") is False]
    if loose:
        yield WARN, f"automatic upgrades are on, and {', '.join(loose[:3])} can be upgraded while the driver is in use"


def _find_fabric_manager(observation: Observation) -> Iterator[Finding]:
    if not read_part(observation, "nvml").get("nvswitches"):
        return
    loaded = _get_loaded(observation)
    if not loaded:
        raise UnobservedError("the driver's version is not known")
    packages = read_part(observation, "packages")["driver"]
    found = {name: get_version(each["version"]) for name, each in packages.items() if name.startswith(_FABRIC_MANAGER)}
    for name, version in found.items():
        if version != loaded:
            yield FAIL, f"{name} is {version} and the driver is {loaded}"


# -- library


def _find_no_library(observation: Observation) -> Iterator[Finding]:
    if not read_part(observation, "libraries")["versions"] and not is_served(observation):
        yield FAIL, "there is no libnvidia-ml.so.1 in the folders of libraries"


def _find_two_libraries(observation: Observation) -> Iterator[Finding]:
    versions = sorted(read_part(observation, "libraries")["versions"])
    if len(versions) > 1:
        yield FAIL, f"libnvidia-ml is installed in the versions {', '.join(versions)}"


def _find_no_answer(observation: Observation) -> Iterator[Finding]:
    nvml = read_part(observation, "nvml")
    if nvml.get("error") and not any(gpu.get("lost") for gpu in nvml.get("gpus") or []):
        yield FAIL, str(nvml["error"]).partition("; ")[0].rstrip(".")


def _find_lost(observation: Observation) -> Iterator[Finding]:
    for gpu in read_part(observation, "nvml").get("gpus") or []:
        if gpu.get("lost"):
            yield FAIL, f"the driver does not serve {name_gpu(gpu)}"


def _find_old_cuda(observation: Observation) -> Iterator[Finding]:
    for event in read_part(observation, "kubernetes")["events"].get("cuda") or []:
        yield FAIL, event


def _find_no_persistence(observation: Observation) -> Iterator[Finding]:
    for name, mode in read_gpus(observation, "persistence_mode"):
        if mode == "disabled":
            yield INFO, f"{name} has no persistence mode, so that the driver starts it for each program"


# -- toolkit


def _find_no_toolkit(observation: Observation) -> Iterator[Finding]:
    toolkit = read_part(observation, "toolkit")
    program, tool = toolkit["runtime"], toolkit["ctk"]
    if not program.get("path"):
        verdict = INFO if offers_otherwise(observation) else FAIL
        yield verdict, "nvidia-container-runtime is not installed"
    elif not program.get("usable"):
        yield FAIL, f"{program['path']} cannot be executed"
    elif tool.get("version") and program.get("version") and tool["version"] != program["version"]:
        yield WARN, f"nvidia-container-runtime is {program['version']} and nvidia-ctk is {tool['version']}"


def _find_wrong_root(observation: Observation) -> Iterator[Finding]:
    root = read_part(observation, "toolkit")["root"]
    if root.get("path") and not root.get("has_library"):
        yield FAIL, f"the toolkit's config.toml has root = {root['path']}, where no driver is"


def _find_stale_cdi(observation: Observation) -> Iterator[Finding]:
    loaded = _get_loaded(observation)
    for spec in read_part(observation, "cdi"):
        versions = [version for version in spec.get("versions") or [] if loaded and version != loaded]
        if spec.get("missing"):
            yield FAIL, f"{spec['path']} names {spec['missing'][0]}, which does not exist"
        elif versions:
            yield FAIL, f"{spec['path']} is for the driver {versions[0]}, and {loaded} is loaded"


def _find_no_cli_answer(observation: Observation) -> Iterator[Finding]:
    answer: Mapping[str, Any] = read_part(observation, "container_cli")
    if answer.get("error"):
        yield FAIL, f"nvidia-container-cli info: {answer['error']}"


DRIVER: tuple[Check, ...] = (
    Check(
        "lib.held",
        "driver",
        "Automatic upgrades of the driver",
        _find_unheld,
        ("worked until last night",),
        "an automatic upgrade replaces the driver's library while the former module is loaded",
        "hold the driver's packages: with nvidia_driver_hold those of this collection, which upgrade_nvidia_driver upgrades, and others with apt-mark",
    ),
    Check(
        "lib.fm_version",
        "driver",
        "Version of the fabric manager",
        _find_fabric_manager,
        ("fabric manager … doesn't match driver version", "FM does not match driver version"),
        "only one of driver and nvidia-fabricmanager was upgraded",
        "install nvidia-fabricmanager in exactly the driver's version",
        ("kernel.mismatch",),
    ),
)

LIBRARY: tuple[Check, ...] = (
    Check(
        "lib.present",
        "library",
        "Library of the driver",
        _find_no_library,
        ("couldn't find libnvidia-ml library in your system", "couldn't find libnvidia-ml.so library in your system"),
        "the driver's packages are installed in part",
        "reinstall the driver",
        ("kernel.module_loaded",),
    ),
    Check(
        "lib.twice",
        "library",
        "One installation of the driver",
        _find_two_libraries,
        ("version mismatch comes back after an upgrade",),
        "packages and NVIDIA's installer (.run) have both installed a driver",
        "remove one of them; nvidia-uninstall removes that of the installer",
        ("lib.present", "kernel.mismatch"),
    ),
    Check(
        "lib.answers",
        "library",
        "Answer of NVML",
        _find_no_answer,
        ("Failed to initialize NVML", "nvidia-smi does not return"),
        "the driver hangs or failed to start",
        "read the kernel log for NVRM, and reboot the node",
        (
            "kernel.module_loaded",
            "kernel.mismatch",
            "kernel.probe_failed",
            "kernel.dstate",
            "kernel.fallen",
            "lib.present",
        ),
    ),
    Check(
        "lib.serves",
        "library",
        "The driver serves all GPUs",
        _find_lost,
        ("Unable to determine the device handle for GPU", "fewer GPUs in nvidia-smi than in lspci"),
        "a GPU failed after or during the start of the driver",
        "drain the node, reboot it, and read the kernel log for NVRM",
        ("lib.answers", "hw.recovery", "kernel.xid", "kernel.fallen", "kernel.probe_failed"),
    ),
    Check(
        "lib.cuda",
        "library",
        "CUDA that images require",
        _find_old_cuda,
        (
            "CUDA driver version is insufficient for CUDA runtime version",
            "unsatisfied condition: cuda>=",
            "please update your driver to a newer version",
        ),
        "the driver is older than the CUDA of the image",
        "upgrade the driver, or use an image with an older CUDA",
        ("lib.answers",),
    ),
    Check(
        "lib.persistence",
        "library",
        "Persistence mode",
        _find_no_persistence,
        ("nvidia-smi takes several seconds",),
        "the driver unloads the GPU after each program",
        "enable nvidia-persistenced",
    ),
)

TOOLKIT: tuple[Check, ...] = (
    Check(
        "tk.binary",
        "toolkit",
        "Programs of the toolkit",
        _find_no_toolkit,
        (
            'exec: "nvidia-container-runtime": executable file not found',
            "nvidia-container-runtime: not found",
            "nvidia-container-runtime did not terminate successfully",
        ),
        "the toolkit is not installed, or parts of it have different versions",
        "run the playbook prepare_gpu_nodes; where versions differ, upgrade the toolkit's packages to one version (nvidia_container_toolkit_version)",
    ),
    Check(
        "tk.root",
        "toolkit",
        "Root of the driver in the toolkit's configuration",
        _find_wrong_root,
        ("load library failed: libnvidia-ml.so.1: cannot open shared object file",),
        "a removed GPU Operator left its configuration behind",
        "comment root out in /etc/nvidia-container-runtime/config.toml",
        ("tk.binary", "lib.present"),
    ),
    Check(
        "tk.cdi",
        "toolkit",
        "CDI specifications",
        _find_stale_cdi,
        ("unresolvable CDI devices", "failed to fulfil mount request", "CDI device injection failed"),
        "the specification was generated for another driver or other GPUs",
        "run nvidia-ctk cdi generate --output=FILE, and enable nvidia-cdi-refresh",
        ("kernel.mismatch", "lib.twice", "lib.serves"),
    ),
    Check(
        "tk.rpc",
        "toolkit",
        "Answer of nvidia-container-cli",
        _find_no_cli_answer,
        (
            "driver rpc error: timed out",
            "nvidia-container-cli: initialization error",
            "nvidia-container-cli: device error",
        ),
        "the driver starts too slowly, or a GPU does not answer",
        "enable nvidia-persistenced, and read the verdicts of the layers below",
        ("kernel.mismatch", "kernel.nodes", "lib.answers", "lib.serves", "tk.binary", "tk.root"),
    ),
)
