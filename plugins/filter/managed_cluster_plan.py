# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter managed_cluster_plan."""

from __future__ import annotations

DOCUMENTATION = r"""
name: managed_cluster_plan
short_description: Return the labels of a managed cluster's nodes, and which of them need the device plugin
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Decides what can be done through the API server alone, by who owns which part of the GPUs.
positional: _input, services, daemon_sets, resource, selector, monitoring
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
  selector:
    description: Labels that all nodes with GPUs have and no others. Without them, labels of providers and the capacity show the GPUs.
    type: dict
    default: {}
  monitoring:
    description:
      - Plans the exporter, too, with C(mode), V(exporter) or V(operator); C(provider) and C(method), those of P(gpu.kubernetes.gpu_exporter#role); C(nodes),
        of M(gpu.kubernetes.gpu_exporters_info); and C(pods), exporters of others for the Prometheus Operator.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show which nodes need the device plugin
  ansible.builtin.debug:
    msg: "{{ (nodes | gpu.kubernetes.managed_cluster_plan(services, daemon_sets)).plugin_nodes }}"
"""

RETURN = r"""
_value:
  description:
    - C(labels), those of each node; C(plugin_nodes), the nodes that need the device plugin, with its C(selector) and C(tolerations); and the
      sentences C(notes) and C(refusals).
    - C(monitoring), empty without that option, with C(labels), those of each node; C(nodes), those that need the exporter, with its C(address),
      C(selector) and C(tolerations); and C(pods).
  type: dict
"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def managed_cluster_plan(
    nodes: Sequence[Mapping[str, Any]],
    services: Sequence[Mapping[str, Any]],
    daemon_sets: Sequence[Mapping[str, Any]],
    resource: str = "nvidia.com/gpu",
    selector: Mapping[str, str] | None = None,
    monitoring: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the plan; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions.managed import (
        find_gpu_nodes,
        list_api_groups,
        plan_preparation,
    )
    from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions.managed_monitoring import (
        plan_monitoring,
    )

    try:
        plan = asdict(plan_preparation((nodes, services, daemon_sets), resource, selector or {}))
        if not monitoring or plan["refusals"]:
            return {**plan, "monitoring": {}}
        with_gpus = find_gpu_nodes(nodes, list_api_groups(services), resource, selector or {})
        found = asdict(plan_monitoring(with_gpus, selector or {}, monitoring))
        added = {kind: plan[kind] + found.pop(kind) for kind in ("notes", "refusals")}
        return {**plan, **added, "monitoring": found}
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"managed_cluster_plan cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"managed_cluster_plan": managed_cluster_plan}
