# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter lease_seconds."""

from __future__ import annotations

DOCUMENTATION = r"""
name: lease_seconds
short_description: Return how long the step of a run may take that has a lease
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - The wait for jobs and evictions, and an hour for each round of hosts, in which Ansible works on as many as it has forks.
positional: _input, limits
options:
  _input:
    description: The number of hosts.
    type: int
    required: true
  limits:
    description: The number of C(forks), and the seconds of C(jobs) and C(evictions).
    type: dict
    required: true
"""

RETURN = r"""
_value:
  description: The seconds.
  type: int
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lease_seconds(hosts: int, limits: Mapping[str, Any]) -> int:
    """Return the seconds; input of another form raises AnsibleFilterError."""
    try:
        forks, jobs, evictions = (int(limits[name]) for name in ("forks", "jobs", "evictions"))
        return jobs + evictions + 3600 * -(-hosts // forks)
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise AnsibleFilterError(f"lease_seconds cannot read its input ({error!r}); see its documentation.") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"lease_seconds": lease_seconds}
