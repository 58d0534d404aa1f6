# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hosts, groups and variables of an inventory, from the nodes of a cluster.

Kubelets write the labels, addresses and resources of their nodes, so that a name or an address is only used if it has the characters of one.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Any, Iterable, Mapping, Sequence

from .._sharing.catalogue import OWN_PLUGIN, STRATEGIES, gpu_resources, matching, strategy_of, strategy_resources
from .._sharing.plugin_config import LABEL, read_configured, strategy_of_name
from .._text import make_printable
from .._vendors import BY_NAME, SERVED, Vendor
from .labels.devices import PREFIX
from .objects import (
    Object,
    format_taint,
    get_annotations,
    get_labels,
    get_name,
    is_ready,
    is_schedulable,
    matches_selector,
    parse_units,
)

GPU_NODES, CONTROL_PLANES = "gpu_nodes", "kube_control_plane"
#: What each group begins with that has one kind of node: a product, a vendor, a sharing strategy, a state.
PRODUCT, VENDOR, SHARING, STATE = "gpu_product_", "gpu_vendor_", "gpu_sharing_", "gpu_state_"
#: The sources of addresses that have one word; the others are ``annotation:KEY`` and a network such as ``10.0.0.0/8``.
ADDRESS_TYPES = ("InternalIP", "ExternalIP", "Hostname")
NODE_NAME, ANNOTATION = "name", "annotation:"

_CONTROL_PLANE_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
# GPU feature discovery writes the strategy of NVIDIA's device plugin, with its own spelling.
_SHARING_LABEL, _MIG_LABEL = "nvidia.com/gpu.sharing-strategy", "nvidia.com/mig.strategy"
# Node Feature Discovery has the PCI class in its label unless it is configured to leave it out, as the GPU Operator does.
_PCI_LABEL = re.compile(r"feature\.node\.kubernetes\.io/pci-(?:([0-9a-f]{4})_)?([0-9a-f]{4})\.present")
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
# Names of hosts that mean another host, or all hosts, to Ansible.
_RESERVED = frozenset({"all", "localhost", "127.0.0.1", "ungrouped"})
_GROUP = re.compile(r"[^A-Za-z0-9_]")


@dataclass(frozen=True)
class Options:
    """What a user configures. Without an address of one of the sources, Ansible connects to the name of the node."""

    selector: Mapping[str, str]
    gpu_labels: Mapping[str, str]
    address_from: Sequence[str]
    control_planes: bool = True


@dataclass(frozen=True)
class InventoryHost:
    """One host. ``variables`` has values that a kubelet has written."""

    name: str
    groups: tuple[str, ...]
    variables: Mapping[str, Any]


def sanitize_group_name(name: Any) -> str:
    """Return a valid name of a group: letters, digits and underscores, the first of which is not a digit."""
    text = _GROUP.sub("_", str(name))
    return f"_{text}" if text[:1].isdigit() else text


def find_unknown_source(address_from: Iterable[str]) -> str:
    """Return the first source of addresses that is none, or an empty text."""
    return next((source for source in address_from if not _is_source(source)), "")


def reduce_node(node: Object) -> Object:
    """Return the parts of a node that this module reads; a node has ten times as much."""
    metadata, spec, status = (node.get(part) or {} for part in ("metadata", "spec", "status"))
    return {
        "metadata": {key: metadata.get(key) for key in ("name", "labels", "annotations")},
        "spec": {key: spec.get(key) for key in ("taints", "unschedulable")},
        "status": {
            "capacity": status.get("capacity"),
            "allocatable": status.get("allocatable"),
            "addresses": status.get("addresses"),
            "conditions": [each for each in status.get("conditions") or [] if each.get("type") == "Ready"],
            "nodeInfo": {
                key: (status.get("nodeInfo") or {}).get(key)
                for key in ("kubeletVersion", "containerRuntimeVersion", "architecture", "osImage")
            },
        },
    }


