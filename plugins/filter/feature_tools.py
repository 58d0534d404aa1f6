# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter feature_tools."""

from __future__ import annotations

DOCUMENTATION = r"""
name: feature_tools
short_description: Decide on the tools that label nodes with features
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input, components
options:
  _input:
    description: Lists of DaemonSets, of nodes with GPUs of AMD, and of the ConfigMap of the device plugin, as M(gpu.kubernetes.objects_info) finds them.
    type: list
    elements: list
    required: true
  components:
    description: The tools to deploy, of V(nfd), V(gfd) and V(amd_labeller).
    type: list
    elements: str
    required: true
  release:
    description: Name of the release of NFD's chart.
    type: str
    required: true
  namespace:
    description: Namespace of the tools.
    type: str
    required: true
  devices:
    description: The fact C(gpu_devices) by node.
    type: dict
    default: {}
"""

RETURN = r"""
_value:
  description:
    - C(conflicts), why a tool is not deployed, as sentences, C(stale), the nodes on which AMD's labeller has to restart, and C(leftovers), by node the
      labels that it has left, each with V(null).
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def feature_tools(
    found: Sequence[Sequence[Any]],
    components: Sequence[str],
    release: str,
    namespace: str,
    devices: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the decisions; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.tools import (
        find_conflicts,
        find_stale_nodes,
        find_tools,
        list_leftovers,
    )

    try:
        daemon_sets, nodes, config_maps = found
        keys = [key for each in config_maps for key in each.get("data") or {}]
        return {
            "conflicts": list(find_conflicts(components, find_tools(daemon_sets, release, namespace), keys)),
            "stale": find_stale_nodes(nodes, devices or {}),
            "leftovers": list_leftovers(nodes),
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(f"feature_tools cannot read its input ({error!r}).") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"feature_tools": feature_tools}
