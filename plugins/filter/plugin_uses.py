# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter plugin_uses."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plugin_uses
short_description: Return what configurations of NVIDIA's device plugin require of its pod
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input
options:
  _input:
    description: The configurations, as dictionaries.
    type: list
    elements: dict
    required: true
"""

RETURN = r"""
_value:
  description: V(mig) if one of them offers MIG devices, V(mps) if one shares GPUs by MPS.
  type: list
  elements: str
  sample: [mps]
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def plugin_uses(configs: Iterable[Any]) -> list[str]:
    """Return the uses; anything else than a list raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import list_uses

    try:
        return list_uses(configs)
    except TypeError as error:
        raise AnsibleFilterError(f"plugin_uses needs a list of configurations ({error!r}).") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"plugin_uses": plugin_uses}
