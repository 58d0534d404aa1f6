# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter kubespray_vars."""

from __future__ import annotations

DOCUMENTATION = r"""
name: kubespray_vars
short_description: Return the variables of kubespray that keep what this collection configures
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - kubespray writes the files of containerd, the kubelet and kube-scheduler as a whole with each run, so that its inventory has to say the same
    as the variables of this collection.
  - Returns C(containerd_additional_runtimes), C(containerd_default_runtime), C(enable_cdi) and C(containerd_extra_runtime_args), or
    C(containerd_extra_args) with C(containerd_nvidia_drop_in); C(node_labels); C(kube_scheduler_extenders); C(kube_reserved),
    C(system_reserved) with their values, and C(eviction_hard). What no variable of this collection requests is left out.
positional: _input
options:
  _input:
    description:
      - The variables of this collection for a host, such as C(hostvars[inventory_hostname]). Others among them do not count.
      - Their names are those of the roles P(gpu.kubernetes.containerd_nvidia#role), P(gpu.kubernetes.gpu_node_labels#role),
        P(gpu.kubernetes.kube_scheduler_extender#role) and P(gpu.kubernetes.kubelet_reserved#role).
    type: dict
    required: true
seealso:
  - plugin: gpu.kubernetes.kubespray_missing
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Write the variables for kubespray's inventory
  ansible.builtin.copy:
    content: "{{ hostvars[inventory_hostname] | gpu.kubernetes.kubespray_vars | ansible.builtin.to_nice_yaml }}"
    dest: inventory/group_vars/gpu_nodes/gpu-kubernetes.yml
    mode: "0644"
    backup: true
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
_value:
  description: The variables.
  type: dict
  sample:
    containerd_default_runtime: nvidia
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable


def kubespray_vars(managed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions.inventory import (
        InventoryError,
        build_variables,
    )

    if not isinstance(managed, Mapping):
        raise AnsibleFilterError(
            "kubespray_vars needs a dictionary of variables, such as hostvars[inventory_hostname]."
        )
    try:
        return build_variables(managed)
    except InventoryError as error:
        raise AnsibleFilterError(f"kubespray_vars: {error}.") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(f"kubespray_vars cannot read its input ({error!r}); see its documentation.") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"kubespray_vars": kubespray_vars}
