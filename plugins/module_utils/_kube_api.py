# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The few calls to the API server that this collection's modules make, private to this collection.

Lists are read page by page as plain JSON, which is much cheaper than building client objects on clusters with
thousands of pods. Where to connect and as whom is decided by kubernetes.core, so its options, environment variables
and kubeconfig rules hold here too.
"""

from __future__ import annotations

import json
import os
import re
import threading
import traceback
import urllib.parse
from typing import TYPE_CHECKING, Any, Callable, Mapping, TypeVar

from ansible.module_utils.basic import missing_required_lib

# kubernetes.core is a dependency of this collection, so only the kubernetes library may be missing.
from ansible_collections.kubernetes.core.plugins.module_utils.args_common import AUTH_ARG_SPEC

from ._kubernetes.api import MISSING_RIGHT, ApiError
from ._kubernetes.pod_trouble import one_line

__all__ = ["AUTH_ARG_SPEC", "Cluster", "connect", "explain"]

if TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from ._kubernetes.objects import Object

IMPORT_ERROR: str | None = None
try:
    from ansible_collections.kubernetes.core.plugins.module_utils.k8s.client import get_api_client
    from kubernetes.client.rest import ApiException
    from kubernetes.dynamic.exceptions import ResourceNotFoundError
except ImportError:
    IMPORT_ERROR = traceback.format_exc()

PAGE = 500
# The status of a page whose list was begun too long ago.
EXPIRED = 410
CONNECT_SECONDS = 30
# Seconds to connect and to wait for an answer.
REQUEST_TIMEOUT = (10, 60)

# How the API server words a missing right, such as: cannot get resource "pods/log" in API group ""
_MISSING_RIGHT = re.compile(r'is forbidden: User .* cannot (\S+) resource "([^"]+)"')

Answer = TypeVar("Answer")
Kept = TypeVar("Kept")


class Cluster:
    """The calls; each raises ApiError. Methods may be used by several threads at once.

    *client* is kubernetes.core's dynamic client: importing the models of the typed one would take longer than most calls.
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.server = str(client.configuration.host)

    def nodes(self) -> list[Object]:
        """List all nodes."""
        return self._list("/api/v1/nodes")

    def node(self, name: str) -> Object:
        """Read one node."""
        return self._call("get", f"/api/v1/nodes/{_part(name)}")

    def pods(self, namespace: str = "", labels: Mapping[str, str] | None = None, fields: str = "") -> list[Object]:
        """List pods, of all namespaces if none is named."""
        path = f"/api/v1/namespaces/{_part(namespace)}/pods" if namespace else "/api/v1/pods"
        return self._list(path, label_selector=_selector(labels) or None, field_selector=fields or None)

    def gather(self, resource: str, keep: Callable[[Object], Kept | None], fields: str = "") -> list[Kept]:
        """List all ``nodes`` or ``pods`` and keep of each what *keep* makes of it; None is dropped.

        No more than a page is in memory as it was sent, which is what counts on clusters with a hundred thousand pods.
        """
        return self._list(f"/api/v1/{_part(resource)}", keep, field_selector=fields or None)

    def daemon_sets(self, namespace: str) -> list[Object]:
        """List the DaemonSets of a namespace."""
        return self._list(f"/apis/apps/v1/namespaces/{_part(namespace)}/daemonsets")

    def warning_events(self, namespace: str) -> list[Object]:
        """List the warnings about pods of a namespace."""
        path = f"/api/v1/namespaces/{_part(namespace)}/events"
        return self._list(path, field_selector="involvedObject.kind=Pod,type=Warning")

    def patch_node(self, name: str, patch: Object) -> Object:
        """Apply a merge patch to a node; status 409 if it carries a resourceVersion that is no longer current."""
        return self._merge(f"/api/v1/nodes/{_part(name)}", patch)

    def patch_node_status(self, name: str, patch: Object) -> Object:
        """Apply a merge patch to the status of a node."""
        return self._merge(f"/api/v1/nodes/{_part(name)}/status", patch)

    def create_pod(self, namespace: str, manifest: Object) -> Object:
        """Create a pod and return it with its name."""
        return self._call("post", f"/api/v1/namespaces/{_part(namespace)}/pods", body=manifest)

    def delete_pod(self, namespace: str, name: str) -> None:
        """Delete a pod; one that is gone already is no error."""
        try:
            self._call("delete", f"/api/v1/namespaces/{_part(namespace)}/pods/{_part(name)}")
        except ApiError as error:
            if error.status != 404:
                raise

    def evict_pod(
        self, namespace: str, name: str, uid: str, grace_period: int | None = None, dry_run: bool = False
    ) -> None:
        """Evict the pod of this UID, if no disruption budget forbids it (429), with its own grace period if none is given.

        Status 404 where there is no pod of this name, 409 where it is another one. As a dry run the server only says whether it would.
        """
        options: Object = {"preconditions": {"uid": uid}}
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
        # Admission webhooks go by the request, the server itself by either.
        query = {"query_params": [("dryRun", "All")]} if dry_run else {}
        self._call("post", f"/api/v1/namespaces/{_part(namespace)}/pods/{_part(name)}/eviction", body=body, **query)

    def pod_log(self, namespace: str, name: str, lines: int, previous: bool = False) -> str:
        """Return the last lines of a pod's log; status 400 where there is none yet."""
        path = f"/api/v1/namespaces/{_part(namespace)}/pods/{_part(name)}/log"
        query = [("tailLines", lines), *([("previous", "true")] if previous else [])]
        return self._request("get", path, query_params=query).decode("utf-8", errors="replace")

    def objects(
        self,
        api_version: str,
        kind: str,
        name: str = "",
        namespace: str = "",
        labels: Mapping[str, str] | None = None,
        fields: str = "",
    ) -> list[Object]:
        """Read the object of that name, or list those with these labels and fields; lists leave out the kind of their items.

        Raises ApiError, of status 404 for a kind that the API does not have.
        """
        try:
            resource = self._client.resources.get(api_version=api_version, kind=kind)
        except ResourceNotFoundError as error:
            raise ApiError(
                f"The Kubernetes API at {self.server} has no {kind} of {api_version}; correct it.", status=404
            ) from error
        except Exception as error:
            raise explain(error, self.server) from error
        path = resource.path(name=_part(name) or None, namespace=_part(namespace) or None)
        if not name:
            return [
                {"apiVersion": api_version, "kind": kind, **item}
                for item in self._list(path, label_selector=_selector(labels) or None, field_selector=fields or None)
            ]
        try:
            return [self._call("get", path)]
        except ApiError as error:
            if error.status == 404:
                return []
            raise

    def _list(self, path: str, keep: Callable[[Object], Any] | None = None, **options: Any) -> list[Any]:
        try:
            return self._read_list(path, keep, options)
        except ApiError as error:
            if error.status != EXPIRED:
                raise
        # What was read belongs to a state that is gone; from its beginning the list is whole again.
        return self._read_list(path, keep, options)

    def _read_list(self, path: str, keep: Callable[[Object], Any] | None, options: Mapping[str, Any]) -> list[Any]:
        found, token = self._page(path, keep, options)
        while token:
            more, token = self._page(path, keep, {**options, "_continue": token})
            found.extend(more)
        return found

    def _page(
        self, path: str, keep: Callable[[Object], Any] | None, options: Mapping[str, Any]
    ) -> tuple[list[Any], str | None]:
        """Return what is kept of a page, and where the next one begins. A page is gone before the next one comes."""
        page = self._call("get", path, **{"limit": PAGE, "_continue": None, **options})
        items = page.get("items") or []
        kept = items if keep is None else [some for some in map(keep, items) if some is not None]
        return kept, (page.get("metadata") or {}).get("continue")

    def _merge(self, path: str, patch: Object) -> Object:
        return self._call("patch", path, body=patch, content_type="application/merge-patch+json")

    def _call(self, method: str, path: str, **options: Any) -> Object:
        return dict(json.loads(self._request(method, path, **options)))

    def _request(self, method: str, path: str, **options: Any) -> bytes:
        try:
            answer = self._client.request(method, path, serialize=False, _request_timeout=REQUEST_TIMEOUT, **options)
            return bytes(answer.data)
        except Exception as error:
            raise explain(error, self.server) from error


