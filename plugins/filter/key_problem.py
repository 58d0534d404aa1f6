# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter key_problem."""

from __future__ import annotations

DOCUMENTATION = r"""
name: key_problem
short_description: Compare an OpenPGP key with fingerprints
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Reads files of public keys, binary or in ASCII armour, without gpg.
positional: _input, expected
options:
  _input:
    description: The content of the key's file in base64, as M(ansible.builtin.slurp) returns it.
    type: str
    required: true
  expected:
    description: The fingerprints that its primary keys may have.
    type: list
    elements: str
    required: true
"""

RETURN = r"""
_value:
  description: Why the file is not one of these keys alone, as a clause; empty if it is.
  type: str
"""

import base64
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def key_problem(content: str, expected: Sequence[str]) -> str:
    """Return the clause; content that is not base64 raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.openpgp import find_key_problem

    try:
        return find_key_problem(base64.b64decode(content, validate=True), expected)
    except (TypeError, ValueError) as error:
        raise AnsibleFilterError(f"key_problem cannot read its input ({error!r}); see its documentation.") from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"key_problem": key_problem}
