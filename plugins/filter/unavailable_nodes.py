# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter unavailable_nodes."""

from __future__ import annotations

DOCUMENTATION = r"""
name: unavailable_nodes
short_description: Return the nodes that are not Ready or not schedulable
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input
options:
  _input:
    description: The C(nodes) of M(gpu.kubernetes.gpu_nodes_info).
    type: list
    elements: dict
    required: true
"""

RETURN = r"""
_value:
  description: The names of the nodes, sorted.
  type: list
  elements: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def unavailable_nodes(nodes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names; input of another form raises AnsibleFilterError."""
    try:
        return sorted({node["name"] for node in nodes if not (node["ready"] and node["schedulable"])})
    except (KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"unavailable_nodes cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"unavailable_nodes": unavailable_nodes}
