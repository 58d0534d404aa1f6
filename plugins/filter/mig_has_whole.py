# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter mig_has_whole."""

from __future__ import annotations

DOCUMENTATION = r"""
name: mig_has_whole
short_description: Tell whether a layout of MIG devices leaves whole GPUs
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input, layout
options:
  _input:
    description: The facts C(ansible_facts.nvml).
    type: dict
    required: true
  layout:
    description: The layout, as O(gpu.kubernetes.mig_layout#module:layout).
    type: list
    elements: dict
    required: true
"""

RETURN = r"""
_value:
  description: Whether a GPU is left without MIG. V(true) for a layout or facts that cannot be read.
  type: bool
  sample: true
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def mig_has_whole(facts: Mapping[str, Any], layout: Any) -> bool:
    """Return whether the layout leaves GPUs without MIG."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._mig.facts import has_whole

    return has_whole(facts, layout)


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"mig_has_whole": mig_has_whole}
