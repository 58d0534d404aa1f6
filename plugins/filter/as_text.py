# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter as_text."""

from __future__ import annotations

DOCUMENTATION = r"""
name: as_text
short_description: Return the text of a variable that YAML may have read as a number
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - AWX passes the answers of surveys in a form that ansible-core 2.19 and newer read again as numbers, truth values and nothing.
positional: _input, name
options:
  _input:
    description: The value.
    type: raw
    required: true
  name:
    description: The variable, for the error.
    type: str
    required: true
  decimal:
    description: Whether a number with a point is accepted. Its last zeros are lost, so that V(12.10) becomes V(12.1).
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show the requested branch
  ansible.builtin.debug:
    msg: "{{ nvidia_driver_branch | gpu.kubernetes.as_text('nvidia_driver_branch') }}"
"""

RETURN = r"""
_value:
  description: The text; of nothing, an empty one.
  type: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable


def as_text(value: Any, name: str, decimal: bool = False) -> str:
    """Return the text; a value that has lost it raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._text import NotTextError, read_text

    try:
        return read_text(value, name, decimal)
    except NotTextError as error:
        raise AnsibleFilterError(f"{error}.") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"as_text": as_text}
