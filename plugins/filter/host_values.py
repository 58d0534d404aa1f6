# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter host_values."""

from __future__ import annotations

DOCUMENTATION = r"""
name: host_values
short_description: Return a variable of each host that has it
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - For facts that tasks of this run have set. Hosts without the variable are left out.
positional: _input, hostvars, name
options:
  _input:
    description: The names of the hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: The variable C(hostvars).
    type: dict
    required: true
  name:
    description: The name of the variable. A dot separates it from a key of its value.
    type: str
    required: true
"""

RETURN = r"""
_value:
  description: The values, in the order of the hosts.
  type: list
  elements: raw
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def host_values(hosts: Iterable[str], hostvars: Mapping[str, Any], name: str) -> list[Any]:
    """Return the values of the variable; input of another form raises AnsibleFilterError."""
    try:
        found = [(hostvars[host], name.split(".")) for host in hosts]
        for _level in name.split("."):
            found = [(value[keys[0]], keys[1:]) for value, keys in found if keys[0] in value]
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(f"host_values cannot read {name} ({error!r}); see its documentation.") from error
    return [value for value, _keys in found]


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"host_values": host_values}
