# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter from_toml."""

from __future__ import annotations

DOCUMENTATION = r"""
name: from_toml
author: gpu.kubernetes authors (@gpu-kubernetes)
short_description: Read a TOML document
version_added: 0.1.0
description:
  - Turns the text of a TOML document into a dictionary.
  - Dates and times become the types of Python's C(datetime).
positional: _input, version
options:
  _input:
    description: The text of the document.
    type: str
    required: true
  version:
    description: The version of TOML to read by. Software written before 2026 reads V(1.0).
    type: str
    choices:
      - "1.0"
      - "1.1"
    default: "1.0"
seealso:
  - plugin: gpu.kubernetes.to_toml
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the version of a containerd configuration
  ansible.builtin.debug:
    msg: "{{ (lookup('ansible.builtin.file', 'config.toml') | gpu.kubernetes.from_toml).version }}"
"""

RETURN = r"""
_value:
  description: The document as a dictionary.
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable


def from_toml(text: Any, version: str = "1.0") -> dict[str, Any]:
    """Read a TOML text into plain data. Raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import TomlError, loads

    if not isinstance(text, str):
        raise AnsibleFilterError(
            f"gpu.kubernetes.from_toml reads a string and was given a value of type {type(text).__name__}; "
            "pass the text of a TOML document."
        )
    try:
        return loads(text, version=str(version))
    except TomlError as problem:
        raise AnsibleFilterError(
            f"gpu.kubernetes.from_toml cannot read this text as TOML {version}: {problem}; correct it there."
        ) from None


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"from_toml": from_toml}
