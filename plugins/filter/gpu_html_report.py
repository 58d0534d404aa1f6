# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter gpu_html_report."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_html_report
short_description: Render the report on the GPUs of a cluster as one HTML file
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Renders what P(gpu.kubernetes.gpu_report#filter) has built as a page that loads nothing and runs no script.
  - Names and log lines of nodes and pods are untrusted. All values are escaped, and the page forbids the browser everything but its own styles.
  - The same input gives the same page. The role P(gpu.kubernetes.gpu_html_report#role) writes it to a file.
positional: _input
options:
  _input:
    description: The report, as the text of its file or as data.
    type: raw
    required: true
  allocation:
    description:
      - What pods hold, as C(show_gpu_allocation) writes it in the format V(json), as text or as data. With details, it has the pods.
      - Without it, the use of the GPUs is not known.
    type: raw
    default: ""
  cost:
    description:
      - The cost, as text or as data, with C(currency) and C(rows). Each row has C(namespace), C(product), C(allocated_hours), C(idle_hours), C(wasted_hours)
        and C(cost). The hours are GPU hours.
      - Without it, the page has no costs.
    type: raw
    default: ""
  earlier:
    description: An earlier report, as text or as data. The page then lists what has changed since.
    type: raw
    default: ""
  language:
    description: The language of the page. Causes and remedies are English in every language, as in the report.
    type: str
    choices: [en, zh-CN]
    default: en
  title:
    description: The title of the page. If empty, a title in its language.
    type: str
    default: ""
  source:
    description: The name of the report's file, which the page shows.
    type: str
    default: ""
  written:
    description: When that file was changed last, in seconds since 1970. If V(0), the page shows no time.
    type: float
    default: 0
"""

EXAMPLES = r"""
- name: Write the report as a page
  ansible.builtin.copy:
    content: "{{ lookup('ansible.builtin.file', 'gpu-report.json') | gpu.kubernetes.gpu_html_report(language='zh-CN') }}"
    dest: gpu-report.html
    mode: "0644"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description: The HTML.
  type: str
"""

import json
from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleFilterError

if TYPE_CHECKING:
    from collections.abc import Callable


def gpu_html_report(
    report: Any,
    allocation: Any = "",
    cost: Any = "",
    earlier: Any = "",
    language: str = "en",
    title: str = "",
    source: str = "",
    written: float = 0,
) -> str:
    """Return the page; input that cannot be read is named."""
    from ansible_collections.gpu.kubernetes.plugins.module_utils._report.texts import LANGUAGES
    from ansible_collections.gpu.kubernetes.plugins.plugin_utils._html_report import render_html

    if language not in LANGUAGES:
        raise AnsibleFilterError(f"gpu_html_report has no language {language}; choose one of {', '.join(LANGUAGES)}.")
    page = _build(
        report=_read_report(report, "report"),
        allocation=_read(allocation, "allocation"),
        cost=_read(cost, "cost"),
        earlier=_read_report(earlier, "earlier report") if earlier else None,
    )
    return render_html(page, language, str(title or ""), str(source or ""), float(written or 0))


def _build(**given: Any) -> dict[str, Any]:
    from ansible_collections.gpu.kubernetes.plugins.module_utils._report.page import build_page

    try:
        return build_page(**given)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise AnsibleFilterError(
            f"gpu_html_report cannot read what it was given ({error!r}); give it the files that verify_gpu_cluster and show_gpu_allocation write, "
            "and a cost report with the documented fields."
        ) from error


def _read(given: Any, what: str) -> dict[str, Any] | None:
    """Return the data of a text or of data; None if there is none."""
    if not given:
        return None
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError as error:
            raise AnsibleFilterError(f"gpu_html_report cannot read the {what}, which is not JSON: {error}.") from error
    if not isinstance(given, dict):
        raise AnsibleFilterError(f"gpu_html_report cannot read the {what}, which is not a JSON object.")
    return given


def _read_report(given: Any, what: str) -> dict[str, Any]:
    from ansible_collections.gpu.kubernetes.plugins.module_utils._report.build import SCHEMA

    read = _read(given, what) or {}
    if read.get("schema") != SCHEMA:
        raise AnsibleFilterError(
            f"The {what} has the schema {read.get('schema')!r}, not {SCHEMA}; give gpu_html_report the file that verify_gpu_cluster writes."
        )
    return read


class FilterModule:
    """Ansible's entry point."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by name."""
        return {"gpu_html_report": gpu_html_report}
