# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that compare workloads with a cluster. Each takes a workload and a context that has what the rule needs, and yields problems."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, Iterator, Sequence

from .._distributions.managed import list_admission_plugins
from .._kubernetes.objects import (
    can_run_on,
    find_untolerated_taints,
    format_taint,
    get_allocatable,
    get_labels,
    is_schedulable,
)
from .._kubernetes.requests import count_requested
from .._vendors import OTHERS, vendor_of
from .images import find_cuda, find_required_cuda
from .model import Context, Document, Object, Problem, Workload, list_of, map_of
from .resources import INTEL_NAMES, find_group, is_extended, is_served
from .rules_pod import list_amounts, list_gpus, list_requested, parse
from .walker import find_workloads

# Taints that the node controller sets and removes.
_TRANSIENT = "node.kubernetes.io/"
_SHARED = ("time-slicing", "mps")
_CUDA_LABELS = (
    ("nvidia.com/cuda.runtime-version.major", "nvidia.com/cuda.runtime-version.minor"),
    ("nvidia.com/cuda.runtime.major", "nvidia.com/cuda.runtime.minor"),
)
_DATA_CENTRE = re.compile(r"^(?!.*(RTX|GeForce|Quadro|TITAN)).*\b(A|B|GB|GH|H|L|P|T|V)\d")
_SURGE = "25%"


def offers(node: Object, names: Sequence[str]) -> bool:
    """Return whether the node has at least one of each of these resources for pods."""
    return all(get_allocatable(node, name) > 0 for name in names)


def find_candidates(workload: Workload, context: Context) -> list[Object]:
    """Return the nodes that the pod selects and that offer its resources, whatever their taints."""
    names = sorted(list_requested(workload))
    return [node for node in context.nodes or [] if offers(node, names) and can_run_on(workload.spec, get_labels(node))]


