# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter scheduler_pod_state."""

from __future__ import annotations

DOCUMENTATION = r"""
name: scheduler_pod_state
short_description: Return whether kube-scheduler's pod is from the present manifest, and works
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - The role P(gpu.kubernetes.kube_scheduler_extender#role) waits with it after a change.
positional: _input, record, manifest, checksum
options:
  _input:
    description: The mirror pod, or empty.
    type: dict
    required: true
  record:
    description: The result of P(gpu.kubernetes.scheduler_record#filter).
    type: dict
    required: true
  manifest:
    description: The path, and what M(ansible.builtin.stat) returns of the manifest as C(checksum) and C(mtime).
    type: dict
    required: true
  checksum:
    description: SHA-256 of the configuration that the pod has to have. Without it any will do.
    type: str
"""

RETURN = r"""
_value:
  description: Whether the pod is C(from_manifest), C(ready) and C(settled), and a list with the reasons why it is C(waiting).
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def scheduler_pod_state(
    pod: Mapping[str, Any], record: Mapping[str, Any], manifest: Mapping[str, Any], checksum: str | None = None
) -> dict[str, Any]:
    """Return the state; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.rollout import judge_pod

    try:
        return judge_pod(pod, record, manifest, checksum)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(
            f"scheduler_pod_state cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"scheduler_pod_state": scheduler_pod_state}
