# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter node_allocatable."""

from __future__ import annotations

DOCUMENTATION = r"""
name: node_allocatable
short_description: Compare a node's allocatable resources with the reservations of its kubelet
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Calculates a node's allocatable resources as the kubelet does, as its capacity without C(kubeReserved), C(systemReserved), the hard eviction
    thresholds for memory and the node's file system, and huge pages.
  - Describes reservations larger than the capacity, differences from what the node reports, and what the requests of its pods exceed.
positional: _input
options:
  _input:
    description: The Node, as the API server has it.
    type: dict
    required: true
  reserved:
    description: The kubelet's reservations, as M(gpu.kubernetes.kubelet_config) returns them.
    type: dict
    required: true
  resources:
    description: Resources to compare.
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
- name: Plan the kubelet's reservations
  gpu.kubernetes.kubelet_config:
    values: {kubeReserved: {cpu: 500m, memory: 1Gi}}
  register: kubelet
  check_mode: true
  become: true

- name: Show the allocatable resources
  ansible.builtin.debug:
    msg: "{{ node | gpu.kubernetes.node_allocatable(kubelet.reserved, kubelet.resources) }}"
"""

RETURN = r"""
_value:
  description:
    - C(expected), the expected allocatable amount of each resource, as text.
    - C(excess), C(differences) and C(shortages), lists of problems as text, such as C(500Gi of memory, of which it has 15.63Gi). With C(excess)
      the kubelet does not start. C(differences) are amounts that the node reports differently. C(shortages) are requests of its pods that
      would exceed the allocatable amount.
  type: dict
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError


def node_allocatable(
    node: Mapping[str, Any],
    reserved: Mapping[str, Mapping[str, str]],
    resources: Sequence[str] | None = None,
    pods: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the expected allocatable resources of a node, and problems."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import allocatable

    if not isinstance(node, Mapping) or not isinstance(reserved, Mapping):
        raise AnsibleFilterError("node_allocatable needs a Node, and what kubelet_config returns as reserved.")
    known = allocatable.parts(node, reserved, allocatable.RESOURCES if resources is None else resources)
    return {
        "expected": {part.resource: part.format(part.expected) for part in known},
        "excess": allocatable.find_excess(known),
        "differences": allocatable.find_differences(known),
        "shortages": allocatable.find_shortages(known, pods),
    }


class FilterModule:
    """Filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by their names."""
        return {"node_allocatable": node_allocatable}
