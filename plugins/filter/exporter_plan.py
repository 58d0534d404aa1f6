# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter exporter_plan."""

from __future__ import annotations

DOCUMENTATION = r"""
name: exporter_plan
short_description: Plan the exporter of GPU metrics of a host
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Decides whether the role P(gpu.kubernetes.gpu_exporter#role) deploys an exporter on a host, uses one of others, or refuses.
positional: _input, host, cluster
options:
  _input:
    description: The variables of the role.
    type: dict
    required: true
  host:
    description: The observed host, with the listening sockets of M(gpu.kubernetes.listening_sockets_info).
    type: dict
    required: true
  cluster:
    description: The host's node in the result of M(gpu.kubernetes.gpu_exporters_info); empty without a cluster.
    type: dict
    required: true
"""

RETURN = r"""
_value:
  description: The plan, with its C(problems), a C(notice), what happens C(on_host) and C(in_cluster), and the C(target) for Prometheus.
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def exporter_plan(params: Mapping[str, Any], host: Mapping[str, Any], cluster: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._exporters.plan import plan_exporter

    try:
        return plan_exporter(params, host, cluster)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(f"exporter_plan cannot read its input ({error!r}); see its documentation.") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"exporter_plan": exporter_plan}
