# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server on the loopback that stores objects, for runs of roles.

It serves discovery, lists with equality-based selectors, evictions, and objects that are created, merged and deleted, also as a dry run. Tests act as
the controllers: ``react`` is called after each change, ``before_read`` before each read, and ``refuse`` for each eviction; it returns the reason of a
refusal.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .loopback_api import VERSION, send_json

Object = dict[str, Any]

#: Group and version -> {plural: (kind, whether it is in a namespace)}.
KINDS: dict[str, dict[str, tuple[str, bool]]] = {
    "v1": {
        "nodes": ("Node", False),
        "namespaces": ("Namespace", False),
        "pods": ("Pod", True),
        "services": ("Service", True),
        "serviceaccounts": ("ServiceAccount", True),
        "configmaps": ("ConfigMap", True),
        "secrets": ("Secret", True),
        "persistentvolumeclaims": ("PersistentVolumeClaim", True),
        "events": ("Event", True),
    },
    "apps/v1": {
        "daemonsets": ("DaemonSet", True),
        "deployments": ("Deployment", True),
        "statefulsets": ("StatefulSet", True),
    },
    "coordination.k8s.io/v1": {"leases": ("Lease", True)},
    "batch/v1": {"jobs": ("Job", True), "cronjobs": ("CronJob", True)},
    "networking.k8s.io/v1": {"ingresses": ("Ingress", True), "networkpolicies": ("NetworkPolicy", True)},
    "resource.k8s.io/v1": {"resourceslices": ("ResourceSlice", False), "deviceclasses": ("DeviceClass", False)},
    # Served as in a cluster with AMD's GPU operator; Intel's is missing.
    "amd.com/v1alpha1": {"deviceconfigs": ("DeviceConfig", True)},
    # Served as in a cluster with NVIDIA's GPU Operator.
    "nvidia.com/v1": {"clusterpolicies": ("ClusterPolicy", False)},
    "node.k8s.io/v1": {"runtimeclasses": ("RuntimeClass", False)},
    "admissionregistration.k8s.io/v1": {
        "validatingadmissionpolicies": ("ValidatingAdmissionPolicy", False),
        "validatingadmissionpolicybindings": ("ValidatingAdmissionPolicyBinding", False),
    },
    "rbac.authorization.k8s.io/v1": {
        "clusterroles": ("ClusterRole", False),
        "clusterrolebindings": ("ClusterRoleBinding", False),
    },
}


class SmallCluster(ThreadingHTTPServer):
    """Stores ``objects`` by (kind, namespace, name)."""

    daemon_threads = True

    def __init__(self, *objects: Object) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lock = threading.RLock()
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.react: Callable[[SmallCluster], None] = lambda _cluster: None
        self.before_read: Callable[[SmallCluster], None] = lambda _cluster: None
        self.refuse: Callable[[Object], Object | None] = lambda _pod: None
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        for item in objects:
            self.put(item)

    def put(self, item: Object) -> Object:
        """Store an object, with the fields that a server sets."""
        metadata = item["metadata"]
        metadata.setdefault("uid", f"uid-{metadata['name']}")
        metadata["resourceVersion"] = str(int(metadata.get("resourceVersion", 0)) + 1)
        metadata["generation"] = metadata.get("generation", 0) + 1
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        self.objects[item["kind"], metadata.get("namespace", ""), metadata["name"]] = item
        return item

    def all(self, kind: str) -> list[Object]:
        """The objects of a kind, by name."""
        return [item for key, item in sorted(self.objects.items()) if key[0] == kind]


