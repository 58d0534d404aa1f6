# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter node_capacities."""

from __future__ import annotations

DOCUMENTATION = r"""
name: node_capacities
short_description: Return the capacity that nodes have of some resources
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Scheduler extenders read each node once, and are restarted if this value changes.
positional: _input, resources
options:
  _input:
    description: The rows C(nodes) that M(gpu.kubernetes.gpu_nodes_info) returns.
    type: list
    elements: dict
    required: true
  resources:
    description: The resources. Only nodes that have some of the first one are returned.
    type: list
    elements: str
    required: true
  planned:
    description: By node, the capacities that a run would give it.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show the capacities
  ansible.builtin.debug:
    msg: "{{ gpus.nodes | gpu.kubernetes.node_capacities(['aliyun.com/gpu-mem', 'aliyun.com/gpu-count']) }}"
"""

RETURN = r"""
_value:
  description: By node, its capacity of each resource.
  type: dict
  sample: {worker-1: [32, 2]}
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


def node_capacities(
    nodes: Iterable[Mapping[str, Any]], resources: Sequence[str], planned: Mapping[str, Sequence[int]] | None = None
) -> dict[str, list[int]]:
    """Return the capacities by node; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.extender import find_capacities

    try:
        return find_capacities(nodes, resources, planned)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(
            f"node_capacities cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"node_capacities": node_capacities}