def _selector(labels: Mapping[str, str] | None) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items()))


def _part(name: str) -> str:
    """Return a name as one part of a path: what a user gives may hold anything."""
    return urllib.parse.quote(name, safe="")


def explain(error: BaseException, server: str) -> ApiError:
    """Turn whatever the client raised into one sentence."""
    status = int(getattr(error, "status", 0) or 0)
    if not status:
        return ApiError(
            f"The Kubernetes API at {server or 'the configured server'} cannot be reached ({_short(error)}); "
            "check that it is up and that gpu_kubeconfig (or the kubeconfig in use) names the right cluster."
        )
    told = _status_message(error)
    said, lacks, causes = one_line(told), _MISSING_RIGHT.search(told), _causes(error)
    if status == 401:
        said += "; renew the credentials in the kubeconfig"
    elif status == EXPIRED:
        said += "; run again when the API server and the way to it are less busy"
    elif lacks:
        verb, resource = lacks.groups()
        causes[MISSING_RIGHT] = f"{verb} {resource}"
        said += f"; allow this account {verb} on {resource} by a role (RBAC), or use an administrator's kubeconfig"
    return ApiError(f"The Kubernetes API at {server} answered {status}: {said}.", status, causes)


def _status_message(error: BaseException) -> str:
    body = getattr(error, "body", None)
    try:
        return str(json.loads(body)["message"]).rstrip(".") if body else str(getattr(error, "reason", ""))
    except (ValueError, TypeError, KeyError):
        return str(getattr(error, "reason", "") or "no reason given")


