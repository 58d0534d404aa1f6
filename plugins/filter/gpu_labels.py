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
  - The labels are those of NVIDIA's GPU feature discovery with its values, the facts of AMD's and Intel's GPUs below the prefix C(gpu-kubernetes/), and
    C(accelerator), a short name for node selectors.
  - A node without GPUs gets no labels. Where GPUs differ, product and memory are those of the smallest, and each product has a label with its number.
positional: _input
options:
  _input:
    description: The facts.
    type: dict
    required: true
  accelerator_label:
    description: The name of the label C(accelerator). Empty for none.
    type: str
    default: accelerator
  sharing:
    description:
      - How NVIDIA's GPUs are shared. C(strategy) is the sharing strategy, or empty, C(planned) the node's own configuration of NVIDIA's device plugin by the
        plan, or empty, C(config) the configuration of all nodes, and C(replicas), C(rename) and C(mig_strategy) what the host declares.
      - Labels of a strategy with a device plugin of its own do not name replicas and sharing.
    type: dict
    default: {}
  devices:
    description: The GPUs of AMD and Intel, as M(gpu.kubernetes.gpu_devices_info) returns them.
    type: dict
    default: {}
  vendor_prefix:
    description: Whether GPUs of AMD and Intel also have labels below the prefix of their vendor.
    type: bool
    default: false
  accelerator:
    description: The value of the label C(accelerator); empty for the product's name in lower case.
    type: str
    default: ""
  extra:
    description: More labels for nodes with GPUs. Whole numbers and booleans become text.
    type: dict
    default: {}
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
    features:
      description: The same labels as a file for node feature discovery, all below the prefix C(gpu-kubernetes/). Labels of Kubernetes are left out.
      type: str
  sample:
    labels:
      nvidia.com/gpu.present: "true"
      nvidia.com/gpu.count: "1"
      nvidia.com/gpu.product: Tesla-T4
      nvidia.com/gpu.memory: "15360"
      nvidia.com/gpu.family: turing
      nvidia.com/gpu.compute.major: "7"
      nvidia.com/gpu.compute.minor: "5"
      nvidia.com/gpu.mode: compute
      nvidia.com/gpu.replicas: "1"
      nvidia.com/gpu.sharing-strategy: none
      nvidia.com/mig.capable: "false"
      nvidia.com/cuda.driver-version.full: 570.124.06
      nvidia.com/cuda.driver-version.major: "570"
      nvidia.com/cuda.driver-version.minor: "124"
      nvidia.com/cuda.driver-version.revision: "06"
      nvidia.com/cuda.runtime-version.full: "12.8"
      nvidia.com/cuda.runtime-version.major: "12"
      nvidia.com/cuda.runtime-version.minor: "8"
      accelerator: tesla-t4
    warnings: []
    features: |
      # Managed by gpu.kubernetes; changes are overwritten.
      gpu-kubernetes/accelerator=tesla-t4
      gpu-kubernetes/nvidia.count=1
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def gpu_labels_filter(
    facts: Mapping[str, Any],
    accelerator: str = "",
    extra: Mapping[str, Any] | None = None,
    accelerator_label: str = "accelerator",
    sharing: Mapping[str, Any] | None = None,
    devices: Mapping[str, Any] | None = None,
    vendor_prefix: bool = False,
) -> dict[str, Any]:
    """Return ``{"labels": ..., "warnings": ..., "features": ...}`` for the facts of a node's GPUs."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.gpu_labels import (
        LabelOptions,
        build_gpu_labels,
    )
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.features import render_features
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.labels.record import LabelError

    if not isinstance(facts, dict):
        raise AnsibleFilterError(f"gpu_labels needs ansible_facts['nvml'], not {type(facts).__name__}; run nvml_facts.")
    try:
        options = LabelOptions(_choose_config(sharing or {}), accelerator_label, devices or {}, vendor_prefix)
        labels, warnings = build_gpu_labels(facts, accelerator, extra, options)
    except LabelError as error:
        raise AnsibleFilterError(str(error)) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AnsibleFilterError(f"The input is not facts of nvml_facts ({error}); gather them again.") from error
    return {"labels": labels, "warnings": warnings, "features": render_features(labels)}


def _choose_config(sharing: Mapping[str, Any]) -> Mapping[str, Any] | None:
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.gpu_labels import choose_config
    from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import Request

    request = Request(
        int(sharing.get("replicas") or 0), bool(sharing.get("rename")), str(sharing.get("mig_strategy") or "")
    )
    return choose_config(
        str(sharing.get("strategy") or ""), sharing.get("planned") or {}, sharing.get("config") or {}, request
    )


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_labels": gpu_labels_filter}
