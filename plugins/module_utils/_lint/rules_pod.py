# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules that a manifest alone answers. Each takes a workload and a context and yields problems."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Iterator, Mapping

from .._kubernetes.quantities import parse_quantity
from .._vendors import BY_NAME, SERVED, vendor_of
from .images import find_vendor
from .model import Context, Document, Problem, Workload, list_of, map_of
from .resources import HAMI, RETIRED, find_group, find_near, is_extended, is_standard
from .walker import escape, find_workloads

_VISIBLE = (
    "NVIDIA_VISIBLE_DEVICES",
    "CUDA_VISIBLE_DEVICES",
    "AMD_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "ZE_AFFINITY_MASK",
)
# What may be requested for a pod as a whole. Source: the API server's answer, Kubernetes 1.34.
_POD_LEVEL = ("cpu", "memory")
_KUBELET = ("/var/lib/kubelet/device-plugins", "/var/lib/kubelet/pod-resources")
_DEVICES = ("/dev/nvidia", "/dev/kfd", "/dev/dri")
# Those that a container runtime reads, and the values by which a program sees no GPU.
_TAKING = ("NVIDIA_VISIBLE_DEVICES", "AMD_VISIBLE_DEVICES")
_HIDDEN = ("", "-1", "none", "void", "None", "NoDevFiles")
_MEMORY, _COUNT = "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
# By what a pod names its claims of dynamic resource allocation.
_CLAIMS = {"resourceClaimTemplateName": "ResourceClaimTemplate", "resourceClaimName": "ResourceClaim"}
_DOMAINS = {vendor.domain for vendor in BY_NAME.values()}


def parse(value: Any) -> Fraction | None:
    """Return the amount of a quantity; None for anything else."""
    try:
        return parse_quantity(str(value).strip())
    except ValueError:
        return None


def list_amounts(workload: Workload, section: str) -> Iterator[tuple[str, str, str, Any]]:
    """Yield JSON pointer, container, resource and amount of the containers' limits or requests."""
    for pointer, container in workload.list_containers():
        for name, amount in map_of(container, "resources", section).items():
            yield f"{pointer}/resources/{section}/{escape(name)}", str(container.get("name")), str(name), amount


def list_resources(workload: Workload) -> set[str]:
    """Return the extended resources of the containers' limits and requests, also those with the amount 0."""
    found = {
        name
        for section in ("limits", "requests")
        for _pointer, _container, name, _amount in list_amounts(workload, section)
    }
    return {name for name in found if is_extended(name)}


def list_gpus(workload: Workload) -> set[str]:
    """Return those of list_resources that a strategy or vendor of GPUs offers."""
    return {name for name in list_resources(workload) if find_group(name)}


def list_requested(workload: Workload) -> set[str]:
    """Return those of list_gpus of which a container requests more than 0."""
    amounts = [
        (name, parse(amount))
        for section in ("limits", "requests")
        for *_place, name, amount in list_amounts(workload, section)
    ]
    return {name for name, amount in amounts if find_group(name) and (amount is None or amount > 0)}


def serves_gpus(workload: Workload) -> bool:
    """Return whether the pod offers or observes GPUs: it talks to the kubelet, or has the image of a device plugin. Such pods need all GPUs."""
    paths = [str(map_of(each, "hostPath").get("path") or "") for each in list_of(workload.spec, "volumes")]
    images = [str(container.get("image") or "") for _pointer, container in workload.list_containers()]
    return any(path.startswith(_KUBELET) for path in paths) or any("device-plugin" in image for image in images)


def _lower(severity: str, workload: Workload) -> str:
    """Return the severity; a note for a DaemonSet, which may be the vendor's and observe all GPUs of a node."""
    return "note" if workload.document.kind == "DaemonSet" else severity


def has_claims(workload: Workload) -> bool:
    """Return whether the pod has claims of dynamic resource allocation."""
    return bool(list_of(workload.spec, "resourceClaims"))


def find_request_without_limit(workload: Workload, _context: Context) -> Iterator[Problem]:
    for pointer, container in workload.list_containers():
        limits, requests = (map_of(container, "resources", each) for each in ("limits", "requests"))
        for name in requests:
            if is_extended(str(name)) and name not in limits:
                yield Problem(
                    f"{pointer}/resources/requests/{escape(name)}",
                    f"requests {name} without a limit, which the API server refuses",
                    f"write the amount as limits.{name}; the request follows from it",
                    container=str(container.get("name")),
                )


def find_other_request(workload: Workload, _context: Context) -> Iterator[Problem]:
    for pointer, container in workload.list_containers():
        limits, requests = (map_of(container, "resources", each) for each in ("limits", "requests"))
        for name in requests:
            if is_extended(str(name)) and name in limits and parse(requests[name]) != parse(limits[name]):
                yield Problem(
                    f"{pointer}/resources/requests/{escape(name)}",
                    f"requests {requests[name]} of {name} with a limit of {limits[name]}, which the API server refuses: they have to be equal",
                    "leave the request out",
                    container=str(container.get("name")),
                )


