# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter node_allocatable."""

from __future__ import annotations

DOCUMENTATION = r"""
name: node_allocatable
short_description: Compare what a node offers pods with what its kubelet keeps from them
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Works out, as the kubelet does, what is left of a node's capacity once C(kubeReserved), C(systemReserved), the hard eviction thresholds
    for memory and the node's file system, and huge pages are taken away.
  - Tells in words where that is more than there is, other than the node says, or less than its pods ask for.
positional: _input
options:
  _input:
    description: The Node, as the API server has it.
    type: dict
    required: true
  reserved:
    description: What the kubelet keeps from pods, as M(gpu.kubernetes.kubelet_config) returns it.
    type: dict
    required: true
  resources:
    description: Which resources to look at.
    type: list
    elements: str
    choices: [cpu, memory, ephemeral-storage]
    default: [cpu, memory, ephemeral-storage]
  pods:
    description: The node's pods. Those that have ended do not count.
    type: list
    elements: dict
    default: []
seealso:
  - module: gpu.kubernetes.kubelet_config
  - plugin: gpu.kubernetes.kubelet_reserved
    plugin_type: role
    description: Uses it.
"""

EXAMPLES = r"""
- name: See what would be left for pods
  gpu.kubernetes.kubelet_config:
    values: {kubeReserved: {cpu: 500m, memory: 1Gi}}
  register: kubelet
  check_mode: true
  become: true

- name: Show it
  ansible.builtin.debug:
    msg: "{{ node | gpu.kubernetes.node_allocatable(kubelet.reserved, kubelet.resources) }}"
"""

RETURN = r"""
_value:
  description:
    - C(expected), what the node should offer, by resource, in words.
    - C(too_much), C(different) and C(crowded), each a list of what is wrong, in words, such as C(500Gi of memory, of which it has 15.63Gi). With
      C(too_much) the kubelet does not start; C(different) is what the node offers other than it should; C(crowded) is what its pods
      ask for beyond what a change would leave them.
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import allocatable


def node_allocatable(
    node: Mapping[str, Any],
    reserved: Mapping[str, Mapping[str, str]],
    resources: Sequence[str] = allocatable.RESOURCES,
    pods: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return what a node should offer, and what is wrong with that."""
    if not isinstance(node, Mapping) or not isinstance(reserved, Mapping):
        raise AnsibleFilterError("node_allocatable needs a Node, and what kubelet_config returns as reserved.")
    known = allocatable.parts(node, reserved, resources)
    return {
        "expected": {part.resource: part.format(part.expected) for part in known},
        "too_much": allocatable.find_excess(known),
        "different": allocatable.find_differences(known),
        "crowded": allocatable.find_shortages(known, pods),
    }


class FilterModule:
    """Filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by their names."""
        return {"node_allocatable": node_allocatable}
