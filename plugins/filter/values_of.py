# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter values_of."""

from __future__ import annotations

DOCUMENTATION = r"""
name: values_of
short_description: Return the values of keys that a mapping has
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Keys that the mapping does not have are left out, and lists are joined.
  - The parts of a driver become packages by it, and programs that use the GPUs become their services.
positional: _input, values
options:
  _input:
    description: The keys.
    type: list
    elements: str
    required: true
  values:
    description: A text, or a list of texts, by key.
    type: dict
    required: true
"""

RETURN = r"""
_value:
  description: The texts, each once, in the order of the keys.
  type: list
  elements: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def values_of(keys: Iterable[str], values: Mapping[str, Any]) -> list[str]:
    """Return the texts; input of another form raises AnsibleFilterError."""
    try:
        found = [values[key] for key in keys if key in values]
    except TypeError as error:
        raise AnsibleFilterError(f"values_of cannot read its input ({error!r}); see its documentation.") from error
    return list(dict.fromkeys(text for value in found for text in ([value] if isinstance(value, str) else value)))


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"values_of": values_of}
