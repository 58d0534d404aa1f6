# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter gpu_driver_packages."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_driver_packages
short_description: Return the packages of a GPU vendor's driver for a host
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input, host, release, devices
options:
  _input:
    description: The vendor, V(amd) or V(intel).
    type: str
    required: true
  host:
    description: The C(distribution), C(version), C(architecture) and C(kernel) of the host, as Ansible's facts have them.
    type: dict
    required: true
  release:
    description: The release of the driver in the repository; empty for the vendor's default.
    type: str
    default: ""
  devices:
    description: PCI device IDs of the host's GPUs, four hexadecimal digits each.
    type: list
    elements: str
    default: []
"""

RETURN = r"""
_value:
  description:
    - C(problem), a sentence why there are no packages; empty if there are, with C(packages) in the driver's version, C(dependencies) with versions of
      their own, C(repository) as for P(gpu.kubernetes.vendor_packages#role), and C(unsupported_modules), whether modprobe needs
      C(allow_unsupported_modules).
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def gpu_driver_packages(
    vendor: str, host: Mapping[str, str], release: str = "", devices: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the packages; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._gpus.driver_packages import plan_packages

    try:
        return plan_packages(vendor, host, release, devices)
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"gpu_driver_packages cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_driver_packages": gpu_driver_packages}
