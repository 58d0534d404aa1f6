# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of sharing strategies: one row holds all that differs between them."""

from __future__ import annotations

import glob
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Iterable, Mapping

from .._kubernetes.smoke_test.pod import CONTAINER, SharedResource

#: Shell patterns of the resources of NVIDIA's device plugin: whole GPUs, shared GPUs and MIG slices. Its network operator has other names below nvidia.com.
NVIDIA_RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/mig-?*")


@dataclass(frozen=True)
class Strategy:
    """One sharing strategy. ``resources`` are shell patterns of the extended resources that its pods hold."""

    name: str
    resources: tuple[str, ...]
    # The tag of the playbooks that deploys its device plugin.
    tag: str
    # The role that deploys its device plugin, whose variables begin with its name.
    role: str
    # Whether NVIDIA's device plugin serves it. All others have a device plugin of their own, and an extender of kube-scheduler that binds pods.
    by_nvidia: bool = False
    # The label of its nodes, which keeps NVIDIA's device plugin off them; empty for the strategies of that plugin.
    label: Mapping[str, str] = field(default_factory=dict)
    # The name of its DaemonSet, for the strategies that have a label.
    daemon_set: str = ""
    # Resources that a node without the label still offers while the strategy is being removed.
    offered_until_removed: tuple[str, ...] = ()
    # Resources that stay in the node's capacity until the removal is complete.
    in_capacity_until_removed: tuple[str, ...] = ()
    # Whether its device plugin replaces programs of the host, which are kept until the removal is complete.
    replaces_programs: bool = False
    # Whether its removal takes the label off last, so that a node without the label has nothing left of it.
    label_removed_last: bool = False
    # The resources whose pods share a GPU in the smoke test; empty if one pod tests a GPU.
    shared: tuple[SharedResource, ...] = ()
    # The tag of its published extender, if that binds no pods with a runtimeClassName.
    tag_without_runtime_class: str = ""

    def is_labelled(self, labels: Mapping[str, str]) -> bool:
        """Return whether a node with these labels has the strategy's label."""
        return bool(self.label) and all(labels.get(key) == value for key, value in self.label.items())

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON types."""
        return asdict(self)


#: By name, in the order in which they are named where a host has several.
STRATEGIES = {
    row.name: row
    for row in (
        *(
            Strategy(name, NVIDIA_RESOURCES, tag="device_plugin", role="k8s_device_plugin", by_nvidia=True)
            for name in ("exclusive", "time_slicing", "mps", "mig")
        ),
        Strategy(
            "gpushare",
            ("aliyun.com/gpu-mem",),
            tag="gpushare",
            role="gpushare",
            label={"gpushare": "true"},
            daemon_set="gpushare-device-plugin-ds",
            # The memory stays in the node's capacity for minutes after the removal, so only the number of GPUs counts there.
            offered_until_removed=("aliyun.com/gpu-mem",),
            in_capacity_until_removed=("aliyun.com/gpu-count",),
            shared=(
                SharedResource(
                    "aliyun.com/gpu-mem",
                    gpu_count_resource="aliyun.com/gpu-count",
                    gpu_annotation="ALIYUN_COM_GPU_MEM_IDX",
                ),
            ),
            tag_without_runtime_class="1.11-d170d8a",
        ),
        Strategy(
            "nano_gpu",
            ("nano-gpu/*", "elasticgpu.io/*"),
            tag="nano_gpu",
            role="nano_gpu",
            label={"gpu-kubernetes/nano-gpu": "true"},
            daemon_set="nano-gpu-agent",
            replaces_programs=True,
            label_removed_last=True,
            shared=(
                SharedResource(
                    "nano-gpu/gpu-percent", units_per_gpu=100, gpu_annotation=f"nano-gpu/container-{CONTAINER}"
                ),
                SharedResource(
                    "elasticgpu.io/gpu-core",
                    units_per_gpu=100,
                    spans_gpus=True,
                    gpu_annotation=f"elasticgpu.io/container-{CONTAINER}",
                ),
            ),
        ),
    )
}
#: The strategies with an extender of kube-scheduler.
EXTENDED = tuple(row for row in STRATEGIES.values() if not row.by_nvidia)


def nvidia_resources(resource_name: str) -> tuple[str, ...]:
    """Return the shell patterns of the resources of NVIDIA's device plugin, and of the one that it is configured to register."""
    return (*NVIDIA_RESOURCES, glob.escape(resource_name))


def matching(amounts: Mapping[str, int], patterns: Iterable[str]) -> dict[str, int]:
    """Return those of the amounts by resource whose resource matches one of the shell patterns, in units of each resource."""
    wanted = tuple(patterns)
    return {name: amount for name, amount in amounts.items() if any(fnmatchcase(name, each) for each in wanted)}
