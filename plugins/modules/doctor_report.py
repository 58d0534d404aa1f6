#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: doctor_report
short_description: Judge the observations of the GPU doctor and print the report
version_added: 0.1.0
author: gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal module of this collection, which can change in any release.
  - Judges what M(gpu.kubernetes.doctor_host_info) and M(gpu.kubernetes.doctor_cluster_info) have observed, prints the report with root
    causes first, and writes files on the controller.
  - Or prints which checks know O(symptom), and reads nothing else.
options:
  observations:
    description: One dictionary for each host, with C(host), C(node), and the parts of the observation or C(unreachable) with the reason.
    type: list
    elements: dict
    default: []
  cluster:
    description: The observation of the cluster. Empty if the API server was not read.
    type: dict
    default: {}
  prometheus:
    description: The Prometheus to read for the checks of the monitoring. Without effect if O(cluster) is empty.
    type: dict
    suboptions:
      url:
        description: Its address, before C(/api/v1).
        type: str
        required: true
      token:
        description: Bearer token.
        type: str
        default: ""
      username:
        description: User name.
        type: str
        default: ""
      password:
        description: Password of O(prometheus.username).
        type: str
        default: ""
      ca_path:
        description: Path on the controller of its certificate authority. Empty for those of the system.
        type: path
        default: ""
      validate_certs:
        description: Whether its certificate is verified.
        type: bool
        default: true
      timeout:
        description: Seconds for each of four queries.
        type: float
        default: 30
  errors:
    description: Sentences on what could not be read.
    type: list
    elements: str
    default: []
  checks:
    description: Ids or layers of the checks. Empty are all of them.
    type: list
    elements: str
    default: []
  skip:
    description: Ids or layers of checks to leave out.
    type: list
    elements: str
    default: []
  fail_on:
    description: From which verdict on the run is to fail, for RV(failure).
    type: str
    choices: [fail, warn, never]
    default: fail
  outputs:
    description: Files to write on the controller with mode 0600, of the formats V(text), V(json) and V(junit).
    type: dict
    default: {}
  bundle:
    description: The support bundle to write on the controller, a C(tar.gz) with mode 0600. Empty writes none.
    type: path
    default: ""
  symptom:
    description: A message of a program, whose causes are printed.
    type: str
    default: ""
  show:
    description: Whether to print.
    type: bool
    default: true
  format:
    description: How to print the report, as a text or as one line of JSON. The causes of O(symptom) are always a text.
    type: str
    choices: [text, json]
    default: text
extends_documentation_fragment:
  - gpu.kubernetes.attributes
attributes:
  check_mode:
    support: full
    details: The report is printed, and no file is written.
  diff_mode:
    support: none
  idempotent:
    support: full
notes:
  - Writes to the terminal itself, which callbacks that print one JSON document do not expect.
"""

EXAMPLES = r"""
- name: Judge and print
  gpu.kubernetes.doctor_report:
    observations: "{{ observations }}"
    outputs:
      json: /tmp/gpu-doctor.json

- name: Find the causes of a message
  gpu.kubernetes.doctor_report:
    symptom: "Failed to initialize NVML: Driver/library version mismatch"
"""

RETURN = r"""
report:
  description: The report, by the schema C(docs/schemas/gpu-doctor-v1.json).
  returned: if O(symptom) is empty
  type: dict
  sample: {schema: gpu.kubernetes/doctor/v1, status: pass, exit_code: 0}
failure:
  description: Why the run is to fail; empty if it is not.
  returned: if O(symptom) is empty
  type: str
  sample: ""
symptoms:
  description: The checks that know O(symptom), the most likely first.
  returned: if O(symptom) is not empty
  type: list
  elements: dict
  sample: [{id: kernel.mismatch, layer: kernel}]
"""

# This module is an action plugin and runs on the controller.
