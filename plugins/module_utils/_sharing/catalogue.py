# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of sharing strategies: one row holds all that differs between them. No other code names a strategy."""

from __future__ import annotations

import glob
import re
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Iterable, Mapping

from .._vendors import OTHER_RESOURCES

#: Shell pattern of MIG slices that have the name of their profile.
SLICES = "nvidia.com/mig-?*"
#: Those of all resources of NVIDIA's device plugin: whole GPUs, shared GPUs and these slices. Its network operator has other names below nvidia.com.
NVIDIA_RESOURCES = ("nvidia.com/gpu", "nvidia.com/gpu.shared", SLICES)
#: The role that deploys NVIDIA's device plugin.
NVIDIA_ROLE = "k8s_device_plugin"
#: Which pods are evicted before a node changes, from none to more.
DRAINS = ("none", "gpu", "all")


#: The container of the smoke test's pods; annotations of pods can have its name.
CONTAINER = "smoke-test"


@dataclass(frozen=True)
class SharedResource:
    """A resource by which several pods get parts of one GPU, in whole units.

    A GPU has ``units_per_gpu``, or an equal part of what the node has; its number of GPUs is then in ``gpu_count_resource``.
    A request above one GPU gets several whole GPUs if ``spans_gpus``. The scheduler extender writes the index of a pod's GPU into
    the annotation ``gpu_annotation``; empty if it writes none.
    """

    name: str
    units_per_gpu: int = 0
    gpu_count_resource: str = ""
    spans_gpus: bool = False
    gpu_annotation: str = ""

    def name_annotation(self, container: str) -> str:
        """Return the annotation ``gpu_annotation`` for a container of another name than that of the smoke test."""
        return re.sub(rf"{CONTAINER}\Z", lambda _match: container, self.gpu_annotation)


@dataclass(frozen=True)
class Strategy:
    """One sharing strategy. ``resources`` are shell patterns of the extended resources that its pods hold."""

    name: str
    resources: tuple[str, ...]
    # The role that deploys its device plugin. Except for NVIDIA's, it has the strategy's name and the entry points preflight, cluster_present,
    # node_absent, node_present, cluster_absent and verify.
    role: str = NVIDIA_ROLE
    # For NVIDIA's device plugin: the section of its configuration by which pods share a GPU, whether it offers MIG devices, and the role, of the
    # strategy's name, with the entry points preflight, node_absent and node_present for what a node needs besides the plugin. Empty without them.
    sharing_section: str = ""
    mig: bool = False
    host_role: str = ""
    # Whether ``host_role`` also has the entry point preflight_absent, because leaving may need a permission, and may reboot the host, where that is allowed.
    checks_leaving: bool = False
    may_reboot: bool = False
    # Whether a node leaves the strategy and enters it again to change its configuration.
    restarts: bool = False
    # Whether it has objects in the cluster, which its role removes by the entry point cluster_absent. With a device plugin of its own, the role
    # deploys them by cluster_present; NVIDIA's role deploys those of the others.
    in_cluster: bool = False
    # The role that sets the label by which its device plugin selects nodes, and the variable with more tolerations of that plugin.
    labelling_role: str = "gpu_node_labels"
    tolerations: str = "k8s_device_plugin_tolerations"
    # The resource of which a node reports a fixed amount for each GPU, by the value of the variable ROLE_api, which is empty without that variable.
    counted: Mapping[str, str] = field(default_factory=lambda: {"": "nvidia.com/gpu"})
    # What a GPU adds to that amount: one device times the replicas of the configuration, its units of memory, or the
    # ``units_per_gpu`` of ``shared``.
    measure: str = "devices"
    # Whether kube-scheduler decides alone ("default"), or an extender of it binds the pods ("extender"), of which a kube-scheduler accepts one.
    scheduler: str = "default"
    # The end of the extender's address, if no other extender has it.
    extender_path: str = ""
    # Which pods are evicted before a node enters or leaves the strategy.
    drain: str = "gpu"
    # The label of its nodes, which keeps NVIDIA's device plugin off them; empty for the strategies of that plugin. It is removed last from the last
    # nodes of the cluster that have it, so that it marks an unfinished removal.
    label: Mapping[str, str] = field(default_factory=dict)
    # The name of its DaemonSet and the label of its pods.
    daemon_set: str = "nvidia-device-plugin-daemonset"
    plugin_labels: Mapping[str, str] = field(default_factory=lambda: {"name": "nvidia-device-plugin-ds"})
    # Resources that a node without the label still offers, or has in its capacity, until the strategy is removed.
    offered_until_removed: tuple[str, ...] = ()
    in_capacity_until_removed: tuple[str, ...] = ()
    # The name of the record, below the collection's folder on the host, that exists while files of the host are replaced; empty if it replaces none.
    host_record: str = ""
    # The resources whose pods share a GPU in the smoke test; empty if one pod tests a GPU.
    shared: tuple[SharedResource, ...] = ()
    # Its published extender, as ``repository:tag``, if that binds no pods with a runtimeClassName.
    image_without_runtime_class: str = ""

    @property
    def by_nvidia(self) -> bool:
        """Return whether NVIDIA's device plugin serves the strategy."""
        return self.role == NVIDIA_ROLE

    @property
    def node_role(self) -> str:
        """Return the role whose entry points change a node; empty if the device plugin is all that a node needs."""
        return self.host_role if self.by_nvidia else self.role

    def is_labelled(self, labels: Mapping[str, str]) -> bool:
        """Return whether a node with these labels has the strategy's label."""
        return bool(self.label) and all(labels.get(key) == value for key, value in self.label.items())

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON types, with ``exclusions``: requirements of a node affinity that keep pods off the strategy's nodes."""
        exclusions = [{"key": key, "operator": "NotIn", "values": [value]} for key, value in self.label.items()]
        return {**asdict(self), "by_nvidia": self.by_nvidia, "node_role": self.node_role, "exclusions": exclusions}


