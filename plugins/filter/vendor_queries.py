# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter vendor_queries."""

from __future__ import annotations

DOCUMENTATION = r"""
name: vendor_queries
short_description: Return what a host's node has to have of the device plugins of AMD and Intel
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input, namespace
options:
  _input:
    description: The result of M(gpu.kubernetes.gpu_devices_info), or an empty dictionary.
    type: dict
    required: true
  namespace:
    description: The namespace of the device plugins.
    type: str
    required: true
"""

RETURN = r"""
_value:
  description: For each device plugin, its resource and pods as C(plugin), and the expected units as C(expected).
  type: list
  elements: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def vendor_queries(facts: Mapping[str, Any], namespace: str) -> list[dict[str, Any]]:
    """Return the queries; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._gpus.devices import build_queries

    try:
        return build_queries(facts, namespace)
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(f"vendor_queries needs the result of gpu_devices_info ({error!r}).") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"vendor_queries": vendor_queries}
