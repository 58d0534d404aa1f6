# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter kubeadm_scheduler."""

from __future__ import annotations

DOCUMENTATION = r"""
name: kubeadm_scheduler
short_description: Have kubeadm give kube-scheduler a configuration
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Adds the argument C(config) of kube-scheduler and the volume with that file to kubeadm's ClusterConfiguration, from which C(kubeadm upgrade)
    writes the manifest.
  - Or removes both, where the volume has the name that this collection gives it.
  - All else stays to the letter, and a text that is as desired is returned unchanged.
  - Fails where another configuration is set already.
positional: _input
options:
  _input:
    description: The ClusterConfiguration, C(kubeadm.k8s.io/v1beta1) to C(v1beta4), as the ConfigMap C(kubeadm-config) has it.
    type: str
    required: true
  config_path:
    description: Path of the KubeSchedulerConfiguration on the control planes, for O(state=present).
    type: str
    default: ""
  state:
    description: Whether it should have them.
    type: str
    choices: [present, absent]
    default: present
requirements:
  - ruamel.yaml
seealso:
  - plugin: gpu.kubernetes.kube_scheduler_extender
    plugin_type: role
    description: Uses it.
"""

EXAMPLES = r"""
- name: Show the ClusterConfiguration with the file
  ansible.builtin.debug:
    msg: "{{ kubeadm_config.data.ClusterConfiguration | gpu.kubernetes.kubeadm_scheduler(config_path='/etc/kubernetes/scheduler-config.yaml') }}"
"""

RETURN = r"""
_value:
  description: The ClusterConfiguration.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError


def kubeadm_scheduler(text: str, config_path: str = "", state: str = "present") -> str:
    """Return the ClusterConfiguration with the configuration of kube-scheduler, or without."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._config.controller import to_plain
    from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
    from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.manifest import with_config, without_config
    from ansible_collections.gpu.kubernetes.plugins.plugin_utils import _yaml

    if _yaml.MISSING_LIBRARY is not None:
        raise AnsibleFilterError(
            f"kubeadm_scheduler needs ruamel.yaml where Ansible runs ({_yaml.MISSING_LIBRARY}): install it there."
        )
    if state not in ("present", "absent"):
        raise AnsibleFilterError(f"kubeadm_scheduler: state must be present or absent, not {state!r}.")
    if state == "present" and not config_path:
        raise AnsibleFilterError("kubeadm_scheduler: state present needs config_path.")
    try:
        if state == "absent":
            return without_config(str(text), _yaml.RoundTrip())
        return with_config(str(text), to_plain(config_path, "config_path"), _yaml.RoundTrip())
    except ConfigError as error:
        raise AnsibleFilterError(f"kubeadm_scheduler: {error}") from error


class FilterModule:
    """Filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by their names."""
        return {"kubeadm_scheduler": kubeadm_scheduler}
