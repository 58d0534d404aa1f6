# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses from which programs in a node's network call pods, as peers of a NetworkPolicy."""

from __future__ import annotations

import ipaddress
from typing import Iterable, Iterator

from .objects import Object, get_annotations, get_condition

# A network plugin with an overlay uses the address of its own interface on the node: Calico records it in annotations that begin so and end with
# Addr; Flannel's is the first address of the node's pod network, which no pod gets.
CALICO = "projectcalico.org/IPv"
ADDRESSES = ("InternalIP", "ExternalIP")
# Cilium's operator gives this reason of the condition NetworkUnavailable. Its policies match no node by address, unless policy-cidr-match-mode is nodes
# (Cilium: Documentation/security/policy/language.rst). A node itself always reaches its own pods, so that a test from there shows nothing.
CILIUM = "CiliumIsUp"


def build_peers(nodes: Iterable[Object]) -> list[Object]:
    """Return an ``ipBlock`` for each address of the nodes, without duplicates; what is not an address is ignored.

    Nodes of Cilium have no peers: their addresses would allow none of them.
    """
    known = list(nodes)
    if any(get_condition(node, "NetworkUnavailable").get("reason") == CILIUM for node in known):
        return []
    texts = [text for node in known for text in _list_addresses(node)]
    found = {cidr for cidr in map(_build_cidr, texts) if cidr}
    return [{"ipBlock": {"cidr": cidr}} for cidr in sorted(found)]


def _list_addresses(node: Object) -> Iterator[str]:
    for address in (node.get("status") or {}).get("addresses") or []:
        if address.get("type") in ADDRESSES:
            yield str(address.get("address"))
    for network in (node.get("spec") or {}).get("podCIDRs") or []:
        yield str(network).partition("/")[0]
    for key, value in get_annotations(node).items():
        if key.startswith(CALICO) and key.endswith("Addr"):
            yield str(value)


def _build_cidr(text: str) -> str:
    """Return the address with the length of its whole prefix; empty for anything else, also for a network."""
    try:
        return str(ipaddress.ip_network(str(ipaddress.ip_address(text))))
    except ValueError:
        return ""
