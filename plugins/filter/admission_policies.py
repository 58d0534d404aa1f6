# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter admission_policies."""

from __future__ import annotations

DOCUMENTATION = r"""
name: admission_policies
short_description: Build the admission policies of service accounts
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - The accounts have the right to update pods, because the programs write annotations there. The policies restrict them to these annotations.
positional: _input, namespace, labels
options:
  _input:
    description:
      - The accounts, each with its C(name), the C(prefixes) of the annotations that it may change on pods, C(labels), whether of its labels
        as well, and C(own_node), whether only on the node of its token.
    type: list
    elements: dict
    required: true
  namespace:
    description: The namespace of the accounts.
    type: str
    required: true
  labels:
    description: The labels of the policies.
    type: dict
    default: {}
"""

RETURN = r"""
_value:
  description: A ValidatingAdmissionPolicy and its binding for each account.
  type: list
  elements: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def admission_policies(
    accounts: Sequence[Mapping[str, Any]], namespace: str, labels: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the objects; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.admission import (
        build_policies,
        read_accounts,
    )

    try:
        return build_policies(read_accounts(accounts), namespace, labels or {})
    except TypeError as error:
        raise AnsibleFilterError(
            f"admission_policies cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"admission_policies": admission_policies}
