# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter prometheus_target."""

from __future__ import annotations

DOCUMENTATION = r"""
name: prometheus_target
short_description: Build the target of a host's exporter for Prometheus
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input, host, node, expected, labels
options:
  _input:
    description: The variable C(gpu_exporter_target) of the host, with C(address), C(exporter) and C(scheme).
    type: dict
    required: true
  host:
    description: The name of the host, for error messages.
    type: str
    required: true
  node:
    description: The name of the node, which is the label C(node).
    type: str
    required: true
  expected:
    description: The number of the host's GPUs, which is the label C(gpu_expected). Empty if it is not known.
    type: str
    default: ""
  labels:
    description: More labels.
    type: dict
    default: {}
"""

RETURN = r"""
_value:
  description: C(address), C(scheme) and C(labels).
  type: dict
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError


def prometheus_target(
    target: Mapping[str, Any], host: str, node: str, expected: str = "", labels: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the target; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
    from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.scrape import build_target

    try:
        count = int(expected) if str(expected) else None
        return build_target(str(host), target, str(node), count, labels or {})
    except (AttributeError, TypeError, ValueError) as error:
        raise AnsibleFilterError(f"Host {host}: gpu_exporter_target cannot be read ({error}).") from error
    except ConfigError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"prometheus_target": prometheus_target}
