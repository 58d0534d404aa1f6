# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup gpu_dashboards."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_dashboards
short_description: Return the Grafana dashboards for GPUs
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Returns the dashboards of fleet, node, allocation, health and cost as JSON for Grafana 10 to 13.
  - Their data source is a variable of the dashboard. They read the normalised series C(gpu:...) that the rules of this collection record.
options:
  prices:
    description:
      - The price of a GPU hour by model, for the dashboard of cost. A name can be a shell pattern, such as V(*A100*).
      - The name of the model itself comes before patterns, and a longer pattern before a shorter one. Case does not matter. Other models have the price of a
        field of the dashboard.
    type: dict
    default: {}
  currency:
    description: The currency that is shown after prices, such as V(EUR).
    type: str
    default: ""
  runbook_url:
    description: The page to which each dashboard has a link. If empty, there is no link.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Write the dashboards to files
  ansible.builtin.copy:
    content: "{{ item.text }}"
    dest: "dashboards/{{ item.uid }}.json"
    mode: "0644"
  loop: "{{ query('gpu.kubernetes.gpu_dashboards', prices={'*A100*': 2.5}, currency='EUR') }}"
  loop_control:
    label: "{{ item.title }}"
"""

RETURN = r"""
_raw:
  description: The dashboards, each with its C(uid), its C(title), its JSON as C(text), and C(name) and C(data) of a ConfigMap as C(config_map).
  type: list
  elements: dict
"""

from typing import TYPE_CHECKING, Any

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.dashboards.render import (
    Options,
    build_dashboards,
    render_json,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class LookupModule(LookupBase):
    """Ansible's entry point."""

    def run(
        self, terms: Sequence[str], variables: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> list[dict[str, Any]]:
        """Return the dashboards; a term, or a price that is not a number, raises AnsibleLookupError."""
        if terms:
            raise AnsibleLookupError("gpu_dashboards takes no terms; set prices, currency and runbook_url.")
        self.set_options(var_options=variables, direct=kwargs)
        options = Options(
            {str(pattern): _read_price(pattern, price) for pattern, price in self.get_option("prices").items()},
            self.get_option("currency"),
            self.get_option("runbook_url"),
        )
        return [describe(each) for each in build_dashboards(options)]


def describe(dashboard: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dashboard as text, and as the part of a ConfigMap that differs by dashboard."""
    uid, text = dashboard["uid"], render_json(dashboard)
    config_map = {"metadata": {"name": uid}, "data": {f"{uid}.json": text}}
    return {"uid": uid, "title": dashboard["title"], "text": text, "config_map": config_map}


def _read_price(pattern: Any, price: Any) -> float:
    try:
        return float(price)
    except (TypeError, ValueError) as error:
        raise AnsibleLookupError(
            f"gpu_dashboards: the price of {pattern} is {price!r}; write it as a number."
        ) from error
