# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Peers of a NetworkPolicy for programs in the network of nodes."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.network import build_peers


def node(*addresses: tuple[str, str], networks: Any = None, **annotations: str) -> dict[str, Any]:
    return {
        "metadata": {"annotations": {f"projectcalico.org/{key}": value for key, value in annotations.items()}},
        "spec": {"podCIDRs": networks},
        "status": {"addresses": [{"type": kind, "address": address} for kind, address in addresses]},
    }


def set_network(reason: str) -> dict[str, Any]:
    """A node whose network plugin has reported itself."""
    found = node(("InternalIP", "192.0.2.11"), networks=["10.244.0.0/24"])
    found["status"]["conditions"] = [{"type": "NetworkUnavailable", "status": "False", "reason": reason}]
    return found


#: Nodes, and the source addresses of their programs.
NODES = {
    "none": ([], []),
    "both families": ([node(("InternalIP", "192.0.2.11"), ("InternalIP", "2001:db8::b"))], ["192.0.2.11/32", "2001:db8::b/128"]),
    "names are no addresses": ([node(("Hostname", "cp1"), ("ExternalIP", "198.51.100.1"))], ["198.51.100.1/32"]),
    "flannel": ([node(networks=["10.244.0.0/24", "fd00:1::/64"])], ["10.244.0.0/32", "fd00:1::/128"]),
    "calico": (
        [node(IPv4IPIPTunnelAddr="10.0.0.1", IPv4VXLANTunnelAddr="10.0.0.2", IPv4Address="192.0.2.11/24")],
        ["10.0.0.1/32", "10.0.0.2/32"],
    ),
    "same address twice": ([node(("InternalIP", "192.0.2.11"))] * 2, ["192.0.2.11/32"]),
    # A kubelet is not trusted: it may report a network as an address, or text.
    "everything": ([node(("InternalIP", "0.0.0.0/0"), ("InternalIP", "x"), IPv4IPIPTunnelAddr="")], []),
    "another plugin": ([set_network("FlannelIsUp")], ["10.244.0.0/32", "192.0.2.11/32"]),
    # Cilium does not match nodes by address, so these would reject kube-scheduler.
    "cilium": ([node(("InternalIP", "192.0.2.12")), set_network("CiliumIsUp")], []),
    "empty": ([{}, {"status": None, "spec": None, "metadata": None}], []),
}  # fmt: skip


@pytest.mark.parametrize(("nodes", "cidrs"), NODES.values(), ids=NODES)
def test_peers_are_the_addresses_of_nodes(nodes: Any, cidrs: list[str]) -> None:
    assert build_peers(nodes) == [{"ipBlock": {"cidr": cidr}} for cidr in cidrs]