def _causes(error: BaseException) -> dict[str, str]:
    """Return the API server's words on each cause that it names."""
    try:
        causes = (json.loads(getattr(error, "body", None) or "{}").get("details") or {}).get("causes") or []
        return {str(cause["reason"]): one_line(cause.get("message")).rstrip(".") for cause in causes}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}


def _short(error: BaseException) -> str:
    """Return the innermost cause that urllib3 wraps: ``Connection refused`` rather than a pool's life story."""
    cause = error
    while isinstance(getattr(cause, "reason", None), BaseException):
        cause = getattr(cause, "reason")  # noqa: B009 - not every exception has it
    text = " ".join(str(cause).split())
    return text.rsplit(">: ", 1)[-1].rsplit(": ", 1)[-1] if "Errno" in text else text[:200] or type(cause).__name__


def connect(module: AnsibleModule) -> Cluster:
    """Return the cluster that the module's options point to, or fail the module with one sentence."""
    if IMPORT_ERROR:
        module.fail_json(
            msg=missing_required_lib("kubernetes, and the collection kubernetes.core"), exception=IMPORT_ERROR
        )
    options = {name: module.params[name] for name in AUTH_ARG_SPEC if module.params.get(name) is not None}
    try:
        return Cluster(_within(CONNECT_SECONDS, lambda: get_api_client(**options).client))
    except Exception as error:
        module.fail_json(msg=str(_explain_connection(error, options)))
        raise


def _explain_connection(error: BaseException, options: Mapping[str, Any]) -> ApiError:
    # The option itself is masked in all output, so only a path from the environment is worth naming.
    path = "" if options.get("kubeconfig") else os.environ.get("K8S_AUTH_KUBECONFIG") or os.environ.get("KUBECONFIG")
    source = f"kubeconfig {path}" if path else "given kubeconfig"
    if isinstance(error, TimeoutError):
        return explain(error, f"the server of {source}")
    pool = getattr(error, "pool", None)
    if pool is not None:
        return explain(error, f"{pool.scheme}://{pool.host}:{pool.port}")
    if isinstance(error, ApiException):
        return explain(error, f"the server of {source}")
    return ApiError(
        f"The {source} cannot be used ({_short(error)}); set gpu_kubeconfig (or kubeconfig) to a readable file "
        "on the controller and gpu_kube_context (or context) to one in it."
    )


def _within(seconds: int, call: Callable[[], Answer]) -> Answer:
    """Run the call but give up after some seconds: the client's discovery has no timeout of its own."""
    answers: list[Answer] = []
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
