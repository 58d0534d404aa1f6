# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server in memory, and short constructors of nodes and pods."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError

GPU = "nvidia.com/gpu"
Object = dict  # of JSON, as the API server sends it


def node(name: str, gpus: int = 0, allocatable: int | None = None, ready: bool = True, **spec: Any) -> dict[str, Any]:
    """Make a node; ``labels``, ``annotations`` and anything of ``spec`` may be given."""
    metadata = {"name": name, "resourceVersion": "1", "labels": spec.pop("labels", {})}
    if "annotations" in spec:
        metadata["annotations"] = spec.pop("annotations")
    reported = gpus if allocatable is None else allocatable
    condition = {"type": "Ready", "status": "True" if ready else "False", "message": "" if ready else "CNI is missing"}
    status = {
        "capacity": {GPU: str(gpus)} if gpus else {},
        "allocatable": {GPU: str(reported)} if gpus else {},
        "conditions": [condition],
    }
    return {"metadata": metadata, "spec": spec, "status": status}


def pod(name: str, on: str = "", gpus: int = 0, namespace: str = "default", **parts: Any) -> dict[str, Any]:
    """Make a pod; ``labels``, ``annotations``, ``status``, ``created`` and anything of ``spec`` may be given.

    ``owner`` is the name of its controller, of the kind ``owner_kind``; ``deleted`` is when its grace period ends.
    """
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "labels": parts.pop("labels", {})}
    metadata["annotations"] = parts.pop("annotations", {})
    metadata["creationTimestamp"] = parts.pop("created", "2026-01-01T00:00:00Z")
    if "owner" in parts:
        kind = parts.pop("owner_kind", "DaemonSet")
        metadata["ownerReferences"] = [{"kind": kind, "name": parts.pop("owner"), "controller": True}]
    if "deleted" in parts:
        metadata["deletionTimestamp"] = parts.pop("deleted")
    status = parts.pop("status", {"phase": "Running"})
    limits = {"resources": {"limits": {GPU: str(gpus)}}} if gpus else {}
    spec = {"containers": [{"name": "main", "image": parts.pop("image", "example/image:1"), **limits}], **parts}
    if on:
        spec["nodeName"] = on
    return {"metadata": metadata, "spec": spec, "status": status}


