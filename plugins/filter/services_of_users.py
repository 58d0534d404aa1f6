# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter services_of_users."""

from __future__ import annotations

DOCUMENTATION = r"""
name: services_of_users
short_description: Return the services among the programs that use a driver
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input, services
options:
  _input:
    description: The C(users) of M(gpu.kubernetes.nvidia_kernel_modules).
    type: list
    elements: dict
    required: true
  services:
    description: The names of services by the names of their processes.
    type: dict
    required: true
"""

RETURN = r"""
_value:
  description: The names of the services, each once.
  type: list
  elements: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def services_of_users(users: Iterable[Mapping[str, Any]], services: Mapping[str, str]) -> list[str]:
    """Return the names; input of another form raises AnsibleFilterError."""
    try:
        found = [services[user["command"]] for user in users if user["command"] in services]
    except (KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"services_of_users cannot read its input ({error!r}); see its documentation."
        ) from error
    return list(dict.fromkeys(found))


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"services_of_users": services_of_users}
