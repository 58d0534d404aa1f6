# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter gpushare_render."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpushare_render
short_description: Render the allocation of GPUs as tables, as JSON or as CSV
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Writes what M(gpu.kubernetes.gpushare_info) or P(gpu.kubernetes.gpushare_allocation#filter) returned as text.
positional: _input, format
options:
  _input:
    description: The allocation, with C(nodes), C(cluster), C(unit), C(findings), C(resources) and C(totals).
    type: dict
    required: true
  format:
    description:
      - With V(table), the tables of C(kubectl inspect gpushare) with nodes sorted by name, a table of the other resources by node, and the findings below.
        Tables without a row are left out.
      - With V(json), the allocation as it is.
      - With V(csv), one record for each GPU, and for what pods hold of which no GPU is known one whose C(gpu) is C(pending). Where the API never reports the
        GPU, as of NVIDIA's device plugin, one record for each node and resource, whose C(gpu) is empty.
    type: str
    choices: [table, json, csv]
    default: table
  details:
    description: Whether the table or the CSV lists each pod. The allocation must have the pods.
    type: bool
    default: false
  bars:
    description: Whether a bar is drawn for each GPU, or for each node and resource where the GPUs are not known.
    type: bool
    default: false
seealso:
  - module: gpu.kubernetes.gpushare_info
  - module: gpu.kubernetes.show_report
"""

EXAMPLES = r"""
- name: Show a saved cluster
  ansible.builtin.debug:
    msg: "{{ (saved | gpu.kubernetes.gpushare_allocation | gpu.kubernetes.gpushare_render).splitlines() }}"
  vars:
    saved: "{{ lookup('ansible.builtin.file', 'cluster.json') }}"
"""

RETURN = r"""
_value:
  description: The text, which ends with a line feed.
  type: str
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def gpushare_render(
    allocation: Mapping[str, Any],
    format: str = "table",  # noqa: A002 - the option's name
    details: bool = False,
    bars: bool = False,
) -> str:
    """Return the allocation as text; a shape that does not fit is named."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.render import FORMATS, SOURCE, render_text

    if format not in FORMATS:
        raise AnsibleFilterError(f"gpushare_render has no format {format}; choose one of {', '.join(FORMATS)}.")
    try:
        return render_text(dict(allocation), format, details, bars)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(
            f"gpushare_render cannot read what it was given ({error!r}); give it {SOURCE}."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpushare_render": gpushare_render}
