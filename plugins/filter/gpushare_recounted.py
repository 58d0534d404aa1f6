# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter gpushare_recounted."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpushare_recounted
short_description: Return the nodes whose allocated GPU memory a run would count wrong
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - The extender keeps the numbers of running pods. It would allocate the difference again if a node had another amount or unit.
positional: _input
options:
  _input:
    description: The rows C(nodes) of M(gpu.kubernetes.gpu_nodes_info) for the nodes of this run, with the amounts that are expected of them.
    type: list
    elements: dict
    required: true
  changed_unit:
    description: The rows of all nodes if the unit changes.
    type: list
    elements: dict
    default: []
  drained:
    description: Nodes that the run drains first. They do not count.
    type: list
    elements: str
    default: []
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


def gpushare_recounted(
    rows: Iterable[Mapping[str, Any]], changed_unit: Iterable[Mapping[str, Any]] = (), drained: Iterable[str] = ()
) -> list[str]:
    """Return the names; input of another form raises AnsibleFilterError."""
    try:
        resized = {
            row["name"]
            for row in rows
            if row["allocated"] and row["capacity"] and row["expected"] and row["capacity"] != row["expected"]
        }
        return sorted((resized | {row["name"] for row in changed_unit if row["allocated"]}) - set(drained))
    except (KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"gpushare_recounted cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpushare_recounted": gpushare_recounted}
