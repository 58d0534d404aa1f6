# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup gpu_vendors."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_vendors
short_description: Return the vendors of the catalogue of GPUs
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its result may change in any release.
  - Returns a row for each vendor, so that roles and playbooks name none. NVIDIA, whose GPUs this collection shares, is last.
"""

EXAMPLES = r"""
- name: Show the roles that verify or install a driver
  ansible.builtin.debug:
    msg: "{{ query('gpu.kubernetes.gpu_vendors') | map(attribute='driver_role') }}"
"""

RETURN = r"""
_raw:
  description: The rows, each with the C(name) of a vendor, its C(driver_role), and C(served), whether this collection shares its GPUs.
  type: list
  elements: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.plugins.lookup import LookupBase

from ansible_collections.gpu.kubernetes.plugins.module_utils._vendors import OTHERS, SERVED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LookupModule(LookupBase):
    """Ansible's entry point."""

    def run(
        self,
        terms: Sequence[str],  # noqa: ARG002
        variables: Mapping[str, Any] | None = None,  # noqa: ARG002
        **kwargs: Any,  # noqa: ARG002
    ) -> list[dict[str, Any]]:
        """Return the rows in the order of the catalogue."""
        return [
            {"name": row.name, "driver_role": row.driver_role, "served": row is SERVED} for row in (*OTHERS, SERVED)
        ]
