# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter keys_where."""

from __future__ import annotations

DOCUMENTATION = r"""
name: keys_where
short_description: Return the keys of a dictionary whose values are true
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - A value is true as in a condition.
positional: _input, field, expected
options:
  _input:
    description: The dictionary.
    type: dict
    required: true
  field:
    description: The key of each value that counts, instead of the value.
    type: str
    default: ""
  expected:
    description: With V(false), the keys of the other values.
    type: bool
    default: true
"""

RETURN = r"""
_value:
  description: The keys, in their order.
  type: list
  elements: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def keys_where(values: Mapping[str, Any], field: str = "", expected: bool = True) -> list[str]:
    """Return the keys; input of another form raises AnsibleFilterError."""
    try:
        found = {key: value.get(field) if field else value for key, value in values.items()}
    except AttributeError as error:
        raise AnsibleFilterError(f"keys_where cannot read its input ({error!r}); see its documentation.") from error
    return [key for key, value in found.items() if bool(value) is expected]


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"keys_where": keys_where}
