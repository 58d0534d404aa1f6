# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds a node's labels and expected number of devices from the facts of its GPUs (``ansible_facts.nvml``)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Mapping

from .._sharing.catalogue import STRATEGIES, strategy_of
from .._sharing.plugin_config import Request, build_config
from .._vendors import OTHERS, SERVED
from .labels.devices import PREFIX, build_device_labels, build_product_counts
from .labels.gfd import build_gfd_labels, build_machine_label, build_version_labels, format_product, get_profile
from .labels.plan import read_labels
from .labels.record import Labels

MIB = 1024 * 1024
GPU_RESOURCE = SERVED.resource
# The resource of MIG devices begins so and ends with their profile; NVIDIA's plugin adds the suffix to renamed shared resources.
MIG_RESOURCE, SHARED = "nvidia.com/mig-", ".shared"
MEMORY_UNITS = {"GiB": 1024 * MIB, "MiB": MIB}

_FORBIDDEN = re.compile(r"[^A-Za-z0-9_.-]+")


class GpuFactsError(ValueError):
    """The facts are not sufficient; the text is one sentence with cause and remedy."""


def format_label_value(text: str) -> str:
    """Return the text as a valid label value of at most 63 characters; invalid characters become ``-``."""
    return _FORBIDDEN.sub("-", text.strip())[:63].strip("-_.")


