# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter allocated_nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
name: allocated_nodes
short_description: Return the nodes on which pods hold GPU resources
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input, without
options:
  _input:
    description: Results of M(gpu.kubernetes.gpu_nodes_info), as a loop registers them.
    type: list
    elements: dict
    required: true
  without:
    description: The names of nodes that do not count.
    type: list
    elements: str
    default: []
"""

RETURN = r"""
_value:
  description: The names of the nodes, each once and sorted.
  type: list
  elements: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping


def allocated_nodes(results: Iterable[Mapping[str, Any]], without: Collection[str] = ()) -> list[str]:
    """Return the names; input of another form raises AnsibleFilterError."""
    try:
        found = {node["name"] for result in results for node in result["nodes"] if node["allocated"]}
        return sorted(found.difference(without))
    except (KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"allocated_nodes cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"allocated_nodes": allocated_nodes}
