# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter gpu_lint."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_lint
short_description: Find mistakes in Kubernetes objects that request GPUs
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Checks objects that a playbook has, such as those of a template before it applies them, by the rules of M(gpu.kubernetes.gpu_workload_lint).
  - Rules that need facts of a cluster are skipped without O(context), and C(skipped) of the result names them.
positional: _input, context
options:
  _input:
    description: Objects, each a dictionary of any kind, a C(List) included; or one object.
    type: list
    elements: dict
    required: true
  context:
    description:
      - What is known of the cluster. C(nodes), C(pods), C(runtime_classes), C(device_classes) and C(claims) are lists of objects as the API server sends
        them. Claims are ResourceClaims and ResourceClaimTemplates besides those of the input.
      - C(default_runtime), C(device_ownership) and C(admission_plugins) are as in M(gpu.kubernetes.gpu_workload_lint).
    type: dict
    default: {}
seealso:
  - module: gpu.kubernetes.gpu_workload_lint
"""

EXAMPLES = r"""
- name: Require manifests without grave mistakes
  ansible.builtin.assert:
    that: (lookup('ansible.builtin.template', 'job.yml.j2') | from_yaml_all | gpu.kubernetes.gpu_lint).summary.error == 0
"""

RETURN = r"""
_value:
  description: The result, with C(findings), C(ignored), C(skipped) and C(summary) as those of M(gpu.kubernetes.gpu_workload_lint).
  type: dict
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from ansible.errors import AnsibleFilterError


def gpu_lint(objects: Any, context: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the result for objects."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.lint import lint
    from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.model import Context
    from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.walker import split_list

    given = [objects] if isinstance(objects, Mapping) else list(objects) if isinstance(objects, Iterable) else [objects]
    if not all(isinstance(each, Mapping) for each in given):
        raise AnsibleFilterError(
            "gpu_lint needs a list of Kubernetes objects as dictionaries; read a text with from_yaml_all."
        )
    known = [each.name for each in fields(Context)]
    unknown = sorted(set(context or {}).difference(known))
    if unknown:
        raise AnsibleFilterError(f"gpu_lint does not know {unknown[0]} of its context; use {', '.join(known)}.")
    documents = [document for each in given for document in split_list(each, "-", {})]
    return lint(documents, Context(**(context or {}))).as_dict()


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Any]:
        """Return the filter by name."""
        return {"gpu_lint": gpu_lint}
