# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filter ``to_toml``; documented in to_toml.yml beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import TomlError, dumps

if TYPE_CHECKING:
    from collections.abc import Callable


def to_toml(data: Any) -> str:
    """Write plain data as TOML 1.0. Raises AnsibleFilterError."""
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
    """What Ansible looks for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """The filters of this file by name."""
        return {"to_toml": to_toml}
