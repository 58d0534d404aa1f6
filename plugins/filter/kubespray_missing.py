# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter kubespray_missing."""

from __future__ import annotations

DOCUMENTATION = r"""
name: kubespray_missing
short_description: Return what is missing in the variables of kubespray
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Compares what P(gpu.kubernetes.kubespray_vars#filter) returns with the variables of kubespray's inventory. Further entries of lists, further
    keys and further lines in the inventory do not count.
positional: _input, inventory
options:
  _input:
    description: What P(gpu.kubernetes.kubespray_vars#filter) returns.
    type: dict
    required: true
  inventory:
    description: The variables of kubespray for the same host.
    type: dict
    required: true
seealso:
  - plugin: gpu.kubernetes.kubespray_vars
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Require that the next run of kubespray keeps what this collection configures
  ansible.builtin.assert:
    that: missing | length == 0
    fail_msg: "{{ missing | join(' ') }}"
  vars:
    missing: >-
      {{ hostvars[inventory_hostname] | gpu.kubernetes.kubespray_vars
         | gpu.kubernetes.kubespray_missing(lookup('ansible.builtin.file', 'group_vars/gpu_nodes.yml') | from_yaml) }}
"""

RETURN = r"""
_value:
  description: A sentence for each variable that is missing or different; empty if none is.
  type: list
  elements: str
  sample: [containerd_default_runtime is not set, and has to be nvidia.]
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable


def kubespray_missing(needed: Mapping[str, Any], inventory: Mapping[str, Any]) -> list[str]:
    """Return the sentences; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions.inventory import find_missing

    if not isinstance(needed, Mapping) or not isinstance(inventory, Mapping):
        raise AnsibleFilterError("kubespray_missing needs two dictionaries of variables; see its documentation.")
    try:
        return find_missing(needed, inventory)
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"kubespray_missing cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"kubespray_missing": kubespray_missing}
