# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

DOCUMENTATION = r"""
name: expected_gpus
short_description: Compute how many devices a device plugin will report on a node
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Counts the working GPUs in C(ansible_facts.nvml) and multiplies them by the replicas of time slicing or MPS in the
    plugin's configuration file.
  - Under the MIG strategy C(single), each MIG device counts instead of its GPU; under C(mixed), it counts as the resource of its profile,
    such as C(nvidia.com/mig-1g.10gb).
  - Of the resource of another sharing strategy, returns the units of memory or a hundred for each GPU, as that strategy counts.
positional: _input, config, resource, unit
options:
  _input:
    description: The facts.
    type: dict
    required: true
  config:
    description: The plugin's configuration file, as a dictionary.
    type: dict
    default: {}
  resource:
    description: The resource that is counted.
    type: str
    default: nvidia.com/gpu
  unit:
    description: What one unit of shared memory is.
    type: str
    choices: [GiB, MiB]
    default: GiB
seealso:
  - plugin: gpu.kubernetes.gpu_labels
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the number of devices
  ansible.builtin.debug:
    msg: "{{ ansible_facts['nvml'] | gpu.kubernetes.expected_gpus(k8s_device_plugin_config) }}"
"""

RETURN = r"""
_value:
  description: The number of units of the resource.
  type: int
  sample: 8
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def expected_gpus_filter(
    facts: Mapping[str, Any],
    config: Mapping[str, Any] | None = None,
    resource: str = "",
    unit: str = "GiB",
) -> int:
    """Return the number of units of the resource for a node's NVML facts."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.gpu_labels import (
        GPU_RESOURCE,
        GpuFactsError,
        count_units,
    )

    if not isinstance(facts, dict):
        raise AnsibleFilterError(
            f"expected_gpus needs ansible_facts['nvml'], not {type(facts).__name__}; run nvml_facts."
        )
    try:
        return count_units(facts, resource or GPU_RESOURCE, config, unit)
    except GpuFactsError as error:
        raise AnsibleFilterError(f"The number of devices is unknown: {error}.") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise AnsibleFilterError(
            f"expected_gpus cannot read the facts or the plugin's configuration ({error}); both are dictionaries, the "
            "latter as in the plugin's own file."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"expected_gpus": expected_gpus_filter}
