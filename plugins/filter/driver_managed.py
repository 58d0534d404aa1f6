# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter driver_managed."""

from __future__ import annotations

DOCUMENTATION = r"""
name: driver_managed
short_description: Return whether this collection manages the driver of a host
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - A working driver is not replaced if no method is set and this collection did not install it. No driver is installed beside that of the GPU Operator.
positional: _input
options:
  _input:
    description:
      - C(method), empty if none is set, and C(operated), the parts of the GPU Operator.
      - Whether a driver is C(recorded) as that of this collection, C(works), and is to have a licence (C(licensed)).
    type: dict
    required: true
"""

RETURN = r"""
_value:
  description: The decision.
  type: bool
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def driver_managed(facts: Mapping[str, Any]) -> bool:
    """Return the decision; input of another form raises AnsibleFilterError."""
    try:
        if facts["method"] == "none" or "driver" in facts["operated"]:
            return False
        return bool(facts["method"] or facts["licensed"] or facts["recorded"] or not facts["works"])
    except (KeyError, TypeError) as error:
        raise AnsibleFilterError(f"driver_managed cannot read its input ({error!r}); see its documentation.") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"driver_managed": driver_managed}
