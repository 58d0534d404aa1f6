# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup sharing_strategies."""

from __future__ import annotations

DOCUMENTATION = r"""
name: sharing_strategies
short_description: Return rows of the catalogue of sharing strategies
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its result may change in any release.
  - Returns the rows of the catalogue, so that roles and playbooks name no strategy.
options:
  _terms:
    description: Names of strategies. Without any, all rows are returned.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show the labels of nodes that NVIDIA's device plugin does not serve
  ansible.builtin.debug:
    msg: "{{ query('gpu.kubernetes.sharing_strategies') | map(attribute='label') | select }}"
"""

RETURN = r"""
_raw:
  description: The rows, each with the C(name), C(role), C(label), C(resources) and so on of a strategy.
  type: list
  elements: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LookupModule(LookupBase):
    """Ansible's entry point."""

    def run(
        self, terms: Sequence[str], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Return the rows in the order of *terms*; a name without a row raises AnsibleLookupError."""
        self.set_options(var_options=variables, direct=kwargs)
        unknown = [name for name in terms if name not in STRATEGIES]
        if unknown:
            raise AnsibleLookupError(
                f"sharing_strategies: {unknown[0]} is not a strategy; choose one of {', '.join(STRATEGIES)}."
            )
        return [STRATEGIES[name].as_dict() for name in (terms or STRATEGIES)]
