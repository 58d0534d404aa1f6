# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter object_references."""

from __future__ import annotations

DOCUMENTATION = r"""
name: object_references
short_description: Return references to objects by their names
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - With a kind, the references are queries for M(gpu.kubernetes.objects_info); without one, they are local references as in C(imagePullSecrets).
positional: _input, kind, api_version
options:
  _input:
    description: The names.
    type: list
    elements: str
    required: true
  kind:
    description: The kind of the objects.
    type: str
    default: ""
  api_version:
    description: The API version of the objects.
    type: str
    default: v1
"""

RETURN = r"""
_value:
  description: A reference for each name.
  type: list
  elements: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def object_references(names: Iterable[str], kind: str = "", api_version: str = "v1") -> list[dict[str, Any]]:
    """Return the references; anything else than a list of names raises AnsibleFilterError."""
    if isinstance(names, (str, dict)):
        raise AnsibleFilterError("object_references needs a list of names.")
    if not kind:
        return [{"name": name} for name in names]
    return [{"apiVersion": api_version, "kind": kind, "metadata": {"name": name}} for name in names]


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"object_references": object_references}