def find_taints(workload: Workload, context: Context) -> Iterator[Problem]:
    nodes, names = find_candidates(workload, context), list_requested(workload)
    tolerations = list_of(workload.spec, "tolerations")
    if "ExtendedResourceToleration" in {*context.admission_plugins, *list_admission_plugins(nodes)}:
        tolerations = tolerations + [
            {"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in sorted(names)
        ]
    left = [
        [
            taint
            for taint in find_untolerated_taints(node, tolerations)
            if not str(taint.get("key")).startswith(_TRANSIENT)
        ]
        for node in nodes
    ]
    if names and nodes and all(left):
        taint = format_taint(left[0][0])
        yield Problem(
            f"{workload.pointer}/tolerations",
            f"does not tolerate a taint of any of the {len(nodes)} nodes that have its GPUs, such as {taint}",
            f"add a toleration for {taint}",
        )


def find_no_runtime_class(workload: Workload, context: Context) -> Iterator[Problem]:
    names = [name for name in sorted(list_gpus(workload)) if is_served(name)]
    classes = {str(map_of(each, "metadata").get("name")) for each in context.runtime_classes or []}
    if (
        names
        and context.default_runtime == "runc"
        and "nvidia" in classes
        and not workload.spec.get("runtimeClassName")
    ):
        yield Problem(
            f"{workload.pointer}/runtimeClassName",
            f"asks for {names[0]} without a RuntimeClass, and the default runtime runc gives containers no driver",
            "set runtimeClassName: nvidia",
        )


def find_unknown_runtime_class(workload: Workload, context: Context) -> Iterator[Problem]:
    name = str(workload.spec.get("runtimeClassName") or "")
    handlers = {
        str(map_of(each, "metadata").get("name")): str(each.get("handler")) for each in context.runtime_classes or []
    }
    if not name:
        return
    pointer = f"{workload.pointer}/runtimeClassName"
    if name not in handlers:
        known = ", ".join(sorted(handlers)) or "none"
        yield Problem(
            pointer,
            f"has the RuntimeClass {name}, which the cluster does not have (it has {known})",
            "create the RuntimeClass, or correct the name",
        )
        return
    # Nodes before Kubernetes 1.31 or containerd 2 do not list their handlers.
    lists = [
        [str(each.get("name")) for each in list_of(node.get("status"), "runtimeHandlers")]
        for node in find_candidates(workload, context)
    ]
    if lists and all(lists) and not any(handlers[name] in each for each in lists):
        yield Problem(
            pointer,
            f"has the RuntimeClass {name}, whose handler {handlers[name]} no node with its GPUs has",
            "add the runtime to the nodes",
        )


def find_no_node(workload: Workload, context: Context) -> Iterator[Problem]:
    nodes, names = context.nodes or [], sorted(list_requested(workload))
    selector = map_of(workload.spec, "nodeSelector")
    if not names or not nodes or find_candidates(workload, context):
        return
    labels = [get_labels(node) for node in nodes]
    for key, value in selector.items():
        values = {each[key] for each in labels if key in each}
        if str(value) not in values:
            known = f"values are {', '.join(sorted(values)[:5])}" if values else "no node has that label"
            yield Problem(
                f"{workload.pointer}/nodeSelector",
                f"selects nodes with {key}={value}, and {known}",
                "correct the selector, or label nodes",
            )
            return
    selected = [node for node in nodes if can_run_on(workload.spec, get_labels(node))]
    if not selected:
        yield Problem(
            f"{workload.pointer}/nodeSelector",
            "selects nodes by labels that no node has together",
            "relax nodeSelector and affinity",
        )
    else:
        lacking = [name for name in names if not any(offers(node, [name]) for node in selected)] or names
        yield Problem(
            workload.pointer,
            f"asks for {' and '.join(lacking)}, which none of the {len(selected)} nodes that it selects offers",
            "select nodes that offer it, or deploy the device plugin of that strategy",
        )


def find_too_many(workload: Workload, context: Context) -> Iterator[Problem]:
    nodes = find_candidates(workload, context)
    for name in sorted(list_requested(workload)) if nodes else []:
        requested, most = count_requested(workload.pod, name), max(get_allocatable(node, name) for node in nodes)
        shared = {get_labels(node).get("nvidia.com/gpu.sharing-strategy") for node in nodes}
        if requested > most:
            yield Problem(
                workload.pointer,
                f"asks for {requested} of {name}, and no node that it selects has more than {most}",
                f"ask for at most {most}",
            )
        elif is_served(name) and shared <= {*_SHARED} and _count_most(workload, name) > 1:
            always = shared == {"mps"}
            yield Problem(
                workload.pointer,
                f"asks for more than one of {name}, which are shares of GPUs on all nodes that it selects; the device plugin refuses that"
                + ("" if always else " with failRequestsGreaterThanOne"),
                "ask for 1, or select nodes with whole GPUs",
                "" if always else "warning",
            )


def _count_most(workload: Workload, name: str) -> Fraction:
    """Return what the container that requests most of the resource requests; the device plugin judges each by itself."""
    amounts = [parse(amount) for *_place, each, amount in list_amounts(workload, "limits") if each == name]
    return max((amount for amount in amounts if amount is not None), default=Fraction(0))


def find_newer_cuda(workload: Workload, context: Context) -> Iterator[Problem]:
    nodes = find_candidates(workload, context)
    versions = [each for each in map(_read_cuda, nodes) if each]
    if not list_requested(workload) or not versions:
        return
    newest = max(versions)
    # Images of NVIDIA have the libraries by which drivers of data centre GPUs run a newer major version.
    compatible = all(_DATA_CENTRE.search(get_labels(node).get("nvidia.com/gpu.product", "")) for node in nodes)
    for pointer, container in workload.list_containers():
        image, name = str(container.get("image") or ""), str(container.get("name"))
        variables = {
            str(each.get("name")): str(each.get("value"))
            for each in list_of(container, "env")
            if isinstance(each, dict)
        }
        cuda, required = find_cuda(image), find_required_cuda(variables)
        support = f"and the drivers of the nodes that it selects support at most {newest[0]}.{newest[1]}"
        if required and required > newest:
            yield Problem(
                f"{pointer}/env",
                f"requires CUDA {required[0]}.{required[1]} by NVIDIA_REQUIRE_CUDA, {support}",
                "upgrade the driver, or lower the requirement",
                "error",
                name,
            )
        if cuda and cuda > newest:
            yield Problem(
                f"{pointer}/image",
                f"uses CUDA {cuda[0]}.{cuda[1]}, {support}",
                "use an older image, or upgrade the driver",
                "error" if cuda[0] > newest[0] and not (compatible and "nvidia/" in image) else "warning",
                name,
            )


def _read_cuda(node: Object) -> tuple[int, int] | None:
    labels = get_labels(node)
    for major, minor in _CUDA_LABELS:
        if labels.get(major, "").isdigit() and labels.get(minor, "").isdigit():
            return int(labels[major]), int(labels[minor])
    return None


def find_other_driver(workload: Workload, context: Context) -> Iterator[Problem]:
    """The resource has the name of the node's driver, which another kernel can replace."""
    offered = [name for name in INTEL_NAMES if any(get_allocatable(node, name) for node in context.nodes or [])]
    for name in sorted(list_gpus(workload).intersection(INTEL_NAMES)):
        if offered and name not in offered:
            yield Problem(
                workload.pointer, f"asks for {name}, and the nodes offer {offered[0]} only", f"ask for {offered[0]}"
            )


def find_no_group(workload: Workload, context: Context) -> Iterator[Problem]:
    """The user of a container replaces that of the pod, and supplementalGroups are the pod's alone."""
    outer = map_of(workload.spec, "securityContext")
    if context.device_ownership is not False or list_of(outer, "supplementalGroups"):
        return
    for pointer, container in workload.list_containers():
        own = map_of(container, "securityContext")
        user = {**outer, **own}
        amounts = {**map_of(container, "resources", "requests"), **map_of(container, "resources", "limits")}
        names = sorted(name for name in map(str, amounts) if find_group(name) and vendor_of(name) in OTHERS)
        if names and (user.get("runAsNonRoot") or user.get("runAsUser")):
            yield Problem(
                f"{pointer if {'runAsNonRoot', 'runAsUser'}.intersection(own) else workload.pointer}/securityContext",
                f"asks for {names[0]} as another user than root, who cannot open the devices on these nodes",
                "add supplementalGroups with the group IDs of render and video, or set device_ownership_from_security_context in containerd",
                container=str(container.get("name")),
            )


# -- objects


def find_wrong_quota(document: Document, _context: Context) -> Iterator[Problem]:
    """The problems of a ResourceQuota or a LimitRange."""
    hard = map_of(document.object, "spec", "hard")
    for name in hard if document.kind == "ResourceQuota" else ():
        plain = str(name)[len("limits.") :] if str(name).startswith("limits.") else str(name)
        if is_extended(plain) and find_group(plain):
            yield Problem(
                "/spec/hard", f"has a quota for {name}, which Kubernetes does not count", f"write requests.{plain}"
            )
    for limit in list_of(map_of(document.object, "spec"), "limits") if document.kind == "LimitRange" else ():
        default, request = map_of(limit, "default"), map_of(limit, "defaultRequest")
        # Without a default request, the API server uses the default limit.
        for name in request:
            if find_group(str(name)) and parse(default.get(name)) != parse(request.get(name)):
                yield Problem(
                    "/spec/limits",
                    f"gives containers a default limit and another default request of {name}",
                    "make them equal",
                )


def find_stuck_surge(document: Document, context: Context) -> Iterator[Problem]:
    """The problem of a Deployment that cannot be rolled because the pods of its surge find no free GPU."""
    spec = map_of(document.object, "spec")
    strategy = map_of(spec, "strategy")
    if document.kind != "Deployment" or strategy.get("type", "RollingUpdate") != "RollingUpdate":
        return
    rolling = map_of(strategy, "rollingUpdate")
    surge = _count(rolling.get("maxSurge", _SURGE), spec.get("replicas", 1))
    if _count(rolling.get("maxUnavailable", _SURGE), spec.get("replicas", 1), down=True) > 0:
        return
    for workload in find_workloads([document]):
        nodes = find_candidates(workload, context)
        for name in sorted(list_requested(workload)) if nodes else []:
            requested = count_requested(workload.pod, name)
            held = [pod for pod in context.pods or [] if map_of(pod, "spec").get("nodeName")]
            free = 0
            for node in nodes:
                own = [pod for pod in held if pod["spec"]["nodeName"] == map_of(node, "metadata").get("name")]
                rest = get_allocatable(node, name) - sum(count_requested(pod, name) for pod in own)
                free += max(0, rest) // requested if requested and is_schedulable(node) else 0
            if requested and free < min(1, surge):
                yield Problem(
                    "/spec/strategy",
                    f"starts {surge} more pods with {requested} of {name} before it ends old ones, and there is no room for one",
                    "set maxUnavailable to 1 or more, or the strategy Recreate",
                )


def _count(value: Any, replicas: Any, down: bool = False) -> int:
    """Return a number of pods that is given as a number, or in per cent of the replicas, rounded up or down."""
    text, total = str(value), replicas if isinstance(replicas, int) else 1
    if text.endswith("%") and text[:-1].isdigit():
        share = int(text[:-1]) * total
        return share // 100 if down else -(-share // 100)
    return int(text) if text.isdigit() else 0