class FakeCluster:
    """Stores nodes and pods, records calls, and has hooks for new pods and patches.

    ``on_call`` receives each call before it, ``on_change`` each patch and eviction after it; both may raise an error for the
    caller. ``on_evict`` may refuse, and returns whether the pod is deleted at once or only marked.
    """

    server = "https://api.test:6443"

    def __init__(self, nodes: list[Object] | None = None, pods: list[Object] | None = None) -> None:
        self.store_nodes = {item["metadata"]["name"]: item for item in nodes or []}
        self.store_pods = list(pods or [])
        self.daemon_set_list: list[Object] = []
        self.event_list: list[Object] = []
        self.leases: list[Object] = []
        self.policies: list[Object] = []
        self.gpu_cluster_list: list[Object] = []
        self.contents: dict[str, list[Object]] = {}
        self.logs: dict[str, str] = {}
        self.log_error: ApiError | None = None
        self.calls: list[str] = []
        self.created: list[Object] = []
        self.on_create: Callable[[Object], None] = lambda _pod: None
        self.on_patch: Callable[[str], None] = lambda _name: None
        self.on_list: Callable[[FakeCluster], None] = lambda _cluster: None
        self.on_call: Callable[[str], None] = lambda _call: None
        self.on_change: Callable[[str], None] = lambda _call: None
        self.on_evict: Callable[[Object], bool] = lambda _pod: True
        self.evictions: list[Object] = []
        self._lock = threading.Lock()

    def _record_call(self, call: str) -> None:
        with self._lock:
            self.calls.append(call)
        self.on_call(call)

    def nodes(self) -> list[Object]:
        self._record_call("nodes")
        return copy.deepcopy(list(self.store_nodes.values()))

    def node(self, name: str) -> Object:
        self._record_call("node")
        if name not in self.store_nodes:
            raise ApiError(f'The Kubernetes API at {self.server} answered 404: nodes "{name}" not found.', 404)
        return copy.deepcopy(self.store_nodes[name])

    def pods(self, namespace: str = "", labels: Mapping[str, str] | None = None, fields: str = "") -> list[Object]:
        self._record_call("pods")
        self.on_list(self)
        found = []
        for item in self.store_pods:
            known = item["metadata"].get("labels") or {}
            if namespace and item["metadata"].get("namespace") != namespace:
                continue
            _before, found_selector, place = fields.partition("spec.nodeName=")
            if found_selector and item["spec"].get("nodeName", "") != place.partition(",")[0]:
                continue
            if "status.phase!=Succeeded" in fields and item["status"].get("phase") in ("Succeeded", "Failed"):
                continue
            if all(known.get(key) == value for key, value in (labels or {}).items()):
                found.append(copy.deepcopy(item))
        return found

    def gather(self, resource: str, keep: Callable[[Object], Any], fields: str = "") -> list[Any]:
        found = self.nodes() if resource == "nodes" else self.pods(fields=fields)
        requested = fields.partition("metadata.name=")[2].partition(",")[0]
        named = [item for item in found if requested in ("", item["metadata"]["name"])]
        return [some for some in map(keep, named) if some is not None]

    def objects(
        self,
        api_version: str,
        kind: str,
        name: str = "",
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: str = "",
    ) -> list[Object]:
        """Read or list objects of a kind; only pods are supported."""
        self._record_call("objects")
        if (api_version, kind) != ("v1", "Pod"):
            return []
        found = self.pods(namespace, labels, fields)
        return [item for item in found if not name or item["metadata"]["name"] == name]

    def gather_leases(self, keep: Callable[[Object], Any]) -> list[Any]:
        self._record_call("leases")
        return [some for some in map(keep, copy.deepcopy(self.leases)) if some is not None]

    def namespace_contents(self, namespace: str) -> list[Object]:
        self._record_call(f"contents {namespace}")
        if namespace not in self.contents:
            raise ApiError("cannot list widgets", 403)
        return copy.deepcopy(self.contents[namespace])

    def daemon_sets(self, namespace: str = "") -> list[Object]:
        self._record_call("daemon_sets")
        return copy.deepcopy(self.daemon_set_list)

    def cluster_policies(self) -> list[Object]:
        self._record_call("cluster_policies")
        return copy.deepcopy(self.policies)

    def gpu_clusters(self) -> list[Object]:
        self._record_call("gpu_clusters")
        return copy.deepcopy(self.gpu_cluster_list)

    def warning_events(self, namespace: str) -> list[Object]:
        self._record_call("events")
        return copy.deepcopy(self.event_list)

    def patch_node(self, name: str, patch: Object) -> Object:
        self._record_call(f"patch {name}")
        self.on_patch(name)
        stored = self.store_nodes[name]["metadata"]
        change = patch["metadata"]
        if change.get("resourceVersion", stored["resourceVersion"]) != stored["resourceVersion"]:
            raise ApiError("conflict", 409)
        for part in ("labels", "annotations"):
            for key, value in (change.get(part) or {}).items():
                values = stored.setdefault(part, {})
                if value is None:
                    values.pop(key, None)
                else:
                    values[key] = value
        for key, value in (patch.get("spec") or {}).items():
            spec = self.store_nodes[name]["spec"]
            spec.pop(key, None) if value is None else spec.update({key: value})
        stored["resourceVersion"] = str(int(stored["resourceVersion"]) + 1)
        self.on_change(f"patch {name}")
        return self.store_nodes[name]

    def patch_node_status(self, name: str, patch: Object) -> Object:
        self._record_call(f"patch status {name}")
        for field, values in patch["status"].items():
            amounts = self.store_nodes[name]["status"].setdefault(field, {})
            for key, value in values.items():
                if value is None:
                    amounts.pop(key, None)
                else:
                    amounts[key] = value
        return copy.deepcopy(self.store_nodes[name])

    def create_pod(self, namespace: str, manifest: Object) -> Object:
        self._record_call("create")
        made = copy.deepcopy(manifest)
        with self._lock:
            made["metadata"]["name"] = f"{made['metadata']['generateName']}{len(self.created)}"
            made["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
            made["status"] = {"phase": "Pending"}
            self.created.append(made)
        self.on_create(made)
        with self._lock:
            self.store_pods.append(made)
        return made

    def delete_pod(self, namespace: str, name: str) -> None:
        self._record_call(f"delete {name}")
        with self._lock:
            self.store_pods = [item for item in self.store_pods if item["metadata"]["name"] != name]

    def evict_pod(
        self, namespace: str, name: str, uid: str, grace_period: int | None = None, dry_run: bool = False
    ) -> None:
        self._record_call(f"{'try' if dry_run else 'evict'} {namespace}/{name}")
        found = [
            item
            for item in self.store_pods
            if (item["metadata"]["namespace"], item["metadata"]["name"]) == (namespace, name)
        ]
        if not found:
            raise ApiError(f'pods "{name}" not found', 404)
        if found[0]["metadata"]["uid"] != uid:
            raise ApiError("Precondition failed: UID in precondition", 409)
        is_gone = self.on_evict(found[0])
        if dry_run:
            return
        if is_gone:
            self.store_pods = [item for item in self.store_pods if item is not found[0]]
        else:
            found[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z"
        self.evictions.append({"pod": f"{namespace}/{name}", "grace_period": grace_period})
        self.on_change(f"evict {namespace}/{name}")

    def pod_log(self, namespace: str, name: str, lines: int, previous: bool = False) -> str:
        self._record_call("log")
        if self.log_error:
            raise self.log_error
        return self.logs.get(name, "")


class FakeClock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
