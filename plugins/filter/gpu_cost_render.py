# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter gpu_cost_render."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_cost_render
short_description: Render GPU hours and costs as tables, as JSON or as CSV
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Writes the report of M(gpu.kubernetes.gpu_cost) as text.
positional: _input, format
options:
  _input:
    description: The report.
    type: dict
    required: true
  format:
    description:
      - With V(table), tables by namespace, node, product and resource, with totals and notes.
      - With V(json), the report as it is.
      - With V(csv), a record for each row of each table. A text that a spreadsheet would compute begins with C(').
    type: str
    choices: [table, json, csv]
    default: table
seealso:
  - module: gpu.kubernetes.gpu_cost
  - module: gpu.kubernetes.show_report
"""

EXAMPLES = r"""
- name: Write the costs for a spreadsheet
  ansible.builtin.copy:
    content: "{{ november.report | gpu.kubernetes.gpu_cost_render('csv') }}"
    dest: /var/lib/reports/november.csv
    mode: "0600"
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


def gpu_cost_render(report: Mapping[str, Any], format: str = "table") -> str:  # noqa: A002 - the option's name
    """Return the report as text; a shape that does not fit is named."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._cost.render import FORMATS, render_text

    if format not in FORMATS:
        raise AnsibleFilterError(f"gpu_cost_render has no format {format}; choose one of {', '.join(FORMATS)}.")
    try:
        return render_text(dict(report), format)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(
            f"gpu_cost_render cannot read what it was given ({error!r}); give it the report of gpu_cost."
        ) from error


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_cost_render": gpu_cost_render}
