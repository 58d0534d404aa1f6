# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter managed_cluster."""

from __future__ import annotations

DOCUMENTATION = r"""
name: managed_cluster
short_description: Return who owns which part of the GPUs in a managed cluster
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Finds by the kubelets' versions, labels and API groups whose a cluster is, and which DaemonSets advertise devices.
positional: _input, services, daemon_sets, resource
options:
  _input:
    description: The nodes of the cluster.
    type: list
    elements: dict
    required: true
  services:
    description: The APIServices of the API server.
    type: list
    elements: dict
    required: true
  daemon_sets:
    description: The DaemonSets of all namespaces.
    type: list
    elements: dict
    required: true
  resource:
    description: The resource of the GPUs.
    type: str
    default: nvidia.com/gpu
"""

EXAMPLES = r"""
- name: Show who owns the device plugin
  ansible.builtin.debug:
    msg: "{{ (nodes | gpu.kubernetes.managed_cluster(services, daemon_sets)).notes }}"
"""

RETURN = r"""
_value:
  description:
    - C(gpu_nodes), the names of the nodes that offer the resource; C(owners), each with C(name), C(nodes), C(driver) and C(plugin); C(plugins), the
      DaemonSets that advertise devices; and the sentences C(notes) and C(problems).
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def managed_cluster(
    nodes: Sequence[Mapping[str, Any]],
    services: Sequence[Mapping[str, Any]],
    daemon_sets: Sequence[Mapping[str, Any]],
    resource: str = "nvidia.com/gpu",
) -> dict[str, Any]:
    """Return the description; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions.managed import describe_cluster

    try:
        return describe_cluster(nodes, services, daemon_sets, resource)
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"managed_cluster cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"managed_cluster": managed_cluster}
