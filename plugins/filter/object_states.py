# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter object_states."""

from __future__ import annotations

DOCUMENTATION = r"""
name: object_states
short_description: Sort desired objects by whether they exist and are managed
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - An existing object is managed if its label C(app.kubernetes.io/managed-by) is the desired one.
positional: _input, found, known, compare
options:
  _input:
    description: The desired objects.
    type: list
    elements: dict
    required: true
  found:
    description: The value C(found) of M(gpu.kubernetes.objects_info) for these objects.
    type: list
    elements: list
    required: true
  known:
    description: The value C(known) of the same module. Left out, the API server has all kinds.
    type: list
    elements: bool
  compare:
    description: Whether to compare the objects too, which renders all of their templates.
    type: bool
    default: false
"""

RETURN = r"""
_value:
  description:
    - C(missing), C(managed), C(unmanaged), and C(unsupported), whose kind the API server does not have; each a list of desired objects in
      their order.
    - With O(compare) also C(due), those of all but C(unsupported) that are not as desired yet.
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


def object_states(
    desired: Sequence[dict[str, Any]],
    found: Iterable[Sequence[dict[str, Any]]],
    known: Iterable[bool] | None = None,
    compare: bool = False,
) -> dict[str, list[dict[str, Any]]]:
    """Return the objects by state; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import (
        MANAGER_LABEL,
        is_applied,
    )

    names = ("missing", "managed", "unmanaged", "unsupported", *(["due"] if compare else []))
    states: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
    try:
        kinds = [True] * len(desired) if known is None else known
        for item, existing, supported in zip(desired, found, kinds, strict=True):
            if not supported:
                states["unsupported"].append(item)
                continue
            labels = (existing[0]["metadata"].get("labels") or {}) if existing else {}
            manager = (item["metadata"].get("labels") or {}).get(MANAGER_LABEL)
            managed = manager is not None and labels.get(MANAGER_LABEL) == manager
            states["managed" if managed else "unmanaged" if existing else "missing"].append(item)
            if compare and not (managed and is_applied(item, existing[0])):
                states["due"].append(item)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(f"object_states cannot read its input ({error!r}); see its documentation.") from error
    return states


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"object_states": object_states}
