# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter managed_cluster_result."""

from __future__ import annotations

DOCUMENTATION = r"""
name: managed_cluster_result
short_description: Return the state of a managed cluster with the result of a test
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal to this collection; its options may change in any release.
  - Adds the nodes that did not pass to the problems.
positional: _input, test
options:
  _input:
    description: What P(gpu.kubernetes.managed_cluster#filter) returns.
    type: dict
    required: true
  test:
    description: The result of a task with M(gpu.kubernetes.gpu_smoke_test), also of one that was skipped or failed.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the problems
  ansible.builtin.debug:
    msg: "{{ (cluster | gpu.kubernetes.managed_cluster_result(test)).problems }}"
"""

RETURN = r"""
_value:
  description: The same, with the problems of the test, and in C(untested) a sentence for each node without a verdict.
  type: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def managed_cluster_result(cluster: Mapping[str, Any], test: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description; input of another form raises AnsibleFilterError."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions.managed import add_test

    try:
        return add_test(cluster, test)
    except (AttributeError, KeyError, TypeError) as error:
        raise AnsibleFilterError(
            f"managed_cluster_result cannot read its input ({error!r}); see its documentation."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"managed_cluster_result": managed_cluster_result}
