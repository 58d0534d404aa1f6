# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter matching_versions."""

from __future__ import annotations

DOCUMENTATION = r"""
name: matching_versions
short_description: Return the versions that match a requested version or branch
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - A requested version matches itself, its revisions and its package versions; a branch ends with C(.*). An empty request matches every version.
positional: _input, requested
options:
  _input:
    description: The versions.
    type: list
    elements: str
    required: true
  requested:
    description: The requested version, such as V(570.124.06), V(570.124.06-1ubuntu1) or V(570.*).
    type: str
    required: true
"""

RETURN = r"""
_value:
  description: The versions that match, in their order.
  type: list
  elements: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def matching_versions(versions: Iterable[str | None], requested: str) -> list[str]:
    """Return the versions that match; a text instead of a list raises AnsibleFilterError. A version may be missing."""
    if isinstance(versions, (str, dict)):
        raise AnsibleFilterError("matching_versions needs a list of versions.")
    base = str(requested).removesuffix(".*")
    return [version for version in (str(each or "") for each in versions) if not base or _matches(version, base)]


def _matches(version: str, base: str) -> bool:
    return version == base or version.startswith((f"{base}.", f"{base}-")) or base.startswith(f"{version}-")


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"matching_versions": matching_versions}
