# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter gpushare_allocation."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpushare_allocation
short_description: Compute from saved nodes and pods which pods hold which GPUs, or how much of them
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Computes what M(gpu.kubernetes.gpushare_info) computes, without a cluster, from what C(kubectl get -o json) has saved.
  - Save the pods of all namespaces. With those of one namespace, the allocation is too small, and no error shows it.
positional: _input, pods
options:
  _input:
    description:
      - Nodes and pods, as by C(kubectl get nodes,pods -A -o json), or the nodes alone.
      - JSON text, or read from it. A list as the API server sends it, or a list of objects or of such lists. Other kinds of objects are
        passed over.
    type: raw
    required: true
  pods:
    description: The pods, where they were saved apart.
    type: raw
    default: []
  node:
    description: The node; by default all nodes with GPUs.
    type: str
    default: ""
  unit:
    description: What one C(aliyun.com/gpu-mem) is. Left out, it is guessed as M(gpu.kubernetes.gpushare_info) does.
    type: str
    choices: [GiB, MiB]
seealso:
  - module: gpu.kubernetes.gpushare_info
  - plugin: gpu.kubernetes.gpushare_render
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show what a cluster was like
  ansible.builtin.debug:
    msg: "{{ (lookup('ansible.builtin.file', 'cluster.json') | gpu.kubernetes.gpushare_allocation).cluster }}"
"""

RETURN = r"""
_value:
  description:
    - The allocation, with C(nodes), C(cluster), C(unit), C(findings), C(resources) and C(totals) as M(gpu.kubernetes.gpushare_info) returns them.
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.allocation import Allocation


def gpushare_allocation(given: Any, pods: Any = (), node: str = "", unit: str | None = None) -> Allocation:
    """Return the allocation; what cannot be read is named."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.allocation import (
        UNITS,
        UnknownNode,
        allocate,
    )
    from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.extract import DumpError, read_dump

    if unit and unit not in UNITS:
        raise AnsibleFilterError(f"gpushare_allocation has no unit {unit}; choose one of {', '.join(UNITS)}.")
    try:
        return allocate(*read_dump(given, pods or ()), node=node or "", unit=unit or "")
    except (DumpError, UnknownNode) as error:
        raise AnsibleFilterError(f"gpushare_allocation: {error}") from error
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"gpushare_allocation cannot read what it was given ({error!r}); give it what kubectl get -o json writes."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpushare_allocation": gpushare_allocation}
