# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter failure_messages."""

from __future__ import annotations

DOCUMENTATION = r"""
name: failure_messages
short_description: Return the messages of failed results
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Reads the registered results of tasks, or C(ansible_failed_result). Of a task with a loop, the results of its items count.
  - If no result is marked as failed, the messages of all results are returned.
positional: _input
options:
  _input:
    description: A result, or a list of results.
    type: raw
    required: true
"""

RETURN = r"""
_value:
  description: The messages, each on one line and once, without credentials.
  type: list
  elements: str
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def failure_messages(results: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the messages; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._config.redact import mask_text

    try:
        given = [results] if isinstance(results, Mapping) else list(results)
        flat = [item for result in given for item in _list_items(result)]
        failed = [item for item in flat if item.get("failed")]
        messages = [mask_text(" ".join(str(item.get("msg") or "").split())) for item in failed or flat]
    except (AttributeError, TypeError) as error:
        raise AnsibleFilterError(
            f"failure_messages cannot read its input ({error!r}); see its documentation."
        ) from error
    return list(dict.fromkeys(message for message in messages if message))


def _list_items(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the results of a loop's items, else the result itself. Modules may return results of their own."""
    items = result.get("results")
    return items if isinstance(items, list) and all("ansible_loop_var" in item for item in items) else [result]


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"failure_messages": failure_messages}
