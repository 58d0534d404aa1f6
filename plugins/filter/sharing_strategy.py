# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter sharing_strategy."""

from __future__ import annotations

DOCUMENTATION = r"""
name: sharing_strategy
short_description: Return the row of a sharing strategy in the catalogue
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Returns what differs between sharing strategies, so that roles do not name them.
positional: _input
options:
  _input:
    description: The name of the strategy. Empty stands for whole GPUs by NVIDIA's device plugin.
    type: str
    required: true
seealso:
  - plugin: gpu.kubernetes.sharing_decisions
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the resources whose pods share a GPU
  ansible.builtin.debug:
    msg: "{{ ('gpushare' | gpu.kubernetes.sharing_strategy).shared | map(attribute='name') }}"
"""

RETURN = r"""
_value:
  description: The columns of the row that roles read.
  type: dict
  contains:
    name:
      description: The name of the strategy.
      type: str
    role:
      description: The role that deploys its device plugin.
      type: str
    shared:
      description: The O(ignore:shared_resources) for M(gpu.kubernetes.gpu_smoke_test); empty if one pod tests a GPU.
      type: list
      elements: dict
    tag_without_runtime_class:
      description: The tag of its published scheduler extender, if that binds no pods with a RuntimeClass; else empty.
      type: str
  sample:
    name: gpushare
    role: gpushare
    shared:
      - name: aliyun.com/gpu-mem
        gpu_count_resource: aliyun.com/gpu-count
        gpu_annotation: ALIYUN_COM_GPU_MEM_IDX
    tag_without_runtime_class: 1.11-d170d8a
"""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Callable


def sharing_strategy(name: str) -> dict[str, Any]:
    """Return the row of a strategy, its shared resources without empty fields; an unknown name raises AnsibleFilterError."""
    row = STRATEGIES.get(name) if name else next(iter(STRATEGIES.values()))
    if row is None:
        raise AnsibleFilterError(f"There is no sharing strategy {name!r}; use one of {', '.join(STRATEGIES)}.")
    shared = [{key: value for key, value in asdict(each).items() if value} for each in row.shared]
    return {
        "name": row.name,
        "role": row.role,
        "shared": shared,
        "tag_without_runtime_class": row.tag_without_runtime_class,
    }


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"sharing_strategy": sharing_strategy}
