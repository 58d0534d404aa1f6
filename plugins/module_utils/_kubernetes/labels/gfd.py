# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The labels of NVIDIA's GPU feature discovery (GFD), with its values, from the facts of a node's GPUs and the configuration of its device plugin.

Left out are ``multiprocessors`` and ``engines.*`` of MIG devices, which the facts do not have, ``gpu.clique``, ``vgpu.*``,
``gfd.timestamp``, and labels that GFD calls deprecated. The role mps sets ``mps.capable``, on nodes with its control daemon.

Source: internal/lm of NVIDIA/k8s-device-plugin v0.20.
"""

from __future__ import annotations

import re
from typing import Any, Mapping, NamedTuple, Sequence

from .record import Labels

MIB = 1024 * 1024
GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-"
LONGEST_VALUE = 63

# The first compute capability of each family. 11.x and 12.x have the name of 10.x.
FAMILIES: tuple[tuple[tuple[int, int], str], ...] = (
    ((13, 0), "rubin"),
    ((10, 0), "blackwell"),
    ((9, 0), "hopper"),
    ((8, 9), "ada-lovelace"),
    ((8, 0), "ampere"),
    ((7, 5), "turing"),
    ((7, 0), "volta"),
    ((6, 0), "pascal"),
    ((5, 0), "maxwell"),
    ((3, 0), "kepler"),
    ((2, 0), "fermi"),
    ((1, 0), "tesla"),
)
# Classes on the PCI bus: with and without a display output.
MODES: Mapping[str, str] = {"0x030000": "graphics", "0x030200": "compute"}

_DRIVER = re.compile(r"([0-9]+)\.([0-9]+)(?:\.([0-9]+))?")
_CUDA = re.compile(r"([0-9]+)\.([0-9]+)")
_SLICES = re.compile(r"(?:([0-9]+)c\.)?([0-9]+)g\.")


class Sharing(NamedTuple):
    """How pods share a unit of a resource: number of pods, GFD's name of the strategy, and whether the product has a suffix for it."""

    replicas: int
    strategy: str
    suffix: str = ""


NOT_SHARED = Sharing(1, "none")
# GPUs in MIG mode, and GPUs that the strategy single cannot offer.
NOT_OFFERED, INVALID = Sharing(0, "none"), Sharing(0, "")


def format_product(name: str, suffix: str = "") -> str:
    """Return the product as a label value: blanks become ``-``, and other invalid characters are removed. The suffix is never cut."""
    words = re.sub(r"[^A-Za-z0-9_. -]", "", name).split()
    return "-".join(words)[: LONGEST_VALUE - len(suffix)].strip("-_.") + suffix if words else ""


def build_version_labels(driver: Any, cuda: Any) -> Labels:
    """Return the labels of the driver's version and of the newest CUDA version that it serves; none for an unknown one."""
    labels: Labels = {}
    found = _DRIVER.fullmatch(str(driver or ""))
    if found:
        parts = dict(zip(("major", "minor", "revision"), found.groups("")))
        labels.update(_prefix("nvidia.com/cuda.driver-version", {**parts, "full": str(driver)}))
    found = _CUDA.fullmatch(str(cuda or ""))
    if found:
        parts = dict(zip(("major", "minor"), found.groups()))
        labels.update(_prefix("nvidia.com/cuda.runtime-version", {**parts, "full": str(cuda)}))
    return labels


def build_machine_label(machine: Any) -> Labels:
    """Return the label of the machine's product name, with GFD's value ``unknown`` without one."""
    return {f"{GPU}.machine": format_product(str(machine or "")) or "unknown"}


def find_family(capability: Any) -> str:
    """Return GFD's family of a compute capability such as ``8.9``."""
    found = _CUDA.fullmatch(str(capability or ""))
    own = tuple(map(int, found.groups())) if found else (0, 0)
    return next((family for first, family in FAMILIES if own >= first), "undefined")


def find_mode(classes: Sequence[Any]) -> str:
    """Return GFD's mode of GPUs by their classes on the PCI bus."""
    return MODES.get(str(classes[0]), "unknown") if len(set(classes)) == 1 else "unknown"


def read_sharing(config: Mapping[str, Any], resource: str) -> Sharing:
    """Return how pods share the resource with this configuration of the device plugin."""
    sharing = config.get("sharing") or {}
    for section, strategy in (("mps", "mps"), ("timeSlicing", "time-slicing")):
        shared = sharing.get(section) or {}
        for entry in shared.get("resources") or []:
            name = str(entry.get("name"))
            replicas = str(entry.get("replicas"))
            if (name if "/" in name else f"nvidia.com/{name}") == resource and replicas.isdigit() and int(replicas) > 1:
                return Sharing(int(replicas), strategy, "" if shared.get("renameByDefault") else "-SHARED")
    return NOT_SHARED


