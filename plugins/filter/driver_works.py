# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter driver_works."""

from __future__ import annotations

DOCUMENTATION = r"""
name: driver_works
short_description: Return whether the driver works with at least one GPU
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - If only some GPUs are lost, the others still work, and the report shows the loss.
positional: _input
options:
  _input:
    description: The facts C(nvml) of M(gpu.kubernetes.nvml_facts).
    type: dict
    required: true
"""

RETURN = r"""
_value:
  description: False if the driver reports an error that is not about some of the GPUs only.
  type: bool
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def driver_works(facts: Mapping[str, Any]) -> bool:
    """Return the verdict; input of another form raises AnsibleFilterError."""
    try:
        lost = [bool(gpu["lost"]) for gpu in facts["gpus"]]
        return facts["error"] is None or (any(lost) and not all(lost))
    except (KeyError, TypeError) as error:
        raise AnsibleFilterError(f"driver_works cannot read the facts ({error!r}); run nvml_facts first.") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"driver_works": driver_works}
