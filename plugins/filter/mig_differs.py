# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter mig_differs."""

from __future__ import annotations

DOCUMENTATION = r"""
name: mig_differs
short_description: Tell whether GPUs have other MIG devices than a layout
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
  description: Whether they differ. V(false) for a layout or facts that cannot be read, which M(gpu.kubernetes.mig_layout) refuses.
  type: bool
  sample: false
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def mig_differs(facts: Mapping[str, Any], layout: Any) -> bool:
    """Return whether the GPUs have other MIG devices than the layout."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._mig.facts import differs

    return differs(facts, layout)


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"mig_differs": mig_differs}
