# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter host_limit."""

from __future__ import annotations

DOCUMENTATION = r"""
name: host_limit
short_description: Return how many hosts a number or a percentage of them is
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
positional: _input, total
options:
  _input:
    description: A number of hosts, or a percentage of them such as V(10%). A percentage is rounded down.
    type: raw
    required: true
  total:
    description: The number of all hosts.
    type: int
    required: true
  least:
    description: The result if the percentage is less.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Print how many hosts may be unreachable
  ansible.builtin.debug:
    msg: "{{ '10%' | gpu.kubernetes.host_limit(ansible_play_hosts_all | length) }}"
"""

RETURN = r"""
_value:
  description: The number of hosts.
  type: int
"""

import re
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable

FORM = re.compile(r"(\d+) ?(%?)")


def host_limit(limit: int | str, total: int, least: int = 0) -> int:
    """Return the number of hosts; a limit that is neither a number nor a percentage up to 100 % raises AnsibleFilterError."""
    found = None if isinstance(limit, bool) else FORM.fullmatch(str(limit).strip())
    if found is None or (found[2] and int(found[1]) > 100):
        raise AnsibleFilterError(
            f"host_limit: {limit!r} is neither a number nor a percentage; write 3 or 10%, for example."
        )
    return max(total * int(found[1]) // 100, least) if found[2] else int(found[1])


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"host_limit": host_limit}
