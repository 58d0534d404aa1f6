# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What NVIDIA's GPU Operator deploys on nodes, as its ClusterPolicy or GPUCluster and the labels of the nodes declare it.

Source: api/nvidia/v1, api/nvidia/v1alpha1 and controllers of NVIDIA/gpu-operator v26.7, and k8s-driver-manager, which sets the label of the driver to
pre-installed where the host has one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Sequence

#: The role that shares the GPUs of nodes whose device plugin the operator deploys.
OPERATOR_ROLE = "gpu_operator"
LABEL_PREFIX = "nvidia.com/gpu.deploy."
#: By part, its section of a ClusterPolicy, and the end of the label that keeps it off a node.
PARTS = {
    "driver": ("driver", "driver"),
    "toolkit": ("toolkit", "container-toolkit"),
    "device_plugin": ("devicePlugin", "device-plugin"),
    "feature_discovery": ("gfd", "gpu-feature-discovery"),
    "mig_manager": ("migManager", "mig-manager"),
}
#: The same of a GPUCluster, which a cluster has instead of a ClusterPolicy. Its DRA driver allocates the GPUs, and cannot be switched off there.
DRA_PARTS = {"dra_driver": ("draDriver", "dra-driver")}
#: The label of a pod of the device plugin, and the values of that label of all pods that read its configuration. The control daemon of MPS is the
#: first, so that the device plugin does not find the former one.
PLUGIN_LABELS = {"app": "nvidia-device-plugin-daemonset"}
CONFIGURED_PODS = (
    "nvidia-device-plugin-mps-control-daemon",
    "nvidia-device-plugin-daemonset",
    "gpu-feature-discovery",
)
#: The label that requests MIG devices from the operator's MIG manager, and the one with the result.
MIG_LABEL, MIG_STATE_LABEL = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
#: The MIG manager's configuration without MIG devices.
MIG_DISABLED = "all-disabled"
#: Where the chart is installed if the operator has not reported another namespace yet.
NAMESPACE = "gpu-operator"


@dataclass(frozen=True)
class GpuOperator:
    """What the ClusterPolicy or GPUCluster declares: ``enabled`` has keys of PARTS or DRA_PARTS; texts are empty if it leaves them out."""

    namespace: str = NAMESPACE
    enabled: Sequence[str] = tuple(PARTS)
    # The ConfigMap with the configurations of the device plugin, and the one of nodes without a label.
    config_map: str = ""
    default_config: str = ""
    mig_strategy: str = ""

    def find_parts(self, labels: Mapping[str, str]) -> list[str]:
        """Return the enabled parts that the operator runs on a node with these labels, or will once it has labelled the node."""
        if labels.get(f"{LABEL_PREFIX}operands") == "false":
            return []
        return [part for part in self.enabled if _is_admitted(labels.get(label_of(part), ""))]


def label_of(part: str) -> str:
    """Return the label that keeps a part off a node."""
    return LABEL_PREFIX + {**PARTS, **DRA_PARTS}[part][1]


def _is_admitted(value: str) -> bool:
    """Return whether the operator, which has set no label yet, runs a part or has paused it, as for a change of MIG devices."""
    return value in ("", "true") or value.startswith("paused-")


def has_operator_label(labels: Mapping[str, str]) -> bool:
    """Return whether a GPU Operator, or a user for it, has labelled the node."""
    return any(name.startswith(LABEL_PREFIX) for name in labels)


def read_operator(policies: Iterable[Mapping[str, Any]]) -> GpuOperator | None:
    """Return what the ClusterPolicy in use declares; None without one. The operator ignores all others."""
    used = [each for each in policies if _section(each, "status").get("state") != "ignored"]
    if not used:
        return None
    spec, status = _section(used[0], "spec"), _section(used[0], "status")
    config = _section(_section(spec, "devicePlugin"), "config")
    return GpuOperator(
        namespace=str(status.get("namespace") or NAMESPACE),
        # A part is enabled unless the ClusterPolicy disables it.
        enabled=tuple(
            part for part, (name, _label) in PARTS.items() if _section(spec, name).get("enabled") is not False
        ),
        config_map=str(config.get("name") or ""),
        default_config=str(config.get("default") or ""),
        mig_strategy=str(_section(spec, "mig").get("strategy") or ""),
    )


def read_gpu_cluster(gpu_clusters: Iterable[Mapping[str, Any]]) -> GpuOperator | None:
    """Return what the GPUCluster declares, of which the operator accepts one; None without one."""
    return GpuOperator(enabled=tuple(DRA_PARTS)) if any(True for _each in gpu_clusters) else None


def _section(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = parent.get(name)
    return found if isinstance(found, Mapping) else {}


@dataclass(frozen=True)
class OperatorState:
    """The operator, and what is in the cluster of its device plugin's configurations.

    ``configs`` are those of this collection in its ConfigMap, by their keys; None if the ConfigMap does not exist. ``config_names`` are the
    keys that nodes name, or empty texts: of all nodes, because a part of the operator may read a key where its device plugin does not run.
    """

    policy: GpuOperator
    configs: Mapping[str, Any] | None = None
    config_names: Mapping[str, str] = field(default_factory=dict)
