# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter runtime_class_state."""

from __future__ import annotations

DOCUMENTATION = r"""
name: runtime_class_state
short_description: Return the state of the RuntimeClass that a report shows
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Of several RuntimeClasses, this is the first that is missing, else the first with another handler, else the first one.
positional: _input, found
options:
  _input:
    description: The RuntimeClasses that hosts need, with the name as C(key) and the handler as C(value). An empty handler accepts any.
    type: list
    elements: dict
    required: true
  found:
    description: The RuntimeClasses of the cluster.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the RuntimeClass to report
  ansible.builtin.debug:
    msg: "{{ [{'key': 'nvidia', 'value': 'nvidia'}] | gpu.kubernetes.runtime_class_state(classes) }}"
"""

RETURN = r"""
_value:
  description: C(name), empty if no host needs one, C(found), C(handler) and C(expected_handler).
  type: dict
  sample: {name: nvidia, found: true, handler: nvidia, expected_handler: nvidia}
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


def runtime_class_state(needed: Iterable[Mapping[str, str]], found: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the state; input of another form raises AnsibleFilterError."""
    try:
        handlers = {each["metadata"]["name"]: each["handler"] for each in found}
        pairs = [(str(each["key"]), str(each["value"] or "")) for each in needed]
    except (KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"runtime_class_state cannot read its input ({error!r}); see its documentation."
        ) from error
    missing = [pair for pair in pairs if pair[0] not in handlers]
    wrong = [pair for pair in pairs if pair[1] and handlers.get(pair[0]) != pair[1]]
    name, expected = next(iter([*missing, *wrong, *pairs]), ("", ""))
    return {
        "name": name,
        "found": name in handlers,
        "handler": handlers.get(name),
        "expected_handler": expected or None,
    }


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"runtime_class_state": runtime_class_state}
