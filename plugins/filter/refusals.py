# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter refusals."""

from __future__ import annotations

DOCUMENTATION = r"""
name: refusals
short_description: Return what a role refuses before any change
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input
options:
  _input:
    description: Facts and parameters of each subject, by its name; the documentation page on codes lists the subjects.
    type: dict
    required: true
"""

RETURN = r"""
_value:
  description: A sentence with cause and remedy for each reason, in the order of the subjects; empty if nothing is refused.
  type: list
  elements: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def refusals(subjects: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the sentences; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._refusals import find_refusals

    try:
        return find_refusals(subjects)
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(f"refusals cannot read its input ({error!r}); see its documentation.") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"refusals": refusals}
