# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter node_names."""

from __future__ import annotations

DOCUMENTATION = r"""
name: node_names
short_description: Return the names that the nodes of hosts may have
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - These are C(gpu_node_name) and the host's own name in lower case, for hosts that have them.
positional: _input, hostvars
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
"""

RETURN = r"""
_value:
  description: The names, each once.
  type: list
  elements: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def node_names(hosts: Iterable[str], hostvars: Mapping[str, Any]) -> list[str]:
    """Return the names; input of another form raises AnsibleFilterError."""
    try:
        known = [hostvars[host] for host in hosts]
        names = [each["gpu_node_name"] for each in known if "gpu_node_name" in each]
        names += [
            each["ansible_facts"]["nodename"].lower() for each in known if "nodename" in each.get("ansible_facts", {})
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(f"node_names cannot read its input ({error!r}); see its documentation.") from error
    return list(dict.fromkeys(name for name in names if name))


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"node_names": node_names}
