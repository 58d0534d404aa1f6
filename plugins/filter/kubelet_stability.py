# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter kubelet_stability."""

from __future__ import annotations

DOCUMENTATION = r"""
name: kubelet_stability
short_description: Return whether the kubelet keeps running after its restart
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Two exits show a configuration that the kubelet rejects, since systemd restarts it repeatedly.
positional: _input, first, attempts, stable_after
options:
  _input:
    description: The kubelet's present properties in systemd, C(ActiveState) and C(NRestarts).
    type: dict
    required: true
  first:
    description: The properties after the restart.
    type: dict
    required: true
  attempts:
    description: The number of reads since then.
    type: int
    required: true
  stable_after:
    description: The number of reads without an exit, after which the kubelet counts as stable.
    type: int
    required: true
"""

RETURN = r"""
_value:
  description: C(exits), the number of exits since the restart, C(failing) and C(stable).
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def kubelet_stability(
    state: Mapping[str, str], first: Mapping[str, str], attempts: int, stable_after: int
) -> dict[str, Any]:
    """Return the verdict; input of another form raises AnsibleFilterError."""
    try:
        exits = int(state.get("NRestarts", 0)) - int(first.get("NRestarts", 0))
        active = state.get("ActiveState", "")
        failing = exits >= 2 or active in ("failed", "inactive")
        stable = not failing and active == "active" and int(attempts) > int(stable_after) * (1 + exits)
    except (AttributeError, TypeError, ValueError) as error:
        raise AnsibleFilterError(
            f"kubelet_stability cannot read its input ({error!r}); see its documentation."
        ) from error
    return {"exits": exits, "failing": failing, "stable": stable}


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"kubelet_stability": kubelet_stability}
