# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter to_toml."""

from __future__ import annotations

DOCUMENTATION = r"""
name: to_toml
author: gpu.kubernetes authors (@gpu-kubernetes)
short_description: Write a TOML document
version_added: 0.1.0
description:
  - Turns a dictionary into the text of a TOML 1.0 document, keys in the order given, one C([table]) after the other.
  - TOML has no null, no whole numbers beyond 64 bits, and only strings as keys; anything else is an error.
options:
  _input:
    description: The dictionary to write.
    type: dict
    required: true
seealso:
  - plugin: gpu.kubernetes.from_toml
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Write a registry's host configuration
  ansible.builtin.copy:
    content: "{{ {'server': 'https://registry.example.com'} | gpu.kubernetes.to_toml }}"
    dest: /etc/containerd/certs.d/registry.example.com/hosts.toml
    mode: "0644"
"""

RETURN = r"""
_value:
  description: The text of the document.
  type: str
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable


def to_toml(data: Any) -> str:
    """Write plain data as TOML 1.0. Raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import TomlError, dumps

    if not isinstance(data, Mapping):
        raise AnsibleFilterError(
            f"gpu.kubernetes.to_toml writes a mapping and was given a value of type {type(data).__name__}; "
            "a TOML document is always a mapping."
        )
    try:
        return dumps(data)
    except TomlError as problem:
        raise AnsibleFilterError(
            f"gpu.kubernetes.to_toml cannot write this data: {problem}; leave that key out or give it another value."
        ) from None


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"to_toml": to_toml}
