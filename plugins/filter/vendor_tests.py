# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter vendor_tests."""

from __future__ import annotations

DOCUMENTATION = r"""
name: vendor_tests
short_description: Return the smoke tests of a host's GPUs of AMD and Intel
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input, images, registry
options:
  _input:
    description: The result of M(gpu.kubernetes.gpu_devices_info), or an empty dictionary.
    type: dict
    required: true
  images:
    description: Images by vendor.
    type: dict
    required: true
  registry:
    description: Registry of the other images; empty for V(docker.io).
    type: str
    required: true
"""

RETURN = r"""
_value:
  description: A test for each vendor.
  type: list
  elements: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def vendor_tests(facts: Mapping[str, Any], images: Mapping[str, str], registry: str) -> list[dict[str, Any]]:
    """Return the tests; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._gpus.devices import build_tests

    try:
        return build_tests(facts, images, registry)
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(f"vendor_tests needs the result of gpu_devices_info ({error!r}).") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"vendor_tests": vendor_tests}
