# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter mask_credentials."""

from __future__ import annotations

DOCUMENTATION = r"""
name: mask_credentials
short_description: Mask the credentials in lines of a log
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Messages quote lines of logs, in which daemons write their flags and addresses.
positional: _input
options:
  _input:
    description: The lines.
    type: list
    elements: str
    required: true
"""

RETURN = r"""
_value:
  description: The lines, in which V(********) stands for each credential.
  type: list
  elements: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def mask_credentials(lines: Iterable[str]) -> list[str]:
    """Return the lines; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._config.redact import mask_text

    try:
        return [mask_text(line) for line in lines]
    except (AttributeError, TypeError) as error:
        raise AnsibleFilterError(f"mask_credentials cannot read its input ({error!r}); give lines of text.") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"mask_credentials": mask_credentials}
