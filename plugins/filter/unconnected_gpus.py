# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter unconnected_gpus."""

from __future__ import annotations

DOCUMENTATION = r"""
name: unconnected_gpus
short_description: Return the GPUs that the fabric manager has not connected yet
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input
options:
  _input:
    description: The facts C(nvml) of M(gpu.kubernetes.nvml_facts).
    type: dict
    required: true
"""

RETURN = r"""
_value:
  description: Their addresses on the PCI bus. GPUs without a fabric do not count.
  type: list
  elements: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def unconnected_gpus(facts: Mapping[str, Any]) -> list[str]:
    """Return the addresses; input of another form raises AnsibleFilterError."""
    try:
        gpus = [gpu for gpu in facts.get("gpus", []) if gpu.get("fabric")]
        return [gpu["pci_address"] for gpu in gpus if gpu["fabric"].get("state") not in ("completed", "not_supported")]
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"unconnected_gpus cannot read the facts ({error!r}); run nvml_facts first."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"unconnected_gpus": unconnected_gpus}