def build_hosts(nodes: Iterable[Object], options: Options) -> tuple[list[InventoryHost], list[str]]:
    """Return the hosts, sorted by name, and warnings about nodes that cannot be hosts.

    A host is a node with a GPU of any vendor, or a control plane. The name of the host is that of its node.
    """
    hosts, warnings = [], []
    for node in sorted(nodes, key=get_name):
        if not matches_selector(options.selector, get_labels(node)):
            continue
        facts = describe_node(node)
        is_gpu_node = bool(facts["vendors"]) or any(
            get_labels(node).get(key) == value for key, value in options.gpu_labels.items()
        )
        is_control_plane = options.control_planes and facts["control_plane"]
        if not (is_gpu_node or is_control_plane):
            continue
        name = facts["name"]
        if not _NAME.fullmatch(name) or name in _RESERVED:
            warnings.append(
                f"Node {make_printable(name)} is left out, since its name means something else to Ansible; write its host into "
                "an inventory file with gpu_node_name."
            )
            continue
        groups = _list_groups(facts) if is_gpu_node else []
        groups += [CONTROL_PLANES] if is_control_plane else []
        address = find_address(node, options.address_from)
        variables = {"gpu_node_name": name, "gpu_node": facts, **({"ansible_host": address} if address else {})}
        hosts.append(InventoryHost(name, tuple(groups), variables))
    return hosts, warnings


def describe_node(node: Object) -> dict[str, Any]:
    """Return the variable ``gpu_node``; amounts are units of each resource."""
    labels, status = get_labels(node), node.get("status") or {}
    capacity, allocatable = (_read_resources(status.get(field)) for field in ("capacity", "allocatable"))
    vendors = [row for row in BY_NAME.values() if _is_vendor_of(row, labels, capacity)]
    info = status.get("nodeInfo") or {}
    return {
        "name": get_name(node),
        "vendors": [row.name for row in vendors],
        "products": [product for row in vendors if (product := _find_product(row, labels))],
        "gpus": sum(_count_gpus(row, labels, capacity) for row in BY_NAME.values()),
        "strategy": find_strategy(labels, allocatable),
        "capacity": capacity,
        "allocatable": allocatable,
        "ready": is_ready(node),
        "schedulable": is_schedulable(node),
        "control_plane": any(label in labels for label in _CONTROL_PLANE_LABELS),
        "taints": [format_taint(taint) for taint in (node.get("spec") or {}).get("taints") or []],
        "labels": labels,
        "kubelet_version": str(info.get("kubeletVersion") or ""),
        "container_runtime_version": str(info.get("containerRuntimeVersion") or ""),
        "architecture": str(info.get("architecture") or ""),
        "os_image": str(info.get("osImage") or ""),
    }


def find_strategy(labels: Mapping[str, str], allocatable: Mapping[str, int]) -> str:
    """Return the sharing strategy of a node, by its labels first and then by what it offers; empty if it offers no GPU of a known strategy."""
    own = next((row for row in OWN_PLUGIN if row.is_labelled(labels)), None)
    named = strategy_of_name(labels.get(LABEL, ""))
    reported = STRATEGIES.get(labels.get(_SHARING_LABEL, "").replace("-", "_"))
    if own or named or reported:
        return (own or named or reported).name  # type: ignore[union-attr]
    offered = [name for name, units in strategy_resources(allocatable).items() if units > 0]
    if not offered:
        return ""
    first = strategy_of(offered[0])
    if not first.by_nvidia:
        return first.name
    has_slices = labels.get(_MIG_LABEL, "none") != "none" or any(name.startswith("nvidia.com/mig-") for name in offered)
    return read_configured({"flags": {"migStrategy": "mixed" if has_slices else "none"}}).name


def find_address(node: Object, address_from: Iterable[str]) -> str:
    """Return the first address of the first source that has one; empty if none has. Text that is no address is ignored."""
    for source in address_from:
        for address in _list_addresses(node, source):
            if _is_address(address):
                return address
    return ""


