# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter rollback_order."""

from __future__ import annotations

DOCUMENTATION = r"""
name: rollback_order
short_description: Return the control planes to roll back, in order
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - The role P(gpu.kubernetes.kube_scheduler_extender#role) rolls back with it.
positional: _input, leader, host
options:
  _input:
    description: The control planes that were changed and are not verified, each with its C(host) and the C(names) of its node.
    type: list
    elements: dict
    required: true
  leader:
    description: The name of the leader's node, or empty.
    type: str
    required: true
  host:
    description: The host that is rolled back last.
    type: str
    required: true
"""

RETURN = r"""
_value:
  description: The control planes.
  type: list
  elements: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def rollback_order(pending: Sequence[Mapping[str, Any]], leader: str, host: str) -> list[Mapping[str, Any]]:
    """Return the control planes; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.rollout import order_rollback

    try:
        return order_rollback(pending, leader, host)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(f"rollback_order cannot read its input ({error!r}); see its documentation.") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"rollback_order": rollback_order}
