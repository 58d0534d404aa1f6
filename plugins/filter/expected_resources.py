# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: expected_resources
short_description: Compute how many devices of each resource NVIDIA's device plugin will report on a node
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Counts as P(gpu.kubernetes.expected_gpus#filter) does, for every resource that the plugin registers with this configuration.
positional: _input, config
options:
  _input:
    description: The facts.
    type: dict
    required: true
  config:
    description: The plugin's configuration, as a dictionary.
    type: dict
    default: {}
seealso:
  - plugin: gpu.kubernetes.expected_gpus
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the devices of a node with its own configuration
  ansible.builtin.debug:
    msg: "{{ ansible_facts['nvml'] | gpu.kubernetes.expected_resources(k8s_device_plugin_configs[k8s_device_plugin_config_name]) }}"
"""

RETURN = r"""
_value:
  description: Units by resource. C(nvidia.com/gpu) is always among them, with 0 where all GPUs have another resource.
  type: dict
  sample: {nvidia.com/gpu: 32}
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def expected_resources_filter(facts: Mapping[str, Any], config: Mapping[str, Any] | None = None) -> dict[str, int]:
    """Return the units by resource for a node's NVML facts."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.gpu_labels import (
        GpuFactsError,
        count_resources,
    )

    if not isinstance(facts, dict):
        raise AnsibleFilterError(
            f"expected_resources needs ansible_facts['nvml'], not {type(facts).__name__}; run nvml_facts."
        )
    try:
        return count_resources(facts, config)
    except GpuFactsError as error:
        raise AnsibleFilterError(f"The number of devices is unknown: {error}.") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AnsibleFilterError(
            f"expected_resources cannot read the facts or the plugin's configuration ({error}); both are dictionaries."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"expected_resources": expected_resources_filter}
