# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in memory in which gpushare places new pods: kube-scheduler, extender and device plugin, as far as the API shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .gpushare import GPU_COUNT, GPU_MEM
from .kubernetes_api import FakeCluster, Object, node

INDEX, REQUEST = "ALIYUN_COM_GPU_MEM_IDX", "ALIYUN_COM_GPU_MEM_POD"
ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"
PASSED = "Test PASSED\n"
AWAY = 'Post "http://127.0.0.1:32766/gpushare-scheduler/filter": dial tcp 127.0.0.1:32766: connect: connection refused'


def shared_node(name: str, memory: int = 16, gpus: int = 1, **parts: Any) -> Object:
    """Make a node of that many GPUs, each with this much gpu-mem; none offers gpu-mem without a count."""
    made = node(name, **parts)
    offered = {GPU_MEM: str(memory * max(gpus, 1)), **({GPU_COUNT: str(gpus)} if gpus else {})}
    made["status"].update(capacity=dict(offered), allocatable=dict(offered))
    return made


def request_of(item: Object) -> int:
    """The gpu-mem that a pod requests."""
    limits = (each.get("resources", {}).get("limits", {}) for each in item["spec"]["containers"])
    return sum(int(each.get(GPU_MEM, 0)) for each in limits)


def uuid_of(name: str, index: int) -> str:
    """The UUID of a GPU of a node."""
    return f"GPU-{sum(name.encode()):08x}-0000-0000-0000-{index:012x}"


class FakeGpushare(FakeCluster):
    """Places pods as they are created. What is to go wrong is said by its attributes, or done by ``on_placed`` to the pod."""

    def __init__(self, nodes: list[Object] | None = None, pods: list[Object] | None = None) -> None:
        super().__init__(nodes, pods)
        self.on_create = self._place
        self.on_placed: Callable[[Object], None] = lambda _pod: None
        # What kube-scheduler says instead of placing a pod; "" places it.
        self.refusal: Callable[[Object], str] = lambda _pod: ""
        self.asks_extender = True
        self.ends = True
        self.output = PASSED

    def _place(self, made: Object) -> None:
        terms = made["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        name = terms["nodeSelectorTerms"][0]["matchFields"][0]["values"][0]
        said = self.refusal(made) or self._short(name, request_of(made))
        if said:
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": said}
            made["status"]["conditions"] = [condition]
        else:
            self._bind(made, name)
        self.on_placed(made)

    def _short(self, name: str, amount: int) -> str:
        """What kube-scheduler says if the node as a whole has too little, or else the extender if no GPU has enough."""
        total = int(self.store_nodes[name]["status"]["allocatable"][GPU_MEM])
        if total - sum(request_of(item) for item in self._holding(name)) < amount:
            return f"0/1 nodes are available: 1 Insufficient {GPU_MEM}."
        if self.asks_extender and self._fitting(name, amount) is None:
            return "0/1 nodes are available: 1 Insufficient GPU Memory in one device."
        return ""

    def _holding(self, name: str) -> list[Object]:
        ended = ("Succeeded", "Failed")
        placed = [item for item in self.store_pods if item["spec"].get("nodeName") == name]
        return [item for item in placed if item["status"].get("phase") not in ended]

    def _fitting(self, name: str, amount: int) -> int | None:
        capacity = self.store_nodes[name]["status"]["capacity"]
        free = dict.fromkeys(range(int(capacity[GPU_COUNT])), int(capacity[GPU_MEM]) // int(capacity[GPU_COUNT]))
        for item in self._holding(name):
            annotations = item["metadata"].get("annotations", {})
            if INDEX in annotations and "deletionTimestamp" not in item["metadata"]:
                free[int(annotations[INDEX])] -= int(annotations.get(REQUEST, request_of(item)))
        chosen = None
        for index, left in free.items():
            if left >= amount and (chosen is None or left < free[chosen]):
                chosen = index
        return chosen

    def _bind(self, made: Object, name: str) -> None:
        index = self._fitting(name, request_of(made)) if self.asks_extender else None
        if index is not None:
            annotations = {INDEX: str(index), REQUEST: str(request_of(made)), ASSIGNED: "true"}
            made["metadata"]["annotations"] = annotations
        made["spec"]["nodeName"] = name
        state = {"terminated": {"exitCode": 0}} if self.ends else {"running": {}}
        made["status"] = {
            "phase": "Succeeded" if self.ends else "Running",
            "containerStatuses": [{"name": "smoke-test", "ready": not self.ends, "state": state}],
        }
        self.logs[made["metadata"]["name"]] = f"NVIDIA_VISIBLE_DEVICES={uuid_of(name, index or 0)}\n{self.output}"