def list_working_gpus(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the GPUs that are not lost."""
    return [dict(gpu) for gpu in facts.get("gpus") or [] if not gpu.get("lost")]


@dataclass(frozen=True)
class LabelOptions:
    """What the labels say beside the GPUs of NVIDIA.

    *config* is the configuration of NVIDIA's device plugin on the node, None if another device plugin offers the GPUs. *devices* is the fact
    ``gpu_devices``; *vendor_prefix* also sets labels below the prefixes of other vendors. Without *accelerator_label*, there is no such label.
    """

    config: Mapping[str, Any] | None = field(default_factory=dict)
    accelerator_label: str = "accelerator"
    devices: Mapping[str, Any] = field(default_factory=dict)
    vendor_prefix: bool = False


def build_gpu_labels(
    facts: Mapping[str, Any],
    accelerator: str = "",
    extra: Mapping[str, Any] | None = None,
    options: LabelOptions | None = None,
) -> tuple[Labels, list[str]]:
    """Build a node's labels from its facts; return (labels, warnings).

    A node without GPUs gets no labels. ``nvidia.com/gpu.memory`` is MiB of one GPU. If the GPUs differ, product and memory are
    those of the working GPU with the least memory, a warning says so, and each product has a label with its number of GPUs.
    Raises LabelError for invalid extra labels.
    """
    more, options = read_labels("gpu_node_labels_extra", extra), options or LabelOptions()
    labels = build_device_labels(options.devices, options.vendor_prefix)
    products = [labels.get(f"{PREFIX}{vendor.name}.product") or "" for vendor in OTHERS]
    gpus, warnings = [dict(gpu) for gpu in facts.get("gpus") or []], []
    if gpus:
        working = list_working_gpus(facts)
        smallest = min(working or gpus, key=_get_memory)
        labels.update(_build_nvidia_labels(facts, working, smallest, options.config))
        product = format_product(str(smallest.get("name") or ""))
        products = [product, *products]
        warnings = _warn_of_mixed(working, product, _get_memory(smallest) // MIB)
    if not labels:
        return {}, []
    short = format_label_value(str(accelerator or "")) or next(filter(None, products), "").lower()
    if short and options.accelerator_label:
        labels[options.accelerator_label] = short
    labels.update(more)
    return labels, warnings


def _build_nvidia_labels(
    facts: Mapping[str, Any],
    working: list[dict[str, Any]],
    smallest: Mapping[str, Any],
    config: Mapping[str, Any] | None,
) -> Labels:
    labels = {
        "nvidia.com/gpu.present": "true",
        **build_version_labels(facts.get("driver_version"), facts.get("cuda_driver_version")),
    }
    if not working:
        return {**labels, "nvidia.com/gpu.count": "0"}
    return {
        **labels,
        **build_machine_label(facts.get("machine")),
        **build_gfd_labels(working, smallest, config, facts.get("source") == "nvml"),
        **build_product_counts("nvidia", [str(gpu.get("name") or "") for gpu in working]),
    }


def choose_config(
    strategy: str, planned: Mapping[str, Any], base: Mapping[str, Any], request: Request
) -> Mapping[str, Any] | None:
    """Return the configuration of NVIDIA's device plugin on a node: the one that was *planned* for it, or *base* with the declared *strategy*.

    None for a strategy with a device plugin of its own. Without a strategy, it is *base*, the configuration of all nodes.
    """
    row = STRATEGIES.get(strategy)
    if planned or row is None:
        return planned or base
    return (build_config(base, row, request).document or base) if row.by_nvidia else None


def _get_memory(gpu: Mapping[str, Any]) -> int:
    return int(gpu.get("memory_total_bytes") or 0)


def _warn_of_mixed(gpus: list[dict[str, Any]], product: str, memory: int) -> list[str]:
    kinds: dict[str, int] = {}
    for gpu in gpus:
        kind = f"{gpu.get('name') or 'unknown'} ({_get_memory(gpu) // MIB} MiB)"
        kinds[kind] = kinds.get(kind, 0) + 1
    if len(kinds) < 2:
        return []
    named = ", ".join(f"{count} x {kind}" for kind, count in sorted(kinds.items()))
    return [f"different GPUs in one node: {named}; the labels name the smallest, {product} with {memory} MiB"]


def count_units(
    facts: Mapping[str, Any],
    resource: str = GPU_RESOURCE,
    config: Mapping[str, Any] | None = None,
    unit: str = "GiB",
) -> int:
    """Return how many units of the resource the device plugin of its sharing strategy will register.

    *config* is the configuration of NVIDIA's device plugin. *unit* is that of shared memory, GiB or MiB; the memory of the first GPU is rounded
    down, and counts for each. Raises GpuFactsError as ``count_expected`` does.
    """
    strategy, gpus = strategy_of(resource), list_working_gpus(facts)
    measure = strategy.measure if resource in strategy.counted.values() else "devices"
    if measure == "memory":
        return len(gpus) * (_get_memory(gpus[0]) // MEMORY_UNITS[unit]) if gpus else 0
    if measure == "shares":
        return len(gpus) * next(each.units_per_gpu for each in strategy.shared if each.name == resource)
    return count_expected(facts, config, resource)


def count_expected(
    facts: Mapping[str, Any], config: Mapping[str, Any] | None = None, resource: str = GPU_RESOURCE
) -> int:
    """Return how many units of ``resource`` NVIDIA's device plugin will report with this configuration file.

    It is the number of working GPUs times the replicas of time slicing or MPS. With the MIG strategy ``single``, each MIG device counts
    instead of its GPU; with ``mixed``, it counts as the resource of its profile. Raises GpuFactsError for MIG devices that are unknown
    without NVML, and for replicas that are not a number.
    """
    settings = dict(config or {})
    gpus = list_working_gpus(facts)
    strategy = (settings.get("flags") or {}).get("migStrategy") or "none"
    sliced = [gpu for gpu in gpus if gpu.get("mig_mode") == "enabled"] if strategy in ("single", "mixed") else []
    profile = _find_profile(resource)
    counted = 0 if profile else len(gpus) - len(sliced)
    if sliced and (profile or strategy == "single"):
        if facts.get("source") != "nvml":
            raise GpuFactsError(
                f"migStrategy is {strategy} and the MIG devices are known from NVML only; install the driver's library libnvidia-ml, or "
                "set k8s_device_plugin_expected_gpus for this host"
            )
        devices = [device for gpu in sliced for device in gpu.get("mig_devices") or []]
        counted += sum(profile is None or get_profile(device) == profile for device in devices)
    return counted * count_replicas(settings, resource)


def count_resources(facts: Mapping[str, Any], config: Mapping[str, Any] | None = None) -> dict[str, int]:
    """Return the units of every resource that NVIDIA's device plugin will report with this configuration; that of whole GPUs even with 0.

    Raises GpuFactsError as ``count_expected`` does.
    """
    gpus = list_working_gpus(facts) if ((config or {}).get("flags") or {}).get("migStrategy") == "mixed" else []
    profiles = {MIG_RESOURCE + get_profile(device) for gpu in gpus for device in gpu.get("mig_devices") or []}
    names = [name + suffix for name in (GPU_RESOURCE, *sorted(profiles)) for suffix in ("", SHARED)]
    counted = {name: count_expected(facts, config, name) for name in names}
    return {name: units for name, units in counted.items() if units or name == GPU_RESOURCE}


def _find_profile(resource: str) -> str | None:
    """Return the profile of MIG devices in the name of their resource, None if it is another one."""
    name = resource[: -len(SHARED)] if resource.endswith(SHARED) else resource
    return name[len(MIG_RESOURCE) :] if name.startswith(MIG_RESOURCE) else None


def count_replicas(config: Mapping[str, Any], resource: str) -> int:
    """Return how many units of ``resource`` each GPU or MIG device is: 0 if it is another resource, 1 if it is not shared.

    With ``renameByDefault``, a shared ``nvidia.com/gpu`` becomes ``nvidia.com/gpu.shared``.
    """
    sharing = config.get("sharing") or {}
    shared = sharing.get("timeSlicing") or sharing.get("mps") or {}
    suffix = SHARED if shared.get("renameByDefault") else ""
    for entry in shared.get("resources") or []:
        name = str(entry.get("name"))
        if resource in (name, name + suffix):
            return _parse_replicas(entry.get("replicas")) if resource == name + suffix else 0
    return int(resource == GPU_RESOURCE or (resource.startswith(MIG_RESOURCE) and not resource.endswith(SHARED)))


def _parse_replicas(given: Any) -> int:
    if isinstance(given, bool) or not re.fullmatch(r"[0-9]+", str(given or 1)):
        raise GpuFactsError(f"replicas in the plugin's configuration is {given!r}; write a whole number")
    return int(given or 1)