def find_fraction(workload: Workload, _context: Context) -> Iterator[Problem]:
    for section in ("limits", "requests"):
        for pointer, container, name, amount in list_amounts(workload, section):
            number = parse(amount)
            if is_extended(name) and (number is None or number.denominator != 1):
                yield Problem(
                    pointer,
                    f"asks for {amount} of {name}, which is not a whole number",
                    "ask for whole GPUs, or share GPUs and ask for parts by the strategy's own resource",
                    container=container,
                )


def find_unknown_name(workload: Workload, context: Context) -> Iterator[Problem]:
    offered = {name for node in context.nodes or [] for name in map_of(node, "status", "allocatable")}
    classes = _list_names_of_classes(context)
    reported = set()
    for section in ("limits", "requests"):
        for pointer, container, name, _amount in list_amounts(workload, section):
            if (container, name) in reported or is_standard(name) or name in offered | classes:
                continue
            reported.add((container, name))
            problem = _judge_name(name, offered)
            if problem:
                yield Problem(pointer, problem[0], problem[1], problem[2], container)


def _list_names_of_classes(context: Context) -> set[str]:
    """Return the extended resources that dynamic resource allocation offers."""
    return {str(map_of(each, "spec").get("extendedResourceName")) for each in context.device_classes or []}


def _judge_name(name: str, offered: set[str]) -> tuple[str, str, str] | None:
    """Return message, fix and severity for a name that no node is known to offer; None for nothing to say."""
    if name in RETIRED:
        return f"asks for {name}, which no device plugin offers any more", f"ask for {RETIRED[name]}", "error"
    if name.startswith("requests."):
        return f"asks for {name}, which the API server refuses", f"write {name.partition('.')[2]}", "error"
    if "/" not in name:
        near = find_near(f"nvidia.com/{name}", ())
        return (
            f"asks for {name}, which is no resource of Kubernetes",
            f"write the full name, such as {near or 'nvidia.com/gpu'}",
            "error",
        )
    if find_group(name) and not find_near(name, ()):
        return None
    near = "" if find_group(name) and not offered else find_near(name, offered)
    if near:
        return (
            f"asks for {name}, and no node offers that name"
            if offered
            else f"asks for {name}, which is not a known name",
            f"write {near} if that is meant",
            "",
        )
    domain = name.partition("/")[0]
    # Only where a device plugin of that vendor runs: elsewhere the nodes that have the name may be yet to come.
    served = sorted(each for each in offered if each.partition("/")[0] == domain)
    if domain in _DOMAINS and served and not find_group(name):
        return f"asks for {name}, and no node offers that name", f"ask for what nodes offer, such as {served[0]}", ""
    return None


def find_zero(workload: Workload, context: Context) -> Iterator[Problem]:
    for pointer, container, name, amount in list_amounts(workload, "limits"):
        number = parse(amount)
        if not is_extended(name) or number is None or number > 0:
            continue
        if number < 0:
            yield Problem(
                pointer,
                f"asks for {amount} of {name}, which the API server refuses",
                "ask for 1 or more",
                "error",
                container,
            )
        elif find_group(name):
            sees_all = context.default_runtime == "nvidia"
            reason = "and sees all GPUs, because nvidia is the default runtime" if sees_all else "and gets none"
            fix = (
                "leave the resource out, and set NVIDIA_VISIBLE_DEVICES to none"
                if sees_all
                else "leave the resource out, or ask for 1"
            )
            yield Problem(pointer, f"asks for 0 of {name} {reason}", fix, "error" if sees_all else "", container)


def find_pod_level(workload: Workload, _context: Context) -> Iterator[Problem]:
    for section in ("limits", "requests"):
        for name in map_of(workload.spec, "resources", section):
            if str(name) not in _POD_LEVEL and not str(name).startswith("hugepages-"):
                yield Problem(
                    f"{workload.pointer}/resources/{section}/{escape(name)}",
                    f"asks for {name} for the pod as a whole, which the API server refuses",
                    "ask in the resources of a container",
                )


def find_several_strategies(workload: Workload, context: Context) -> Iterator[Problem]:
    groups = {find_group(name): name for name in sorted(list_requested(workload))}
    if HAMI in groups:
        groups.pop(SERVED.resource, None)  # its number of GPUs
    if len(groups) > 1:
        names = " and ".join(sorted(groups.values()))
        yield Problem(
            workload.pointer,
            f"asks for {names}, which no single node and strategy offers to one pod",
            "ask for one of them",
        )
    classes = sorted(_list_claimed_classes(workload, context))
    for name in sorted(list_requested(workload) - _list_names_of_classes(context)):
        claimed = [each for each in classes if each.startswith(vendor_of(name).dra_driver)]
        if claimed:
            yield Problem(
                f"{workload.pointer}/resourceClaims",
                f"asks for {name} and has a claim of {claimed[0]}, and each of them counts the same GPUs",
                "ask for the resource, or by the claim",
            )


