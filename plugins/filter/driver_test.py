# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter driver_test."""

from __future__ import annotations

DOCUMENTATION = r"""
name: driver_test
short_description: Return how a pod verifies the GPUs of a node after an upgrade of the driver
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input, resource, requested
options:
  _input:
    description: The node's allocatable GPU resources before the upgrade.
    type: dict
    required: true
  resource:
    description: The resource that the test requests, if the node has it.
    type: str
    required: true
  requested:
    description: Whether the test is requested.
    type: bool
    required: true
"""

RETURN = r"""
_value:
  description:
    - C(resources), those that a pod gets from the default scheduler, the resource of the test first.
    - C(unverified), why no pod verifies the GPUs; else empty.
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def driver_test(allocatable: Mapping[str, int], resource: str, requested: bool) -> dict[str, Any]:
    """Return the test; input of another form raises AnsibleFilterError."""
    try:
        names = sorted(name for name in allocatable if name.startswith(("nvidia.com/gpu", "nvidia.com/mig-")))
        resources = list(dict.fromkeys([*([resource] if resource in allocatable else []), *names]))
        listed = ", ".join(sorted(allocatable))
    except (AttributeError, TypeError) as error:
        raise AnsibleFilterError(f"driver_test cannot read its input ({error!r}); see its documentation.") from error
    unverified = ""
    if not requested:
        unverified = "nvidia_driver_upgrade_smoke_test is false"
    elif not allocatable:
        unverified = "the node reported no GPUs before"
    elif not resources:
        unverified = f"the node reports {listed}, which the test does not request"
    return {"resources": resources, "unverified": unverified}


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"driver_test": driver_test}
