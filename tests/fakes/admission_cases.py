# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes that accounts of sharing strategies are allowed: for a CEL engine in unit tests, and for a real API server in a scenario."""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

PLUGIN, EXTENDER = "gpushare-device-plugin", "gpushare-schd-extender"
AGENT, SCHEDULER = "nano-gpu-agent", "nano-gpu-scheduler"
#: The node of the pod, which is also the node that is changed, and the node of the token: the same one, another one, or unknown.
OWN, OTHER, UNKNOWN = "own", "other", ""


class Case(NamedTuple):
    """A JSON patch of a pod or of a node's status by an account, with the node of its token, and whether it is allowed."""

    account: str
    path: str
    value: Any
    allowed: bool
    token: str = OWN
    resource: str = "pods"
    operation: str = "add"

    @property
    def patch(self) -> list[dict[str, Any]]:
        """The patch; a removal has no value."""
        value = {} if self.operation == "remove" else {"value": self.value}
        return [{"op": self.operation, "path": self.path, **value}]


ANNOTATION, LABEL = "/metadata/annotations/", "/metadata/labels/"
IMAGE = "/spec/containers/0/image"
OWNER = {"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": "00000000-0000-0000-0000-000000000000"}
TOLERATION = {"key": "other", "operator": "Exists"}
COUNT = "/status/capacity/aliyun.com~1gpu-count"
STATUS = "nodes/status"

#: Cases for a real API server, too: these accounts have the permission to patch.
GPUSHARE = {
    "own-annotation": Case(PLUGIN, f"{ANNOTATION}ALIYUN_COM_GPU_MEM_ASSIGNED", "true", True),
    "own-annotation-removed": Case(PLUGIN, f"{ANNOTATION}ALIYUN_COM_GPU_MEM_IDX", None, True, operation="remove"),
    "token-without-node": Case(PLUGIN, f"{ANNOTATION}ALIYUN_COM_GPU_MEM_ASSIGNED", "false", True, token=UNKNOWN),
    "pod-of-another-node": Case(PLUGIN, f"{ANNOTATION}ALIYUN_COM_GPU_MEM_ASSIGNED", "true", False, token=OTHER),
    "other-annotation": Case(PLUGIN, f"{ANNOTATION}other", "x", False),
    "other-annotation-changed": Case(PLUGIN, f"{ANNOTATION}kept", "x", False),
    "other-annotation-removed": Case(PLUGIN, f"{ANNOTATION}kept", None, False, operation="remove"),
    "annotation-with-the-prefix-inside": Case(PLUGIN, f"{ANNOTATION}x_ALIYUN_COM_GPU_MEM_IDX", "x", False),
    "all-annotations-removed": Case(PLUGIN, "/metadata/annotations", None, False, operation="remove"),
    "label": Case(PLUGIN, f"{LABEL}ALIYUN_COM_GPU_MEM_IDX", "x", False),
    "image": Case(PLUGIN, IMAGE, "example.com/other:1", False),
    "toleration": Case(PLUGIN, "/spec/tolerations/-", TOLERATION, False),
    "deadline": Case(PLUGIN, "/spec/activeDeadlineSeconds", 1, False),
    "finalizer": Case(PLUGIN, "/metadata/finalizers", ["example.com/other"], False),
    "owner": Case(PLUGIN, "/metadata/ownerReferences", [OWNER], False),
    "count-of-own-node": Case(PLUGIN, COUNT, "8", True, resource=STATUS),
    "count-of-another-node": Case(PLUGIN, COUNT, "8", False, token=OTHER, resource=STATUS),
    "label-of-own-node": Case(PLUGIN, f"{LABEL}other", "x", False, resource=STATUS),
    "annotation-of-own-node": Case(PLUGIN, f"{ANNOTATION}ALIYUN_COM_GPU_MEM_IDX", "x", False, resource=STATUS),
    "extender-annotation": Case(EXTENDER, f"{ANNOTATION}ALIYUN_COM_GPU_MEM_IDX", "1", True, token=OTHER),
    "extender-other-annotation": Case(EXTENDER, f"{ANNOTATION}other", "x", False),
    "extender-label": Case(EXTENDER, f"{LABEL}other", "x", False),
    "extender-image": Case(EXTENDER, IMAGE, "example.com/other:1", False),
}
NANO_GPU = {
    "scheduler-annotation": Case(SCHEDULER, f"{ANNOTATION}nano-gpu~1container-main", "0", True, token=OTHER),
    "scheduler-label": Case(SCHEDULER, f"{LABEL}nano-gpu~1assume", "true", True),
    "scheduler-successor": Case(SCHEDULER, f"{LABEL}elasticgpu.io~1assumed", "true", True),
    "scheduler-other-annotation": Case(SCHEDULER, f"{ANNOTATION}other", "x", False),
    "scheduler-other-label": Case(SCHEDULER, f"{LABEL}other", "x", False),
    "scheduler-image": Case(SCHEDULER, IMAGE, "example.com/other:1", False),
    "scheduler-node": Case(SCHEDULER, f"{LABEL}nano-gpu~1assume", "true", False, resource=STATUS),
    "agent-annotation": Case(AGENT, f"{ANNOTATION}nano-gpu~1container-main", "0", False),
    "agent-image": Case(AGENT, IMAGE, "example.com/other:1", False),
}
CASES = {**GPUSHARE, **NANO_GPU}

ANNOTATIONS = {"kept": "yes", "ALIYUN_COM_GPU_MEM_IDX": "0"}
POD: dict[str, Any] = {
    "metadata": {"name": "pod", "namespace": "default", "labels": {"app": "x"}, "annotations": ANNOTATIONS},
    "spec": {"nodeName": OWN, "containers": [{"name": "main", "image": "example.com/main:1"}], "tolerations": [{}]},
    "status": {"phase": "Running"},
}
NODE: dict[str, Any] = {
    "metadata": {"name": OWN, "labels": {"kubernetes.io/hostname": OWN}, "annotations": {"kept": "yes"}},
    "spec": {"podCIDR": "10.244.1.0/24"},
    "status": {"capacity": {"cpu": "2"}},
}


def apply_patch(item: dict[str, Any], patch: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the object after a JSON patch of members and appended items."""
    changed = copy.deepcopy(item)
    for step in patch:
        *parents, last = [part.replace("~1", "/") for part in step["path"].split("/")[1:]]
        place: Any = changed
        for part in parents:
            place = place[int(part) if isinstance(place, list) else part]
        if step["op"] == "remove":
            del place[last]
        elif isinstance(place, list):
            place.append(step["value"])
        else:
            place[last] = step["value"]
    return changed
