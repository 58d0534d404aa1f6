# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter scheduler_record."""

from __future__ import annotations

DOCUMENTATION = r"""
name: scheduler_record
short_description: Build the record that a rollback of kube-scheduler needs
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - The role P(gpu.kubernetes.kube_scheduler_extender#role) writes it before a change.
positional: _input, contents, checksums, record, pod_hash
options:
  _input:
    description: Results of M(ansible.builtin.stat), those of the paths in O(record) first.
    type: list
    elements: dict
    required: true
  contents:
    description: Results of M(ansible.builtin.slurp) for the existing files.
    type: list
    elements: dict
    required: true
  checksums:
    description: SHA-256 of what the run will write, by path.
    type: dict
    required: true
  record:
    description: The record of an interrupted run, or empty.
    type: dict
    required: true
  pod_hash:
    description: The kubelet's hash of the present manifest, or empty.
    type: str
    required: true
"""

RETURN = r"""
_value:
  description: The former C(files), the C(absent) paths, the checksums C(former) and C(written), and the C(hash) of the former manifest.
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def scheduler_record(
    stats: Sequence[Mapping[str, Any]],
    contents: Sequence[Mapping[str, Any]],
    checksums: Mapping[str, Any],
    record: Mapping[str, Any],
    pod_hash: str,
) -> dict[str, Any]:
    """Return the record; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler.rollout import build_record

    try:
        return build_record(stats, contents, checksums, record, pod_hash)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(
            f"scheduler_record cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"scheduler_record": scheduler_record}