def _list_groups(facts: Mapping[str, Any]) -> list[str]:
    groups = [GPU_NODES]
    groups += [f"{PRODUCT}{sanitize_group_name(product).lower()}" for product in facts["products"]]
    groups += [f"{VENDOR}{vendor}" for vendor in facts["vendors"]]
    groups += [f"{SHARING}{facts['strategy']}"] if facts["strategy"] else []
    groups += [] if facts["ready"] else [f"{STATE}not_ready"]
    groups += [] if facts["schedulable"] else [f"{STATE}cordoned"]
    groups += [] if any(facts["allocatable"].values()) else [f"{STATE}not_allocatable"]
    return groups


def _read_resources(amounts: Any) -> dict[str, int]:
    """Return the units of all GPU resources of any vendor and strategy, without those that are 0."""
    units = {str(name): parse_units(amount) for name, amount in (amounts or {}).items() if "/" in str(name)}
    return {name: number for name, number in sorted(gpu_resources(units).items()) if number}


def _find_product(row: Vendor, labels: Mapping[str, str]) -> str:
    """Return the product by the label of the vendor's program, or by that of this collection."""
    return labels.get(row.product_label) or labels.get(f"{PREFIX}{row.name}.product") or ""


def _count_gpus(row: Vendor, labels: Mapping[str, str], capacity: Mapping[str, int]) -> int:
    """Return the GPUs of the vendor by the label with their number, else by what the node has of whole GPUs; 0 if pods share these."""
    if row.count_label in labels:
        return parse_units(labels[row.count_label])
    # A device plugin without a configuration offers whole GPUs.
    are_whole = row is not SERVED or find_strategy(labels, capacity) == read_configured({}).name
    return sum(capacity.get(name, 0) for name in row.resources) if are_whole else 0


def _is_vendor_of(row: Vendor, labels: Mapping[str, str], capacity: Mapping[str, int]) -> bool:
    """Return whether a node has GPUs of the vendor: by a resource, a label of the vendor's programs, or the PCI bus."""
    if strategy_resources(capacity) if row is SERVED else matching(capacity, (*row.resources, *row.partitions)):
        return True
    if (row.product_label and labels.get(row.product_label)) or labels.get(row.present_label) == "true":
        return True
    # The integrated graphics of a processor are on the bus, too: only GPUs that this collection serves are found by it.
    return row is SERVED and any(_is_on_bus(row, label) for label, value in labels.items() if value == "true")


def _is_on_bus(row: Vendor, label: str) -> bool:
    match = _PCI_LABEL.fullmatch(label)
    if not match or f"0x{match.group(2)}" != row.pci_vendor:
        return False
    return match.group(1) is None or f"0x{match.group(1)}".startswith(row.pci_classes)


def _is_source(source: str) -> bool:
    if source in (*ADDRESS_TYPES, NODE_NAME):
        return True
    return bool(source[len(ANNOTATION) :]) if source.startswith(ANNOTATION) else _read_network(source) is not None


def _read_network(source: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(source) if "/" in source else None
    except ValueError:
        return None


def _list_addresses(node: Object, source: str) -> list[str]:
    if source == NODE_NAME:
        return [get_name(node)]
    if source.startswith(ANNOTATION):
        return [str(get_annotations(node).get(source[len(ANNOTATION) :]) or "")]
    reported = [
        (str(each.get("type")), str(each.get("address") or ""))
        for each in (node.get("status") or {}).get("addresses") or []
    ]
    if source in ADDRESS_TYPES:
        return [address for kind, address in reported if kind == source]
    network = _read_network(source)
    return [address for _kind, address in reported if network is not None and _is_within(address, network)]


def _is_within(address: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    try:
        return ipaddress.ip_address(address) in network
    except ValueError:
        return False


def _is_address(text: str) -> bool:
    """Return whether the text is an IP address or the name of a host; one that begins with a hyphen would be an option of ssh."""
    try:
        return "%" not in text and not ipaddress.ip_address(text).is_loopback
    except ValueError:
        return bool(_HOST.fullmatch(text)) and text.lower() != "localhost"
