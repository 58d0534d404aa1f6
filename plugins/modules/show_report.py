#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: show_report
short_description: Print the report on the GPUs of a cluster, on their allocation, or on their cost
version_added: 0.1.0
description:
  - Internal module of this collection, which can change in any release.
  - Prints the report of the filter P(gpu.kubernetes.gpu_report#filter) as a table with problems and notes, in colour if the terminal
    supports it.
  - Or prints the result of M(gpu.kubernetes.gpushare_info), as the filter P(gpu.kubernetes.gpushare_render#filter) renders it, the report of
    M(gpu.kubernetes.gpu_cost), as P(gpu.kubernetes.gpu_cost_render#filter) renders it, or lines of text. One of them is required.
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.info
options:
  report:
    description: The report.
    type: dict
  path:
    description: The path of the report's file, which is printed below the table.
    type: str
    default: ""
  hosts:
    description: The hosts of this run. A star marks the others, which are of an earlier run. By default, all are of this run.
    type: list
    elements: str
  tested:
    description: The nodes that this run tested. A star marks the smoke tests of others. By default, all are of this run.
    type: list
    elements: str
  allocation:
    description: The allocation of GPUs, with C(nodes), C(cluster), C(unit), C(findings), C(resources) and C(totals).
    type: dict
  lines:
    description: Lines of text, in which characters that are not printable are escaped.
    type: list
    elements: str
  cost:
    description: GPU hours and costs, the report of M(gpu.kubernetes.gpu_cost).
    type: dict
  format:
    description: The format of O(allocation) or O(cost). Only V(table) has colours and other lines.
    type: str
    choices: [table, json, csv]
    default: table
  details:
    description: Whether to list each pod of O(allocation).
    type: bool
    default: false
  bars:
    description: Whether to draw a bar for each GPU of O(allocation), or for each node and resource where the GPUs are not known.
    type: bool
    default: true
notes:
  - Writes to the terminal itself, which callbacks that print one JSON document do not expect.
seealso:
  - plugin: gpu.kubernetes.gpu_report
    plugin_type: filter
  - plugin: gpu.kubernetes.gpushare_render
    plugin_type: filter
  - plugin: gpu.kubernetes.gpu_cost_render
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Show the report
  gpu.kubernetes.show_report:
    report: "{{ observations | gpu.kubernetes.gpu_report(cluster=cluster) }}"

- name: Read the allocation
  gpu.kubernetes.gpushare_info:
  register: gpushare

- name: Show it
  gpu.kubernetes.show_report:
    allocation: "{{ gpushare }}"
    details: true
"""

RETURN = r"""#"""

# This module is an action plugin and runs on the controller.
