# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes the cluster by a few lists, whose number does not grow with the nodes.

What cannot be read leaves its part unknown. The parts hold what checks read and no manifest: no environment, no Secret, no ConfigMap.
"""

from __future__ import annotations

import re
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Callable, Collection, Mapping, Sequence

from .._config.redact import mask_text
from .._kube_error import ApiError, shorten
from .._kubernetes.drain.plan import describe_maintenance
from .._kubernetes.extended_resources import count_gpu_resources
from .._kubernetes.node_reports import find_other_plugins
from .._kubernetes.objects import (
    UNFINISHED,
    Object,
    find_untolerated_taints,
    get_condition,
    get_full_name,
    get_labels,
    get_name,
    group_by_node,
    is_ready,
    is_schedulable,
)
from .._kubernetes.pod_failures import explain_failure, find_error_line
from .._kubernetes.requests import count_requested, list_requested_resources
from .._kubernetes.survey import ANY_PLUGIN
from .._sharing.catalogue import gpu_resources
from .._vendors import SERVED
from .vendors import offers_nvidia

if TYPE_CHECKING:
    from .._kube_api import Cluster

#: Device plugins whose log is read, of nodes that report no GPU.
MAX_LOGS = 5
MAX_EVENTS, MAX_PENDING, MAX_NAMES, LOG_LINES = 5, 50, 50, 50
VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
#: How long an event says something of the present; the API server keeps it for an hour.
EVENT_SECONDS = 600
#: Events by the check that reads them; each has a regular expression for the message.
EVENTS: Mapping[str, re.Pattern[str]] = {
    "preferred": re.compile(r"GetPreferredAllocation|GPU is lost"),
    "allocation": re.compile(r"number of devices unavailable for \S+ Requested: \d+, Available: 0"),
    "topology": re.compile(r"Topology locality|TopologyAffinityError"),
    "cuda": re.compile(r"unsatisfied condition: cuda|CUDA driver version is insufficient"),
    "quota": re.compile(r"exceeded quota.*(?:gpu|nvidia\.com/|aliyun\.com/|nano-gpu)", re.IGNORECASE),
    "extender": re.compile(
        r"failed to run extender|extender.*(?:connection refused|no such host|i/o timeout)", re.IGNORECASE
    ),
}

_Reader = Callable[["Cluster"], Any]


def read_cluster(cluster: Cluster, names: Collection[str] = ()) -> dict[str, Any]:
    """Return what the checks read of the cluster; *names* are nodes that are reported even without GPUs. Raises ApiError without nodes or pods."""
    nodes = cluster.nodes()
    pods = cluster.gather("pods", _keep_pod, UNFINISHED)
    errors: dict[str, str] = {}
    found = {name: _try(read, cluster, name, errors) for name, read in _READERS.items()}
    now = cluster.server_time or datetime.now(timezone.utc)
    observed = build_cluster(nodes, pods, found, now, names)
    _add_logs(cluster, observed, pods, errors)
    return {**observed, "errors": errors}


def _try(read: _Reader, cluster: Cluster, name: str, errors: dict[str, str]) -> Any:
    try:
        return read(cluster)
    except ApiError as error:
        errors[name] = str(error)
        return None


_READERS: Mapping[str, _Reader] = {
    "leases": lambda cluster: dict(cluster.gather_leases(_keep_lease)),
    "events": lambda cluster: cluster.gather("events", _keep_event, "type=Warning"),
    "daemon_sets": lambda cluster: cluster.objects("apps/v1", "DaemonSet"),
    "runtime_classes": lambda cluster: cluster.objects("node.k8s.io/v1", "RuntimeClass"),
}


def _keep_lease(lease: Object) -> tuple[str, str] | None:
    renewed = (lease.get("spec") or {}).get("renewTime")
    return (get_name(lease), str(renewed)) if renewed else None


def _keep_event(event: Object) -> dict[str, str] | None:
    message = str(event.get("message") or "")
    kind = next(
        (
            name
            for name, pattern in EVENTS.items()
            if pattern.search(message) or pattern.search(str(event.get("reason")))
        ),
        None,
    )
    if kind is None:
        return None
    about = event.get("involvedObject") or {}
    source, series = event.get("source") or {}, event.get("series") or {}
    return {
        "kind": kind,
        "node": str(source.get("host") or event.get("reportingInstance") or ""),
        "time": str(series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime") or ""),
        "text": shorten(mask_text(f"{about.get('namespace')}/{about.get('name')}: {message}")),
    }


def _keep_pod(pod: Object) -> Object | None:
    """The pods that concern GPUs: of device plugins, with GPUs, or with the variable that passes them by."""
    is_plugin = bool(find_other_plugins([pod], ANY_PLUGIN))
    requests = gpu_resources({name: count_requested(pod, name) for name in list_requested_resources(pod)})
    bypassing = not requests and _has_visible_devices(pod)
    has_class = SERVED.name in str((pod.get("spec") or {}).get("runtimeClassName"))
    if not (is_plugin or requests or bypassing or has_class):
        return None
    return {**pod, "requests": requests, "is_plugin": is_plugin, "bypassing": bypassing and not is_plugin}


def _has_visible_devices(pod: Object) -> bool:
    owners = (pod.get("metadata") or {}).get("ownerReferences") or []
    if any(owner.get("kind") == "DaemonSet" for owner in owners):  # exporters and the like
        return False
    variables = [
        each for container in (pod.get("spec") or {}).get("containers") or [] for each in container.get("env") or []
    ]
    return any(
        each.get("name") == VISIBLE_DEVICES and each.get("value") not in (None, "", "void", "none")
        for each in variables
    )


def build_cluster(
    nodes: Sequence[Object],
    pods: Sequence[Object],
    found: Mapping[str, Any],
    now: datetime,
    names: Collection[str] = (),
) -> dict[str, Any]:
    """Return the observation of the cluster; *pods* are those of _keep_pod, *found* the results of the further lists, or None."""
    placed = group_by_node([pod for pod in pods if (pod.get("spec") or {}).get("nodeName")])
    ready_since = {get_name(node): get_condition(node, "Ready").get("lastTransitionTime") for node in nodes}
    events = [each for each in found.get("events") or () if _is_recent(each, ready_since.get(each["node"]), now)]
    by_node: dict[str, dict[str, list[str]]] = {}
    for event in sorted(events, key=lambda each: each["time"]):
        kinds = by_node.setdefault(event["node"], {})
        kinds[event["kind"]] = [*kinds.get(event["kind"], [])[1 - MAX_EVENTS :], event["text"]]
    rows = {get_name(node): _build_node(node, placed.get(get_name(node), []), by_node, found, now) for node in nodes}
    kept = {
        name: row for name, row in rows.items() if name in names or row["labelled"] or any(row["capacity"].values())
    }
    classes = found.get("runtime_classes")
    return {
        "nodes": kept,
        "runtime_classes": None if classes is None else {get_name(each): str(each.get("handler")) for each in classes},
        "class_users": _list_class_users(pods, found.get("daemon_sets") or ()),
        "pending": [_build_pending(pod, nodes, rows) for pod in pods if _is_pending(pod)][:MAX_PENDING],
        "events": {
            kind: [text for kinds in by_node.values() for text in kinds.get(kind, ())][-MAX_EVENTS:]
            for kind in ("quota", "extender")
        },
        "bypassing": sorted(shorten(get_full_name(pod)) for pod in pods if pod["bypassing"])[:MAX_NAMES],
    }


def _is_recent(event: Mapping[str, str], ready_since: Any, now: datetime) -> bool:
    """Whether an event is of the last EVENT_SECONDS and not from before its node became Ready; also where its time is not known."""
    age, since = _get_age(event["time"], now), _get_age(ready_since, now)
    return age is None or age <= (EVENT_SECONDS if since is None else min(EVENT_SECONDS, since))


def _build_node(
    node: Object,
    pods: Sequence[Object],
    events: Mapping[str, Mapping[str, list[str]]],
    found: Mapping[str, Any],
    now: datetime,
) -> dict[str, Any]:
    plugins = [pod for pod in pods if pod["is_plugin"]]
    problems = [f"{shorten(get_full_name(pod))} {text}" for pod in plugins for text in [explain_failure(pod)] if text]
    amounts = count_gpu_resources(node, pods)
    condition = get_condition(node, "Ready")
    return {
        "known": True,
        "ready": is_ready(node),
        "reason": shorten(condition.get("message") or condition.get("reason")),
        "schedulable": is_schedulable(node),
        "maintenance": (describe_maintenance(node) or {}).get("message"),
        "labelled": get_labels(node).get(SERVED.present_label) == "true",
        "lease_age_seconds": _get_age((found.get("leases") or {}).get(get_name(node)), now),
        "capacity": {name: units for name, units in amounts["gpu_capacity"].items() if units},
        "allocatable": amounts["gpu_resources"],
        "allocated": amounts["gpu_allocated"],
        "plugins": [shorten(name) for name in find_other_plugins(pods, ANY_PLUGIN)],
        "plugins_ready": bool(plugins) and not problems,
        "plugin_problems": problems[:MAX_EVENTS],
        "plugin_folders": _list_plugin_folders(plugins),
        "pods": sorted(str((pod.get("metadata") or {}).get("uid")) for pod in pods if pod["requests"]),
        "events": events.get(get_name(node), {}),
    }


def _list_plugin_folders(pods: Sequence[Object]) -> list[str]:
    volumes = [volume for pod in pods for volume in (pod.get("spec") or {}).get("volumes") or []]
    paths = {str((volume.get("hostPath") or {}).get("path") or "") for volume in volumes}
    return sorted(shorten(path) for path in paths if path.rstrip("/").endswith("/device-plugins"))


def _get_age(time: Any, now: datetime) -> float | None:
    """Return how many seconds ago a time of the API was, 0 if it is ahead; None if it is not known."""
    try:
        then = datetime.strptime(str(time)[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    except ValueError:
        return None
    return max(0.0, (now - then).total_seconds())


def _list_class_users(pods: Sequence[Object], daemon_sets: Sequence[Object]) -> dict[str, list[str]]:
    """Return what uses GPUs or has a RuntimeClass of NVIDIA, by the name of its RuntimeClass. Other classes are not of interest."""
    users: dict[str, list[str]] = {}
    templates = [(each, (each.get("spec") or {}).get("template") or {}) for each in daemon_sets]
    found = [
        *(
            (f"DaemonSet {get_full_name(each)}", template, bool(find_other_plugins([template], ANY_PLUGIN)))
            for each, template in templates
        ),
        *((f"pod {get_full_name(pod)}", pod, bool(pod["requests"] or pod["is_plugin"])) for pod in pods),
    ]
    for user, pod, has_gpus in found:
        name = (pod.get("spec") or {}).get("runtimeClassName")
        if name and (has_gpus or SERVED.name in name):
            users.setdefault(str(name), []).append(shorten(user))
    return {name: listed[:MAX_EVENTS] for name, listed in sorted(users.items())[:MAX_NAMES]}


def _is_pending(pod: Object) -> bool:
    waits = not (pod.get("spec") or {}).get("nodeName") and bool(pod["requests"])
    return waits and bool(get_condition(pod, "PodScheduled").get("message"))


def _build_pending(pod: Object, nodes: Sequence[Object], rows: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a pod that waits for a node: what it requests, what is free, and the kind of its reason."""
    message = shorten(mask_text(str(get_condition(pod, "PodScheduled").get("message"))))
    free = {
        name: {resource: units - row["allocated"].get(resource, 0) for resource, units in row["allocatable"].items()}
        for name, row in rows.items()
        if row["ready"] and row["schedulable"]
    }
    requests = pod["requests"]
    most = {resource: max((units.get(resource, 0) for units in free.values()), default=0) for resource in requests}
    first = next(iter(requests))
    lacks = [resource for resource, need in requests.items() if most[resource] < need]
    kind = (
        "extender"
        if EVENTS["extender"].search(message)
        else "free"
        if lacks
        else "taint"
        if _is_kept_off(pod, [node for node in nodes if _has_room(free.get(get_name(node)), requests)])
        else "other"
    )
    return {
        "name": shorten(get_full_name(pod)),
        "kind": kind,
        "message": message,
        "requests": requests,
        "free": {resource: sum(max(0, units.get(resource, 0)) for units in free.values()) for resource in requests},
        "most_free": most,
        "node": next(
            (shorten(name) for name, units in sorted(free.items()) if units.get(first, 0) == most[first] > 0), ""
        ),
    }