def _merge(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return new
    kept = {key: value for key, value in old.items() if key not in new}
    return {**kept, **{key: _merge(old.get(key), value) for key, value in new.items() if value is not None}}


def _matches_labels(item: Object, selector: str) -> bool:
    labels = item["metadata"].get("labels") or {}
    for part in filter(None, selector.split(",")):
        key, _sign, value = part.partition("!=") if "!=" in part else part.partition("=")
        if (labels.get(key) == value.lstrip("=")) is ("!=" in part):
            return False
    return True


def _matches_fields(item: Object, selector: str) -> bool:
    for part in filter(None, selector.split(",")):
        path, sign, expected = part.partition("!=") if "!=" in part else part.partition("=")
        value: Any = item
        for key in path.split("."):
            value = (value or {}).get(key)
        if ((value or "") == expected) is (sign == "!="):
            return False
    return True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: SmallCluster

    def do_GET(self) -> None:
        discovered = self._discovery()
        if discovered is not None:
            self._answer(200 if discovered else 404, discovered)
            return
        group, kind, namespace, name, query = self._parse_path()
        with self.server.lock:
            self.server.before_read(self.server)
            if name:
                self._answer_object(self.server.objects.get((kind, namespace, name)))
                return
            items = [
                item
                for (its_kind, place, _name), item in sorted(self.server.objects.items())
                if its_kind == kind
                and namespace in ("", place)
                and _matches_labels(item, query.get("labelSelector", ""))
                and _matches_fields(item, query.get("fieldSelector", ""))
            ]
            self._answer(200, {"kind": f"{kind}List", "apiVersion": group, "metadata": {}, "items": items})

    def do_POST(self) -> None:
        if urlsplit(self.path).path.endswith("/eviction"):
            self._evict()
        else:
            self._change(lambda _old, body: body)

    def _evict(self) -> None:
        self._body()
        _group, kind, namespace, name, query = self._parse_path()
        with self.server.lock:
            found = self.server.objects.get((kind, namespace, name))
            refusal = self.server.refuse(found) if found else None
            if refusal:
                self._answer(429, {"kind": "Status", "status": "Failure", "code": 429, **refusal})
                return
            if "dryRun" not in query:
                self.server.objects.pop((kind, namespace, name), None)
            self._answer_object(found)

    def do_PATCH(self) -> None:
        self._change(_merge)

    def do_DELETE(self) -> None:
        self._body()
        _group, kind, namespace, name, query = self._parse_path()
        with self.server.lock:
            found = self.server.objects.get((kind, namespace, name))
            if found is not None and "dryRun" not in query:
                del self.server.objects[kind, namespace, name]
                self.server.react(self.server)
            self._answer_object(found)

    def _change(self, merge: Callable[[Any, Any], Object]) -> None:
        body = self._body()
        group, kind, namespace, name, query = self._parse_path()
        meta = body.get("metadata", {})
        with self.server.lock:
            if not name and "generateName" in meta:
                meta["name"] = f"{meta['generateName']}{len(self.server.objects):05}"
            old = self.server.objects.get((kind, namespace, name or meta["name"]))
            if (old is None) is bool(name):
                self._answer(409 if old else 404, {"kind": "Status", "code": 409 if old else 404})
                return
            version = meta.get("resourceVersion") if old else None
            if old and version not in (None, old["metadata"]["resourceVersion"]):
                self._answer(409, {"kind": "Status", "code": 409, "message": "the object has been modified"})
                return
            is_created = namespace not in ("", "kube-system")
            if is_created and old is None and ("Namespace", "", namespace) not in self.server.objects:
                self._answer(404, {"kind": "Status", "code": 404, "message": f'namespaces "{namespace}" not found'})
                return
            new = json.loads(json.dumps(merge(old, {"apiVersion": group, "kind": kind, **body})))
            if new != old and "dryRun" not in query:
                self.server.put(new)
                self.server.react(self.server)
            self._answer(200 if old else 201, new)

    def _parse_path(self) -> tuple[str, str, str, str, dict[str, str]]:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        words = parts.path.strip("/").split("/")
        group, rest = ("v1", words[2:]) if words[0] == "api" else ("/".join(words[1:3]), words[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2:
            namespace, rest = rest[1], rest[2:]
        # A subresource after the name is merged like the object.
        return group, KINDS[group][rest[0]][0], namespace, rest[1] if len(rest) > 1 else "", query

    def _discovery(self) -> Object | None:
        path = urlsplit(self.path).path
        if path == "/version":
            return dict(VERSION)
        if path == "/healthz":
            return {"status": "ok"}
        if path == "/api":
            return {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            versions: dict[str, list[dict[str, str]]] = {}
            for group in (each for each in KINDS if "/" in each):
                name, _slash, version = group.partition("/")
                versions.setdefault(name, []).append({"groupVersion": group, "version": version})
            listed = [{"name": name, "versions": each, "preferredVersion": each[0]} for name, each in versions.items()]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        group = path.removeprefix("/api/").removeprefix("/apis/")
        if group not in KINDS:
            # Empty for a group or version that the server does not have.
            return {} if path.startswith("/apis/") and group.count("/") == 1 else None
        resources = [
            {"name": plural, "singularName": "", "kind": kind, "namespaced": inside, "verbs": ["get", "list", "create", "patch", "delete"]}
            for plural, (kind, inside) in KINDS[group].items()
        ]  # fmt: skip
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": resources}

    def _body(self) -> Object:
        text = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body: Object = json.loads(text or b"{}")
        return body

    def _answer_object(self, item: Object | None) -> None:
        missing = {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not found"}
        self._answer(404 if item is None else 200, missing if item is None else item)

    def _answer(self, status: int, content: Object) -> None:
        send_json(self, status, json.dumps(content).encode())

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""
