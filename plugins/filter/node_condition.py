# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter node_condition."""

from __future__ import annotations

DOCUMENTATION = r"""
name: node_condition
short_description: Return a condition of a node or of another object
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Returns an empty dictionary for an object without this condition.
positional: _input, condition
options:
  _input:
    description: The object, as the API server returns it. It may be empty.
    type: dict
    required: true
  condition:
    description: The type of the condition.
    type: str
    default: Ready
"""

RETURN = r"""
_value:
  description: The condition, with C(status), C(reason) and C(message). The message is one line without control characters.
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def node_condition(node: Mapping[str, Any], condition: str = "Ready") -> dict[str, Any]:
    """Return the condition, or an empty dictionary; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import shorten
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import get_condition

    try:
        found = get_condition(node, condition)
        return {**found, "message": shorten(found["message"])} if "message" in found else found
    except (AttributeError, TypeError) as error:
        raise AnsibleFilterError(f"node_condition cannot read its input ({error!r}); see its documentation.") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"node_condition": node_condition}
