# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter ``from_toml``; documented in from_toml.yml beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import TomlError, loads

if TYPE_CHECKING:
    from collections.abc import Callable


def from_toml(text: Any, version: str = "1.0") -> dict[str, Any]:
    """Read a TOML text into plain data. Raises AnsibleFilterError."""
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
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """The filters of this file by name."""
        return {"from_toml": from_toml}
