# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter compatibility."""

from __future__ import annotations

DOCUMENTATION = r"""
name: compatibility
short_description: Judge whether a driver, CUDA, GPUs, a kernel, the container toolkit and Kubernetes go together
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Compares a host as it is, or as it shall be, with tables of what is known to work and what is not.
  - Findings with the level V(stop) are known not to work. Findings with the level V(warn) are not known to work, lack security fixes, are
    no longer supported or are newer than the tables. A combination without a finding is not guaranteed to work.
  - The role P(gpu.kubernetes.gpu_preflight#role) has the tables and an entry point C(compatibility), which checks a host.
positional: _input, tables
options:
  _input:
    description: The host. A value that is omitted, V(none) or empty is unknown or missing.
    type: dict
    required: true
    suboptions:
      driver:
        description: Version of the driver, or a branch such as V(580) or V(580.*), which stands for its newest version.
        type: str
      flavor:
        description: Its kernel modules.
        type: str
        choices: [open, proprietary]
      running:
        description:
          - Version of the driver that works on the host, with this kernel and these kernel modules. It is not checked with the kernel, and
            GPUs that it does not support have the level V(warn), as long as it supports others.
        type: str
      cuda:
        description: Version of the CUDA toolkit, such as V(12.8) or V(12.8.1).
        type: str
      kernel:
        description: Release of the kernel, as C(uname -r) prints it.
        type: str
      toolkit:
        description: Version of NVIDIA's container toolkit.
        type: str
      containerd:
        description: Version of containerd.
        type: str
      kubernetes:
        description: Version of the kubelet.
        type: str
      plugin:
        description: Version of NVIDIA's device plugin, as the tag of its image. A digest without a tag counts as unknown.
        type: str
      kubelet_cgroup_driver:
        description: The kubelet's cgroup driver. Omit it for a kubelet that reads it from the container runtime.
        type: str
        choices: [systemd, cgroupfs]
      runtime_cgroup_driver:
        description: The cgroup driver of the NVIDIA runtime.
        type: str
        choices: [systemd, cgroupfs]
      gpus:
        description:
          - The GPUs, as in C(ansible_facts.nvml.gpus), of which C(name), C(pci_device_id), C(architecture) and C(compute_capability)
            are read.
        type: list
        elements: dict
  tables:
    description: The tables by name, in the form of those of the role P(gpu.kubernetes.gpu_preflight#role).
    type: dict
    required: true
  today:
    description: The month for which the support of driver branches is judged, such as V(2026-05). Left out, it is the controller's.
    type: str
seealso:
  - module: gpu.kubernetes.nvml_facts
"""

EXAMPLES = r"""
- name: Refuse a driver that cannot work
  ansible.builtin.assert:
    that: __findings | length == 0
    fail_msg: "{{ __findings | map(attribute='message') | join(' ') }}"
  vars:
    __situation:
      driver: "590"
      gpus: "{{ ansible_facts['nvml']['gpus'] }}"
    __findings: >-
      {{ (__situation | gpu.kubernetes.compatibility(tables)).findings | selectattr('level', 'equalto', 'stop') }}
"""

RETURN = r"""
_value:
  description: What was found.
  type: dict
  contains:
    findings:
      description: What is wrong, what stops first.
      type: list
      elements: dict
      contains:
        level:
          description: V(stop) or V(warn).
          type: str
          sample: stop
        topic:
          description:
            - V(driver_gpu), V(kernel_modules), V(cuda_driver), V(cuda_gpu), V(driver_kernel), V(driver_security), V(driver_branch),
              V(toolkit_security), V(toolkit), V(containerd), V(device_plugin) or V(cgroup_driver).
          type: str
          sample: driver_gpu
        message:
          description: One sentence with cause and remedy.
          type: str
          sample: Driver 590.48.01 no longer supports Tesla P40; use branch 580, the last that does, or an older one.
        source:
          description: The source, as an address or as a repository and a path. V(none) if nothing is known.
          type: str
          sample: "NVIDIA/nvidia-installer: nvGpus.h"
    kernel_modules:
      description: The choice of NVIDIA's installer for the GPUs, V(open) or V(proprietary). V(none) if none of them is in a table.
      type: str
      sample: open
    open_kernel_modules:
      description:
        - Whether the GPUs go with the open kernel modules, V(required), V(possible) or V(impossible). By the rule of NVIDIA's installer
          for different GPUs in one host, one that needs them decides, then one that they do not support. V(none) if none is in a table.
      type: str
      sample: possible
    driver_branches:
      description: The C(first) and the C(last) driver branch that support all GPUs, each V(none) if no table has a bound.
      type: dict
      sample: {first: 450, last: null}
"""

import datetime
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def compatibility(situation: Mapping[str, Any], tables: Mapping[str, Any], today: str = "") -> dict[str, Any]:
    """Return the findings on a host, and the drivers for its GPUs."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility.check import check_compatibility
    from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility.versions import CompatibilityError

    if not isinstance(situation, dict) or not isinstance(tables, dict):
        raise AnsibleFilterError("compatibility needs the host and the tables as dictionaries; see its documentation.")
    try:
        return check_compatibility(situation, tables, today or f"{datetime.date.today():%Y-%m}")
    except CompatibilityError as error:
        raise AnsibleFilterError(f"The compatibility cannot be judged: {error}.") from error
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise AnsibleFilterError(
            f"compatibility cannot read the host or the tables ({error}); see its documentation for their form."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"compatibility": compatibility}