def _list_claimed_classes(workload: Workload, context: Context) -> Iterator[str]:
    """Yield the device classes of the pod's claims, as far as the objects of the claims are known."""
    namespace = map_of(workload.document.object, "metadata").get("namespace")
    entries = list_of(workload.spec, "resourceClaims")
    names = {(kind, each[key]) for each in entries for key, kind in _CLAIMS.items() if each.get(key)}
    for claim in context.claims or []:
        metadata = map_of(claim, "metadata")
        places = {namespace, metadata.get("namespace")} - {None, ""}
        if (claim.get("kind"), metadata.get("name")) in names and len(places) < 2:
            yield from _find_classes(claim.get("spec"))


def _find_classes(value: Any) -> Iterator[str]:
    """Yield the device classes anywhere below a value: their place differs between the versions of the API."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from [str(item)] if key == "deviceClassName" else _find_classes(item)
    elif isinstance(value, list):
        for item in value:
            yield from _find_classes(item)


def find_own_choice(workload: Workload, _context: Context) -> Iterator[Problem]:
    if serves_gpus(workload):
        return
    asks = bool(list_gpus(workload)) or has_claims(workload)
    for pointer, container in workload.list_containers():
        for number, variable in enumerate(list_of(container, "env")):
            name = variable.get("name") if isinstance(variable, dict) else None
            # Pods that share a GPU by memory read the annotation of their GPU by the downward API.
            if name not in _VISIBLE or variable.get("valueFrom") or str(variable.get("value") or "") in _HIDDEN:
                continue
            takes = not asks and name in _TAKING
            yield Problem(
                f"{pointer}/env/{number}",
                f"sets {name} by hand, "
                + (
                    "and takes GPUs that no scheduler counts"
                    if takes
                    else "which contradicts the device plugin's choice"
                ),
                "remove the variable, and ask for GPUs by a resource" if takes else "remove the variable",
                _lower("error", workload) if takes else "",
                str(container.get("name")),
            )


def _has_gpus(document: Document) -> bool:
    """Return whether one pod of an object asks for GPUs, as workers beside a launcher do, or others add the resources, as to a ServingRuntime."""
    pods = find_workloads([document])
    return document.kind.endswith("Runtime") or any(list_gpus(each) or has_claims(each) for each in pods)


def find_no_resource(workload: Workload, _context: Context) -> Iterator[Problem]:
    if serves_gpus(workload) or _has_gpus(workload.document):
        return
    runtime = workload.spec.get("runtimeClassName") == "nvidia"
    for pointer, container in workload.list_containers():
        image = str(container.get("image") or "")
        variables = {each.get("name") for each in list_of(container, "env") if isinstance(each, dict)}
        vendor = find_vendor(image)
        reason = (
            f"uses the image {image}"
            if vendor
            else "sets NVIDIA_DRIVER_CAPABILITIES"
            if "NVIDIA_DRIVER_CAPABILITIES" in variables
            else "has the RuntimeClass nvidia"
            if runtime
            else ""
        )
        if reason:
            yield Problem(
                pointer,
                f"{reason} and asks for no GPU",
                f"add limits with {(vendor or SERVED).resource}, or the strategy's resource",
                _lower("", workload),
                str(container.get("name")),
            )
            return


def find_uncounted_memory(workload: Workload, _context: Context) -> Iterator[Problem]:
    memory = [pointer for pointer, _container, name, _amount in list_amounts(workload, "limits") if name == _MEMORY]
    main = [pointer for pointer in memory if not pointer.startswith(f"{workload.pointer}/initContainers/")]
    counts = [
        parse(amount) for _pointer, _container, name, amount in list_amounts(workload, "limits") if name == _COUNT
    ]
    if memory and not main:
        yield Problem(
            memory[0],
            f"asks for {_MEMORY} in an init container only, which {find_group(_MEMORY)} does not count",
            "ask in a container",
        )
    if len(main) > 1:
        yield Problem(
            main[1],
            f"asks for {_MEMORY} in {len(main)} containers, which all get the first one's GPU and amount",
            "ask in one container",
        )
    if memory and any((count or 0) >= 2 for count in counts):
        yield Problem(
            memory[0],
            f"asks for {_MEMORY} with {_COUNT} of 2 or more, which {find_group(_MEMORY)} does not place on several GPUs",
            "leave the count out",
        )


def find_bypass(workload: Workload, _context: Context) -> Iterator[Problem]:
    if serves_gpus(workload):
        return
    for number, volume in enumerate(list_of(workload.spec, "volumes")):
        path = str(map_of(volume, "hostPath").get("path") or "")
        if path.startswith(_DEVICES):
            yield Problem(
                f"{workload.pointer}/volumes/{number}",
                f"mounts {path} of the host, past the device plugin",
                "ask for GPUs by a resource",
            )
    for pointer, container in workload.list_containers():
        if map_of(container, "securityContext").get("privileged") is True and find_vendor(
            str(container.get("image") or "")
        ):
            yield Problem(
                f"{pointer}/securityContext",
                "is privileged, so that it sees all GPUs of the node",
                "drop privileged, and ask for GPUs by a resource",
                container=str(container.get("name")),
            )
