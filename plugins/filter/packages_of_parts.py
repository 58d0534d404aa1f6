# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter packages_of_parts."""

from __future__ import annotations

DOCUMENTATION = r"""
name: packages_of_parts
short_description: Return the packages of the parts of a driver
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - A part that the platform's provider does not have is left out.
positional: _input, packages
options:
  _input:
    description: The parts.
    type: list
    elements: str
    required: true
  packages:
    description: A package, or a list of packages, by part.
    type: dict
    required: true
"""

RETURN = r"""
_value:
  description: The names of the packages, each once.
  type: list
  elements: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def packages_of_parts(parts: Iterable[str], packages: Mapping[str, Any]) -> list[str]:
    """Return the names; input of another form raises AnsibleFilterError."""
    try:
        found = [packages[part] for part in parts if part in packages]
    except TypeError as error:
        raise AnsibleFilterError(
            f"packages_of_parts cannot read its input ({error!r}); see its documentation."
        ) from error
    return list(dict.fromkeys(name for names in found for name in ([names] if isinstance(names, str) else names)))


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"packages_of_parts": packages_of_parts}