def _has_room(free: Mapping[str, int] | None, requests: Mapping[str, int]) -> bool:
    return free is not None and all(free.get(resource, 0) >= need for resource, need in requests.items())


def _is_kept_off(pod: Object, nodes: Sequence[Object]) -> bool:
    """Whether each of the nodes, which have what the pod requests, has a taint that it does not tolerate."""
    tolerations = (pod.get("spec") or {}).get("tolerations") or []
    return bool(nodes) and all(find_untolerated_taints(node, tolerations) for node in nodes)


def _add_logs(cluster: Cluster, observed: Mapping[str, Any], pods: Sequence[Object], errors: dict[str, str]) -> None:
    """Add the line of the log of NVIDIA's device plugin that explains a failure, to at most MAX_LOGS nodes without its resource."""
    suspects = [name for name, row in observed["nodes"].items() if row["plugins_ready"] and not offers_nvidia(row)][
        :MAX_LOGS
    ]
    for pod in pods:
        name = str((pod.get("spec") or {}).get("nodeName") or "")
        if pod["is_plugin"] and name in suspects:
            try:
                log = cluster.pod_log(str(pod["metadata"].get("namespace")), get_name(pod), LOG_LINES)
            except ApiError as error:
                errors["plugin_log"] = str(error)
                continue
            observed["nodes"][name]["plugin_log"] = find_error_line(log)
