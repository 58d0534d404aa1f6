# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in memory in which pods share GPUs: kube-scheduler, extender and device plugin, as far as the API shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES, SharedResource

from .kubernetes_api import FakeCluster, Object, node, pod

[MEMORY] = STRATEGIES["gpushare"].shared
PERCENT, CORE = STRATEGIES["nano_gpu"].shared
PASSED = "Test PASSED\n"
AWAY = 'Post "http://127.0.0.1:32766/gpushare-scheduler/filter": dial tcp 127.0.0.1:32766: connect: connection refused'
TOO_LARGE = "0/1 nodes are available: 1 Insufficient GPU Memory in one device."


def shared_node(name: str, size: int = 16, gpus: int = 1, resource: SharedResource = MEMORY, **parts: Any) -> Object:
    """Make a node of that many GPUs, each with this many units of the resource; without GPUs it reports the units of one."""
    item = node(name, **parts)
    amounts = {resource.name: str(size * max(gpus, 1))}
    if resource.gpu_count_resource and gpus:
        amounts[resource.gpu_count_resource] = str(gpus)
    item["status"].update(capacity=dict(amounts), allocatable=dict(amounts))
    return item


def holder(name: str, amount: int, index: int, resource: SharedResource = MEMORY, **parts: Any) -> Object:
    """Make a running pod of others on w1 that has this amount of a GPU."""
    containers = [{"name": "main", "resources": {"limits": {resource.name: str(amount)}}}]
    return pod(name, on="w1", annotations={resource.gpu_annotation: str(index)}, containers=containers, **parts)


def uuid_of(name: str, index: int) -> str:
    """The UUID of a GPU of a node."""
    return f"GPU-{sum(name.encode()):08x}-0000-0000-0000-{index:012x}"


class FakeSharing(FakeCluster):
    """Places pods when they are created. Its attributes and the hook ``on_placed`` set faults."""

    def __init__(
        self, nodes: list[Object] | None = None, pods: list[Object] | None = None, resource: SharedResource = MEMORY
    ) -> None:
        super().__init__(nodes, pods)
        self.resource = resource
        self.on_create = self._place
        self.on_placed: Callable[[Object], None] = lambda _pod: None
        # What kube-scheduler reports instead of placing a pod; "" places it.
        self.refusal: Callable[[Object], str] = lambda _pod: ""
        self.calls_extender = True
        self.ends = True
        self.output = PASSED

    def request_of(self, item: Object) -> int:
        """The units of the resource that a pod requests."""
        limits = (each.get("resources", {}).get("limits", {}) for each in item["spec"]["containers"])
        return sum(int(each.get(self.resource.name, 0)) for each in limits)

    def _place(self, new_pod: Object) -> None:
        terms = new_pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        name = terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
        message = self.refusal(new_pod) or self._refuse(name, self.request_of(new_pod))
        if message:
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
            new_pod["status"]["conditions"] = [condition]
        else:
            self._bind(new_pod, name)
        self.on_placed(new_pod)

    def _refuse(self, name: str, amount: int) -> str:
        """What kube-scheduler reports if the node as a whole has too little, or else the extender if no GPU has enough."""
        total = int(self.store_nodes[name]["status"]["allocatable"][self.resource.name])
        if total - sum(self.request_of(item) for item in self._active_pods(name)) < amount:
            return f"0/1 nodes are available: 1 Insufficient {self.resource.name}."
        return TOO_LARGE if self.calls_extender and self._choose(name, amount) is None else ""

    def _active_pods(self, name: str) -> list[Object]:
        placed = [item for item in self.store_pods if item["spec"].get("nodeName") == name]
        return [item for item in placed if item["status"].get("phase") not in ("Succeeded", "Failed")]

    def _choose(self, name: str, amount: int) -> int | None:
        """The GPU with the least that is enough, the lowest index among equals."""
        capacity = {key: int(value) for key, value in self.store_nodes[name]["status"]["capacity"].items()}
        total = capacity[self.resource.name]
        gpus = capacity.get(self.resource.gpu_count_resource) or total // self.resource.units_per_gpu
        free = dict.fromkeys(range(gpus), total // gpus)
        for item in self._active_pods(name):
            index = item["metadata"].get("annotations", {}).get(self.resource.gpu_annotation)
            if index is not None:
                free[int(index)] -= self.request_of(item)
        candidates = [(left, index) for index, left in free.items() if left >= amount]
        return min(candidates)[1] if candidates else None

    def _bind(self, new_pod: Object, name: str) -> None:
        index = self._choose(name, self.request_of(new_pod)) if self.calls_extender else None
        if index is not None:
            new_pod["metadata"]["annotations"] = {self.resource.gpu_annotation: str(index)}
        new_pod["spec"]["nodeName"] = name
        state = {"terminated": {"exitCode": 0}} if self.ends else {"running": {}}
        new_pod["status"] = {
            "phase": "Succeeded" if self.ends else "Running",
            "containerStatuses": [{"name": "smoke-test", "ready": not self.ends, "state": state}],
        }
        self.logs[new_pod["metadata"]["name"]] = f"NVIDIA_VISIBLE_DEVICES={uuid_of(name, index or 0)}\n{self.output}"