#: By name, in the order in which they are named where a host has several.
STRATEGIES = {
    row.name: row
    for row in (
        Strategy("exclusive", NVIDIA_RESOURCES),
        Strategy("time_slicing", NVIDIA_RESOURCES, sharing_section="timeSlicing"),
        Strategy("mps", NVIDIA_RESOURCES, sharing_section="mps", host_role="mps", restarts=True, in_cluster=True),
        Strategy(
            "mig",
            NVIDIA_RESOURCES,
            mig=True,
            host_role="mig",
            checks_leaving=True,
            may_reboot=True,
            host_record="state/mig.json",
        ),
        Strategy(
            "gpushare",
            ("aliyun.com/gpu-mem",),
            role="gpushare",
            in_cluster=True,
            labelling_role="gpushare",
            tolerations="gpushare_device_plugin_tolerations",
            counted={"": "aliyun.com/gpu-mem"},
            measure="memory",
            scheduler="extender",
            extender_path="/gpushare-scheduler",
            label={"gpushare": "true"},
            daemon_set="gpushare-device-plugin-ds",
            plugin_labels={"name": "gpushare-device-plugin-ds"},
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
            image_without_runtime_class="acs/k8s-gpushare-schd-extender:1.11-d170d8a",
        ),
        Strategy(
            "nano_gpu",
            ("nano-gpu/*", "nano-gpu.io/*", "elasticgpu.io/*"),
            role="nano_gpu",
            in_cluster=True,
            labelling_role="nano_gpu",
            tolerations="nano_gpu_agent_tolerations",
            counted={
                "": "nano-gpu/gpu-percent",
                "nano-gpu": "nano-gpu/gpu-percent",
                "elasticgpu": "elasticgpu.io/gpu-core",
            },
            measure="shares",
            scheduler="extender",
            label={"gpu-kubernetes/nano-gpu": "true"},
            daemon_set="nano-gpu-agent",
            plugin_labels={"app": "nano-gpu-agent"},
            host_record="state/nano-gpu-programs.json",
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
#: The strategies with a device plugin of their own.
OWN_PLUGIN = tuple(row for row in STRATEGIES.values() if not row.by_nvidia)
#: Shell patterns of all resources that pods request for GPUs.
GPU_PATTERNS = (*dict.fromkeys(pattern for row in STRATEGIES.values() for pattern in row.resources), *OTHER_RESOURCES)
#: The strategies of which a role changes nodes, and those of them with objects in the cluster.
WITH_NODE_ROLE = tuple(row for row in STRATEGIES.values() if row.node_role)
IN_CLUSTER = tuple(row for row in WITH_NODE_ROLE if row.in_cluster)


def nvidia_resources(resource_name: str) -> tuple[str, ...]:
    """Return the shell patterns of the resources of NVIDIA's device plugin, and of the one that it is configured to register."""
    return (*NVIDIA_RESOURCES, glob.escape(resource_name))


def matching(amounts: Mapping[str, int], patterns: Iterable[str]) -> dict[str, int]:
    """Return those of the amounts by resource whose resource matches one of the shell patterns, in units of each resource."""
    wanted = tuple(patterns)
    return {name: amount for name, amount in amounts.items() if any(fnmatchcase(name, each) for each in wanted)}


def strategy_resources(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return those of the amounts by resource that pods request for GPUs, by any strategy."""
    return matching(amounts, (pattern for row in STRATEGIES.values() for pattern in row.resources))


def gpu_resources(amounts: Mapping[str, int]) -> dict[str, int]:
    """Return those of the amounts by resource that pods request for GPUs, by any strategy and of any vendor."""
    return matching(amounts, GPU_PATTERNS)


def strategy_of(resource: str) -> Strategy:
    """Return the strategy whose device plugin registers the resource; the first one of NVIDIA's device plugin for any other."""
    rows = (row for row in OWN_PLUGIN if any(fnmatchcase(resource, each) for each in (*row.resources, *_left_by(row))))
    return next(rows, next(iter(STRATEGIES.values())))


def _left_by(row: Strategy) -> tuple[str, ...]:
    return (*row.offered_until_removed, *row.in_capacity_until_removed)
