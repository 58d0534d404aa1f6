# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter has_unknown_objects."""

from __future__ import annotations

DOCUMENTATION = r"""
name: has_unknown_objects
short_description: Return whether check mode would create objects to which others refer
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Objects that do not exist yet have no number, and what refers to them cannot be compared.
positional: _input
options:
  _input:
    description: Results of modules for AWX, as loops register them; empty ones of loops that have not run.
    type: list
    elements: dict
    required: true
"""

RETURN = r"""
_value:
  description: Whether a changed result has no C(id).
  type: bool
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def has_unknown_objects(loops: Iterable[Mapping[str, Any]]) -> bool:
    """Return the verdict; input of another form raises AnsibleFilterError."""
    try:
        results = [result for loop in loops for result in loop.get("results", [])]
        return any(result.get("changed") and "id" not in result for result in results)
    except (AttributeError, TypeError) as error:
        raise AnsibleFilterError(
            f"has_unknown_objects cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"has_unknown_objects": has_unknown_objects}