def build_gfd_labels(
    gpus: Sequence[Mapping[str, Any]], model: Mapping[str, Any], config: Mapping[str, Any] | None, knows_mig: bool
) -> Labels:
    """Return the labels of working GPUs, of which *model* is the one that the labels describe.

    *config* is the configuration of NVIDIA's device plugin on the node; None if another device plugin offers the GPUs, and then the labels do not
    name replicas, sharing and MIG devices. *knows_mig* is whether the facts list MIG devices.
    """
    labels: Labels = {
        "nvidia.com/mig.capable": str(any(gpu.get("mig_mode") for gpu in gpus)).lower(),
        f"{GPU}.mode": find_mode([gpu.get("pci_class") for gpu in gpus]),
        f"{GPU}.count": str(len(gpus)),
    }
    found = _CUDA.fullmatch(str(model.get("compute_capability") or ""))
    if found:
        labels[f"{GPU}.family"] = find_family(model["compute_capability"])
        labels[f"{GPU}.compute.major"], labels[f"{GPU}.compute.minor"] = found.groups()
    memory = _read_mib(model)
    if memory:
        labels[f"{GPU}.memory"] = str(memory)
    if config is None:
        return {**labels, **_prefix(GPU, {"product": format_product(_name(model))})}
    return {**labels, **_build_offered(gpus, model, config, knows_mig)}


def _build_offered(
    gpus: Sequence[Mapping[str, Any]], model: Mapping[str, Any], config: Mapping[str, Any], knows_mig: bool
) -> Labels:
    """Return the labels of what the device plugin offers."""
    strategy = (config.get("flags") or {}).get("migStrategy") or "none"
    sliced = [gpu for gpu in gpus if gpu.get("mig_mode") == "enabled"]
    whole = [gpu for gpu in gpus if gpu.get("mig_mode") != "enabled" and _name(gpu) == _name(model)]
    labels = _describe(GPU, _name(model), read_sharing(config, GPU) if whole else NOT_OFFERED)
    if strategy == "none":
        return labels
    labels["nvidia.com/mig.strategy"] = str(strategy)
    if not sliced or not knows_mig:
        return labels
    devices = [dict(device) for gpu in sliced for device in gpu.get("mig_devices") or []]
    if strategy == "single":
        return {**labels, **_build_single(gpus, model, devices, config)}
    for profile in sorted({get_profile(device) for device in devices}):
        same = [device for device in devices if get_profile(device) == profile]
        labels.update(_describe_slices(MIG + profile, _name(model), same, config))
    return labels


def _build_single(
    gpus: Sequence[Mapping[str, Any]],
    model: Mapping[str, Any],
    devices: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any],
) -> Labels:
    profiles = {get_profile(device) for device in devices}
    if len(profiles) != 1 or not all(gpu.get("mig_mode") == "enabled" and gpu.get("mig_devices") for gpu in gpus):
        counts = {"count": "0", "memory": "0"}
        return {**_describe(GPU, _name(model), INVALID, "-MIG-INVALID"), **_prefix(GPU, counts)}
    return _describe_slices(GPU, _name(model), devices, config)


def _describe_slices(
    resource: str, name: str, devices: Sequence[Mapping[str, Any]], config: Mapping[str, Any]
) -> Labels:
    """Return the labels of a resource that MIG devices of one profile are."""
    profile = get_profile(devices[0])
    values = {"count": str(len(devices))}
    memory = _read_mib(devices[0])
    if memory:
        values["memory"] = str(memory)
    found = _SLICES.match(profile)
    if found:
        values["slices.gi"], values["slices.ci"] = found.group(2), found.group(1) or found.group(2)
    return {**_describe(resource, name, read_sharing(config, resource), f"-MIG-{profile}"), **_prefix(resource, values)}


def get_profile(device: Mapping[str, Any]) -> str:
    """Return the profile of a MIG device as the plugin's resource names it, from a name such as ``NVIDIA A100 MIG 1g.10gb+me``."""
    return str(device.get("name") or "").rpartition(" ")[2].replace("+", ".")


def _describe(resource: str, name: str, sharing: Sharing, suffix: str = "") -> Labels:
    product = format_product(name, suffix + sharing.suffix)
    values = {"replicas": str(sharing.replicas), "sharing-strategy": sharing.strategy}
    return _prefix(resource, {**values, "product": product})


def _prefix(prefix: str, values: Mapping[str, str]) -> Labels:
    """Return the values by full names; a product that is not known is left out."""
    return {f"{prefix}.{name}": value for name, value in values.items() if value or name != "product"}


def _name(gpu: Mapping[str, Any]) -> str:
    return str(gpu.get("name") or "")


def _read_mib(device: Mapping[str, Any]) -> int:
    return int(device.get("memory_total_bytes") or 0) // MIB
