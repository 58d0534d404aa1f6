# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls to the API server.

Lists are read page by page as plain JSON, which is much cheaper than client objects on clusters with thousands of pods.
kubernetes.core decides on server and account, so that its options, environment variables and rules for a kubeconfig apply.
"""

from __future__ import annotations

import json
import os
import threading
import traceback
import urllib.parse
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Callable, Mapping, TypeVar

from ansible.module_utils.basic import missing_required_lib

# kubernetes.core is a dependency of this collection, so only the kubernetes library may be missing.
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC

from ._kube_error import EXPIRED, ApiError, explain_error, find_cause

__all__ = ["AUTH_ARG_SPEC", "Cluster", "connect", "open_cluster"]

if TYPE_CHECKING:
    from ._module import Module

IMPORT_ERROR: str | None = None
try:
    from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
    from kubernetes.client.rest import ApiException
    from kubernetes.dynamic.exceptions import ResourceNotFoundError
except ImportError:
    IMPORT_ERROR = traceback.format_exc()

PAGE = 500
# The status of an answer.
OK = 200
# A kubelet can send a log without an end.
LOG_BYTES = 1024 * 1024
CONNECT_SECONDS = 30
# Seconds to connect and to wait for an answer.
REQUEST_TIMEOUT = (10, 60)

METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

Result = TypeVar("Result")
Kept = TypeVar("Kept")


class Cluster:
    """The calls; each raises ApiError. Several threads can use it at once.

    *client* is kubernetes.core's dynamic client: the import of the typed one's models would take longer than most calls.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.server = str(client.configuration.host)
        #: When the API server answered last, by its clock; None before, and if a proxy removes it.
        self.server_time: datetime | None = None

    def nodes(self) -> list[dict[str, Any]]:
        """List all nodes."""
        return self._list("/api/v1/nodes")

    def node(self, name: str) -> dict[str, Any]:
        """Read one node."""
        return self._call("get", f"/api/v1/nodes/{_quote(name)}")

    def pods(
        self, namespace: str = "", labels: Mapping[str, str] | None = None, fields: str = ""
    ) -> list[dict[str, Any]]:
        """List pods, of all namespaces if none is named."""
        path = f"/api/v1/namespaces/{_quote(namespace)}/pods" if namespace else "/api/v1/pods"
        return self._list(path, label_selector=_format_selector(labels) or None, field_selector=fields or None)

    def gather(self, resource: str, keep: Callable[[dict[str, Any]], Kept | None], fields: str = "") -> list[Kept]:
        """Return what *keep* returns for each of all ``nodes`` or ``pods``, without None.

        Only one page is in memory at once, which matters on clusters with a hundred thousand pods.
        """
        return self._list(f"/api/v1/{_quote(resource)}", keep, field_selector=fields or None)

    def gather_leases(self, keep: Callable[[dict[str, Any]], Kept | None]) -> list[Kept]:
        """Return what *keep* returns for each Lease of a node, without None."""
        return self._list("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", keep)

    def daemon_sets(self, namespace: str = "") -> list[dict[str, Any]]:
        """List the DaemonSets of a namespace, or of all if none is named."""
        return self._list(f"/apis/apps/v1/{f'namespaces/{_quote(namespace)}/' if namespace else ''}daemonsets")

    def warning_events(self, namespace: str) -> list[dict[str, Any]]:
        """List the warnings about pods of a namespace."""
        path = f"/api/v1/namespaces/{_quote(namespace)}/events"
        return self._list(path, field_selector="involvedObject.kind=Pod,type=Warning")

    def cluster_policies(self) -> list[dict[str, Any]]:
        """List the ClusterPolicies of NVIDIA's GPU Operator; empty in a cluster without one."""
        return self._list_known("/apis/nvidia.com/v1", "clusterpolicies")

    def gpu_clusters(self) -> list[dict[str, Any]]:
        """List the GPUClusters of NVIDIA's GPU Operator, which it has since v26.7; empty in a cluster without one."""
        return self._list_known("/apis/nvidia.com/v1alpha1", "gpuclusters")

    def _list_known(self, group: str, resource: str) -> list[dict[str, Any]]:
        """List a resource that the cluster may not have.

        Every account may read which resources there are. Without the right to list a resource, the server does not say whether it exists.
        """
        try:
            known = self._call("get", group).get("resources") or []
        except ApiError as error:
            if error.status != 404:
                raise
            return []
        is_known = any(isinstance(each, dict) and each.get("name") == resource for each in known)
        return self._list(f"{group}/{resource}") if is_known else []

    def patch_node(self, name: str, patch: dict[str, Any]) -> dict[str, Any]:
        """Apply a merge patch to a node; status 409 if it has a resourceVersion that is no longer current."""
        return self._merge(f"/api/v1/nodes/{_quote(name)}", patch)

    def patch_node_status(self, name: str, patch: dict[str, Any]) -> dict[str, Any]:
        """Apply a merge patch to the status of a node."""
        return self._merge(f"/api/v1/nodes/{_quote(name)}/status", patch)

    def leases(self, namespace: str, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """List the Leases of a namespace with these labels."""
        return self._list(_lease_path(namespace), label_selector=_format_selector(labels))

    def lease(self, namespace: str, name: str) -> dict[str, Any] | None:
        """Read one Lease; None if there is none with that name."""
        try:
            return self._call("get", _lease_path(namespace, name))
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def create_lease(self, namespace: str, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create a Lease; status 409 if it exists."""
        return self._call("post", _lease_path(namespace), body=manifest)

    def patch_lease(self, namespace: str, name: str, patch: dict[str, Any]) -> dict[str, Any]:
        """Apply a merge patch to a Lease; status 409 if it has a resourceVersion that is no longer current."""
        return self._merge(_lease_path(namespace, name), patch)

    def delete_lease(self, namespace: str, name: str, version: str | None) -> None:
        """Delete the Lease with this resourceVersion; status 409 if it has another one by now."""
        self._call("delete", _lease_path(namespace, name), body={"preconditions": {"resourceVersion": version}})

    def create_pod(self, namespace: str, manifest: dict[str, Any]) -> dict[str, Any]:
        """Create a pod and return it with its name."""
        return self._call("post", f"/api/v1/namespaces/{_quote(namespace)}/pods", body=manifest)

    def delete_pod(self, namespace: str, name: str) -> None:
        """Delete a pod; a pod that does not exist is not an error."""
        try:
            self._call("delete", f"/api/v1/namespaces/{_quote(namespace)}/pods/{_quote(name)}")
        except ApiError as error:
            if error.status != 404:
                raise

    def evict_pod(
        self, namespace: str, name: str, uid: str, grace_period: int | None = None, dry_run: bool = False
    ) -> None:
        """Evict the pod with this UID; *grace_period* is in seconds, None is the pod's own.

        Status 404 if no pod has this name, 409 if its UID differs, 429 if a disruption budget forbids it. A dry run evicts nothing.
        """
        options: dict[str, Any] = {"preconditions": {"uid": uid}}
        if grace_period is not None:
            options["gracePeriodSeconds"] = grace_period
        if dry_run:
            options["dryRun"] = ["All"]
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        # Admission webhooks read the query, the server itself reads either.
        query = {"query_params": [("dryRun", "All")]} if dry_run else {}
        self._call("post", f"/api/v1/namespaces/{_quote(namespace)}/pods/{_quote(name)}/eviction", body=body, **query)

    def pod_log(self, namespace: str, name: str, lines: int, previous: bool = False) -> str:
        """Return the last lines of a pod's log, of these the first LOG_BYTES; status 400 if there is none yet."""
        path = f"/api/v1/namespaces/{_quote(namespace)}/pods/{_quote(name)}/log"
        query = [("tailLines", lines), ("limitBytes", LOG_BYTES), *([("previous", "true")] if previous else [])]
        return self._request("get", path, LOG_BYTES, query_params=query).decode("utf-8", errors="replace")

    def objects(
        self,
        api_version: str,
        kind: str,
        name: str = "",
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: str = "",
    ) -> list[dict[str, Any]]:
        """Return the object with that name, or those with these labels and fields.

        Raises ApiError with status 404 for a kind that the API does not have.
        """
        try:
            resource = self._client.resources.get(api_version=api_version, kind=kind)
        except ResourceNotFoundError as error:
            raise ApiError(
                f"The Kubernetes API at {self.server} has no {kind} of {api_version}; correct it.", status=404
            ) from error
        except Exception as error:
            raise explain_error(error, self.server) from error
        path = resource.path(name=_quote(name) or None, namespace=_quote(namespace) or None)
        if not name:  # the items of a list have no kind
            return [
                {"apiVersion": api_version, "kind": kind, **item}
                for item in self._list(
                    path, label_selector=_format_selector(labels) or None, field_selector=fields or None
                )
            ]
        try:
            return [self._call("get", path)]
        except ApiError as error:
            if error.status == 404:
                return []
            raise

    def namespace_contents(self, namespace: str) -> list[dict[str, Any]]:
        """Return all objects of a namespace that can be listed, each with apiVersion, kind and metadata alone: no data, no Secrets.

        The kinds are read from the API server's discovery, custom resources included. Raises ApiError, also if one kind cannot be read.
        """
        found: list[dict[str, Any]] = []
        for version, resource in self._read_resources():
            path = f"/{version}/namespaces/{_quote(namespace)}/{_quote(resource['name'])}"
            kind = {"apiVersion": version.partition("/")[2], "kind": resource["kind"]}
            items = self._list(path, header_params={"Accept": METADATA_ONLY})
            found += [{**kind, "metadata": item.get("metadata") or {}} for item in items]
        return found

    def _read_resources(self) -> list[tuple[str, dict[str, Any]]]:
        """Return (path of the API version, resource) of all resources of namespaces that can be listed and deleted, each in one version."""
        found: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {}
        for version in self._read_versions():
            for resource in self._call("get", f"/{version}").get("resources") or []:
                if resource.get("namespaced") and {"list", "delete"} <= set(resource.get("verbs") or ()):
                    found.setdefault((version.rpartition("/")[0], resource["name"]), (version, resource))
        return list(found.values())

    def _read_versions(self) -> list[str]:
        """Return the paths of all API versions, for each group the preferred one first."""
        found = ["api/v1"]
        for group in self._call("get", "/apis").get("groups") or []:
            versions = [group.get("preferredVersion") or {}, *(group.get("versions") or [])]
            found += [f"apis/{each['groupVersion']}" for each in versions if each.get("groupVersion")]
        return list(dict.fromkeys(found))

    def _list(self, path: str, keep: Callable[[dict[str, Any]], Any] | None = None, **options: Any) -> list[Any]:
        try:
            return self._read_list(path, keep, options)
        except ApiError as error:
            if error.status != EXPIRED:
                raise
        # The pages that were read are of an older state, so the list is read again from its first page.
        return self._read_list(path, keep, options)

    def _read_list(
        self, path: str, keep: Callable[[dict[str, Any]], Any] | None, options: Mapping[str, Any]
    ) -> list[Any]:
        found, token = self._page(path, keep, options)
        while token:
            more, token = self._page(path, keep, {**options, "_continue": token})
            found.extend(more)
        return found

    def _page(
        self, path: str, keep: Callable[[dict[str, Any]], Any] | None, options: Mapping[str, Any]
    ) -> tuple[list[Any], str | None]:
        """Return what *keep* returns for the items of a page, and the token of the next page."""
        page = self._call("get", path, **{"limit": PAGE, "_continue": None, **options})
        items, metadata = page.get("items") or [], page.get("metadata") or {}
        if not (
            isinstance(items, list) and all(isinstance(item, dict) for item in items) and isinstance(metadata, dict)
        ):
            raise ApiError(_explain_answer(self.server, path, "is not a list of objects"), OK)
        kept = items if keep is None else [some for some in map(keep, items) if some is not None]
        return kept, metadata.get("continue")

    def _merge(self, path: str, patch: dict[str, Any]) -> dict[str, Any]:
        return self._call("patch", path, body=patch, content_type="application/merge-patch+json")

    def _call(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        try:
            answer = json.loads(self._request(method, path, **options))
        except (ValueError, RecursionError) as error:
            raise ApiError(_explain_answer(self.server, path, "is not JSON"), OK) from error
        if not isinstance(answer, dict):
            raise ApiError(_explain_answer(self.server, path, "is not an object"), OK)
        return answer

    def _request(self, method: str, path: str, max_bytes: int = 0, **options: Any) -> bytes:
        """Return the answer, or at most its first *max_bytes*. Raises ApiError."""
        try:
            answer = self._client.request(method, path, serialize=False, _request_timeout=REQUEST_TIMEOUT, **options)
            self.server_time = _read_date(answer) or self.server_time
            if not max_bytes:
                return bytes(answer.data)
            try:
                return bytes(answer.read(max_bytes))
            finally:
                answer.close()
        except Exception as error:
            raise explain_error(error, self.server) from error


def _explain_answer(server: str, path: str, fault: str) -> str:
    return (
        f"The answer of {server} to {path} {fault}, as the Kubernetes API would send it; check that the kubeconfig names the API server "
        "and not a proxy or a login page."
    )


def _format_selector(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def _lease_path(namespace: str, name: str = "") -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{_quote(namespace)}/leases"
    return f"{path}/{_quote(name)}" if name else path


def _read_date(answer: Any) -> datetime | None:
    """Return the time that the answer's header has, in UTC; None without a usable one."""
    try:
        found = parsedate_to_datetime(str((getattr(answer, "headers", None) or {}).get("Date", "")))
    except (TypeError, ValueError):
        return None
    return found.astimezone(timezone.utc) if found.tzinfo else found.replace(tzinfo=timezone.utc)


def _quote(name: str) -> str:
    """Return a name as one part of a path: names from users can contain any character."""
    return urllib.parse.quote(name, safe="")


def connect(module: Module) -> Cluster:
    """Return the cluster that the module's options point to, or fail the module with one sentence."""
    if IMPORT_ERROR:
        module.fail_json(
            msg=missing_required_lib("kubernetes, and the collection kubernetes.core"), exception=IMPORT_ERROR
        )
    try:
        return open_cluster(module.params)
    except ApiError as error:
        module.fail_json(msg=str(error))
        raise


def open_cluster(params: Mapping[str, Any]) -> Cluster:
    """Return the cluster that the options of AUTH_ARG_SPEC among *params* point to. Raises ApiError."""
    if IMPORT_ERROR:
        raise ApiError(missing_required_lib("kubernetes, and the collection kubernetes.core"))
    options = {name: params[name] for name in AUTH_ARG_SPEC if params.get(name) is not None}
    try:
        return Cluster(_call_with_timeout(CONNECT_SECONDS, lambda: get_api_client(**options).client))
    except Exception as error:
        raise _explain_connection(error, options) from error


def _explain_connection(error: BaseException, options: Mapping[str, Any]) -> ApiError:
    # Ansible masks the option in all output, so only a path from the environment is named.
    path = "" if options.get("kubeconfig") else os.environ.get("K8S_AUTH_KUBECONFIG") or os.environ.get("KUBECONFIG")
    source = f"kubeconfig {path}" if path else "given kubeconfig"
    if isinstance(error, TimeoutError):
        return explain_error(error, f"the server of {source}")
    pool = getattr(error, "pool", None)
    if pool is not None:
        return explain_error(error, f"{pool.scheme}://{pool.host}:{pool.port}")
    if isinstance(error, ApiException):
        return explain_error(error, f"the server of {source}")
    return ApiError(
        f"The {source} cannot be used ({find_cause(error)}); set gpu_kubeconfig (or kubeconfig) to a readable file "
        "on the controller and gpu_kube_context (or context) to one in it."
    )


def _call_with_timeout(seconds: int, call: Callable[[], Result]) -> Result:
    """Return the result of the call, or raise TimeoutError after some seconds: the client's discovery has no timeout."""
    answers: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(call())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        raise TimeoutError(f"no answer within {seconds} s")
    return answers[0]
