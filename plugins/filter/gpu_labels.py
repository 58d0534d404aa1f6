# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_labels
short_description: Build a node's GPU labels from its facts
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Turns C(ansible_facts.nvml), as the module M(gpu.kubernetes.nvml_facts) returns it, into labels for the node.
  - The labels are those of NVIDIA's GPU feature discovery, and C(accelerator), a short name for node selectors.
  - A node without GPUs gets no labels. Where GPUs differ, product and memory are those of the smallest.
positional: _input
options:
  _input:
    description: The facts.
    type: dict
    required: true
  accelerator:
    description: The value of the label C(accelerator); empty for the product's name in lower case.
    type: str
    default: ""
  extra:
    description: More labels for nodes with GPUs. Whole numbers and booleans become text.
    type: dict
    default: {}
  vendors:
    description: The vendors of the node's GPUs, of which AMD and Intel add the label that their device plugin selects.
    type: list
    elements: str
    default: []
seealso:
  - plugin: gpu.kubernetes.expected_gpus
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the labels of a node
  ansible.builtin.debug:
    msg: "{{ (ansible_facts['nvml'] | gpu.kubernetes.gpu_labels).labels }}"
"""

RETURN = r"""
_value:
  description: The labels, and warnings about what they cannot tell.
  type: dict
  contains:
    labels:
      description: Names and values of the labels. C(nvidia.com/gpu.memory) is MiB of one GPU.
      type: dict
    warnings:
      description: Sentences for people.
      type: list
      elements: str
  sample:
    labels:
      nvidia.com/gpu.present: "true"
      nvidia.com/gpu.count: "1"
      nvidia.com/gpu.product: Tesla-T4
      nvidia.com/gpu.memory: "15360"
      accelerator: tesla-t4
    warnings: []
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.gpu_labels import (
    build_gpu_labels,
    build_present_labels,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.record import LabelError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def gpu_labels_filter(
    facts: Mapping[str, Any],
    accelerator: str = "",
    extra: Mapping[str, Any] | None = None,
    vendors: Sequence[str] = (),
) -> dict[str, Any]:
    """Return ``{"labels": ..., "warnings": ...}`` for a node's NVML facts."""
    if not isinstance(facts, dict):
        raise AnsibleFilterError(f"gpu_labels needs ansible_facts['nvml'], not {type(facts).__name__}; run nvml_facts.")
    try:
        labels, warnings = build_gpu_labels(facts, accelerator, extra)
    except LabelError as error:
        raise AnsibleFilterError(str(error)) from error
    except (TypeError, ValueError, AttributeError) as error:
        raise AnsibleFilterError(f"The input is not facts of nvml_facts ({error}); gather them again.") from error
    return {"labels": {**labels, **build_present_labels(vendors)}, "warnings": warnings}


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_labels": gpu_labels_filter}
