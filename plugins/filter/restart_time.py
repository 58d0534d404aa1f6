# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter restart_time."""

from __future__ import annotations

DOCUMENTATION = r"""
name: restart_time
short_description: Return when the pods of a sharing strategy were restarted, or are to be
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Returns the value of the annotation C(gpu-kubernetes/restarted) of pod templates. A new value restarts the pods.
positional: _input, days, now
options:
  _input:
    description: What M(gpu.kubernetes.objects_info) found. A list with the DaemonSet, then lists of pods.
    type: list
    elements: list
    required: true
  days:
    description: Age in days at which pods are restarted; V(0) for never.
    type: int
    required: true
  now:
    description: The time of the run in UTC, as V(2026-01-31T00:00:00Z).
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show whether pods are to be restarted
  ansible.builtin.debug:
    msg: "{{ pods.found | gpu.kubernetes.restart_time(180, '2026-01-31T00:00:00Z') }}"
"""

RETURN = r"""
_value:
  description: The time of the last restart, O(now) if the pods are to be restarted, or empty.
  type: str
  sample: "2026-01-31T00:00:00Z"
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def restart_time(found: Sequence[Sequence[Mapping[str, Any]]], days: int, now: str) -> str:
    """Return the value of the annotation; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.extender import find_restart

    try:
        return find_restart(found, int(days), now)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(f"restart_time cannot read its input ({error!r}); see its documentation.") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"restart_time": restart_time}
