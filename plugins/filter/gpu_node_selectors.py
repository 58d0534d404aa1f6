# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_node_selectors
short_description: Return an example of a nodeSelector for each GPU product of a cluster
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Reads the labels of nodes that name the product of their GPUs, whether this collection, GPU feature discovery, node feature discovery or AMD's labeller
    has set them.
positional: _input
options:
  _input:
    description: The nodes, as M(kubernetes.core.k8s_info) returns them.
    type: list
    elements: dict
    required: true
seealso:
  - plugin: gpu.kubernetes.gpu_labels
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Read the nodes
  kubernetes.core.k8s_info:
    kind: Node
  register: nodes
  delegate_to: localhost

- name: Show how pods select a product
  ansible.builtin.debug:
    msg: "{{ nodes.resources | gpu.kubernetes.gpu_node_selectors }}"
"""

RETURN = r"""
_value:
  description: A row for each product, by vendor and product.
  type: list
  elements: dict
  contains:
    vendor:
      description: V(nvidia), V(amd) or V(intel).
      type: str
    product:
      description: The product, as the label names it.
      type: str
    nodes:
      description: Names of the nodes with this product.
      type: list
      elements: str
    node_selector:
      description: The nodeSelector of a pod for these nodes.
      type: dict
  sample:
    - vendor: nvidia
      product: Tesla-T4
      nodes: [worker-1]
      node_selector: {nvidia.com/gpu.product: Tesla-T4}
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def gpu_node_selectors(nodes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows; anything else than a list of nodes raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.selectors import list_selectors

    try:
        return list_selectors(nodes)
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(f"gpu_node_selectors needs a list of nodes ({error!r}).") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_node_selectors": gpu_node_selectors}
