# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter sharing_conflicts."""

from __future__ import annotations

DOCUMENTATION = r"""
name: sharing_conflicts
short_description: Find what keeps nodes from being shared by gpushare or nano-gpu
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Finds the first conflict of the nodes of hosts that enter a sharing strategy. The node is not in the cluster, the GPU Operator, a DRA driver or
    another device plugin offers the same GPUs, the cluster has nodes with the other strategy, or pods hold whole GPUs of the node.
  - The role P(gpu.kubernetes.gpu_sharing#role) collects the input and fails with the error.
positional: _input, strategy
options:
  _input:
    description:
      - One entry for each host that enters the strategy, with C(host), C(node), and C(expected), the units that the node is going to offer.
      - Where that is 0, the node only has to be in the cluster.
    type: list
    elements: dict
    required: true
  strategy:
    description: The strategy.
    type: str
    choices: [gpushare, nano_gpu]
    required: true
  nodes:
    description: The rows C(nodes) that M(gpu.kubernetes.gpu_nodes_info) returns for the nodes of the hosts.
    type: list
    elements: dict
    required: true
  labelled:
    description: Names of all nodes that have the label of the other strategy.
    type: list
    elements: str
    default: []
  claimed:
    description: Names of the nodes for which NVIDIA's DRA driver has published ResourceSlices.
    type: list
    elements: str
    default: []
  leaving:
    description: Names of the nodes that leave the other strategy in this run.
    type: list
    elements: str
    default: []
  emptied:
    description: Names of the nodes that this run drains of GPU pods before they enter the strategy.
    type: list
    elements: str
    default: []
  second_scheduler:
    description: The strategy that has a kube-scheduler of its own; empty if none has.
    type: str
    default: ""
  resource_name:
    description: The resource that NVIDIA's device plugin registers.
    type: str
    default: nvidia.com/gpu
seealso:
  - plugin: gpu.kubernetes.sharing_decisions
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show why a node cannot be shared by gpushare
  ansible.builtin.debug:
    msg: "{{ ([{'host': 'a', 'node': 'a', 'expected': 32}] | gpu.kubernetes.sharing_conflicts('gpushare', nodes=gpus.nodes)).error }}"
"""

RETURN = r"""
_value:
  description: The first conflict, and the resources of NVIDIA's device plugin.
  type: dict
  contains:
    error:
      description: Why the nodes cannot enter the strategy, in one sentence, or empty.
      type: str
    whole_resources:
      description: The resources that the nodes have in their capacity by NVIDIA's device plugin; O(resource_name) where they have none.
      type: list
      elements: str
  sample:
    error: ""
    whole_resources: [nvidia.com/gpu]
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.conflicts import find_conflicts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


def sharing_conflicts(
    joining: Sequence[Mapping[str, Any]],
    strategy: str,
    nodes: Sequence[Mapping[str, Any]],
    labelled: Iterable[str] = (),
    claimed: Iterable[str] = (),
    leaving: Iterable[str] = (),
    emptied: Iterable[str] = (),
    second_scheduler: str = "",
    resource_name: str = "nvidia.com/gpu",
) -> dict[str, Any]:
    """Return the first conflict and the resources of NVIDIA's device plugin; input of another form raises AnsibleFilterError."""
    try:
        return find_conflicts(
            joining, strategy, nodes, labelled, claimed, leaving, emptied, second_scheduler, resource_name
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(
            f"sharing_conflicts cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"sharing_conflicts": sharing_conflicts}
