# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter scheduler_extenders."""

from __future__ import annotations

DOCUMENTATION = r"""
name: scheduler_extenders
short_description: Return the extenders that kube-scheduler has after a change of sharing strategies
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Keeps the extenders of others, and replaces those of the strategies that the plan names.
positional: _input, plan, settings
options:
  _input:
    description: Extenders that are declared for kube-scheduler, as C(kube_scheduler_extender_extenders).
    type: list
    elements: dict
    required: true
  plan:
    description: The plan of M(gpu.kubernetes.sharing_plan).
    type: dict
    required: true
  settings:
    description: By strategy, its scheduler extender settings.
    type: dict
    required: true
  address:
    description: Replaces an empty C(urlPrefix), for checks before the address is known.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Show the extenders
  ansible.builtin.debug:
    msg: "{{ [] | gpu.kubernetes.scheduler_extenders(gpu_sharing_plan, {'example': example_scheduler_extender}) }}"
"""

RETURN = r"""
_value:
  description: The extenders.
  type: list
  elements: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def scheduler_extenders(
    others: Iterable[Mapping[str, Any]],
    plan: Mapping[str, Any],
    settings: Mapping[str, Mapping[str, Any]],
    address: str = "",
) -> list[dict[str, Any]]:
    """Return the extenders; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.extender import merge_extenders

    try:
        extenders, leaves = plan["cluster"]["extenders"], plan["cluster"]["leaves"]
        planned = {name: dict(settings.get(name) or {}) for name in extenders}
        for each in planned.values():
            if each:
                each["urlPrefix"] = each["urlPrefix"] or address
        return merge_extenders(others, planned, [*extenders, *leaves])
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"scheduler_extenders cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"scheduler_extenders": scheduler_extenders}
