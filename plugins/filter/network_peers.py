# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter network_peers."""

from __future__ import annotations

DOCUMENTATION = r"""
name: network_peers
short_description: Return nodes as peers of a NetworkPolicy
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Programs in the network of a node, such as kube-scheduler, call pods from its addresses, and from that of the network plugin's interface.
positional: _input
options:
  _input:
    description: The nodes.
    type: list
    elements: dict
    required: true
"""

RETURN = r"""
_value:
  description: An C(ipBlock) for each address; none with Cilium, which does not match nodes by address.
  type: list
  elements: dict
  sample: [{ipBlock: {cidr: 192.0.2.11/32}}]
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def network_peers(nodes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the peers; anything else than a list of nodes raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.network import build_peers

    try:
        return build_peers(nodes)
    except (AttributeError, TypeError) as error:
        raise AnsibleFilterError(f"network_peers cannot read its input ({error!r}); see its documentation.") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"network_peers": network_peers}
