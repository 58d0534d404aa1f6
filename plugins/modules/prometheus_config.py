#!/usr/bin/python
# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module prometheus_config."""

from __future__ import annotations

DOCUMENTATION = r"""
module: prometheus_config
short_description: Have a Prometheus scrape exporters of GPUs and evaluate rules for them
version_added: 0.1.0
author:
  - gpu.kubernetes authors (@gpu-kubernetes)
description:
  - Internal module of this collection, which can change in any release. The role P(gpu.kubernetes.gpu_prometheus#role) uses it.
  - Runs on Prometheus' host. Adds the job V(gpu) and an entry of C(rule_files) to the configuration, writes the file of rules beside it, and for each
    of the hosts a file of targets. Files of targets of other hosts stay.
  - The configuration is edited as data, on the controller. Comments, order, quoting and indentation stay as they are.
  - C(promtool) checks copies of the planned files before a file is written, in each run and in check mode.
  - Then Prometheus loads the files. If C(prometheus_config_last_reload_successful) is not 1, or if Prometheus does not have the rules afterwards, the
    former files are restored and loaded, and the module fails with Prometheus' last log lines.
  - A run that was killed in between can be repeated. The next one loads and verifies the files, or restores what there was before.
extends_documentation_fragment:
  - gpu.kubernetes.attributes
  - gpu.kubernetes.attributes.node
attributes:
  check_mode:
    support: full
    details: Copies for C(promtool) are beside the configuration while it reads them, also in check mode.
  diff_mode:
    support: full
    details: Credentials are masked in it.
  idempotent:
    support: full
options:
  path:
    description: The configuration of Prometheus.
    type: path
    default: /etc/prometheus/prometheus.yml
  targets:
    description:
      - The targets by host, with the keys C(address), C(scheme) and C(labels).
      - With O(state=absent) only the names of the hosts count.
    type: dict
    default: {}
  state:
    description: V(absent) removes the files of targets of these hosts, and job and rules with the last file of targets.
    type: str
    choices: [present, absent]
    default: present
  scrape_options:
    description: More options of the job, such as C(tls_config) and C(basic_auth).
    type: dict
    default: {}
  alerts:
    description: What replaces the values of alerts, by the name of the alert, with the keys C(enabled), C(for) and C(severity).
    type: dict
    default: {}
  runbook_url:
    description: Address of the page of runbooks. If it is empty, the alerts have no C(runbook_url).
    type: str
    default: ""
  reload:
    description: How Prometheus loads the files. With V(none), others reload it, and nothing is verified.
    type: str
    choices: [systemd, http, none]
    default: systemd
  service:
    description: The service of Prometheus in systemd.
    type: str
    default: prometheus
  url:
    description: Address of Prometheus as its own host reaches it.
    type: str
    default: http://127.0.0.1:9090
  promtool:
    description: Name or path of C(promtool).
    type: str
    default: promtool
  state_dir:
    description: Directory for the record of changes and for backups.
    type: path
    default: /var/lib/gpu-kubernetes
  _request:
    description: What the controller requests of the host. Not for playbooks.
    type: dict
requirements:
  - ruamel.yaml >= 0.17.21 on the controller
  - promtool on Prometheus' host
"""

EXAMPLES = r"""
- name: Scrape the exporter of a host
  gpu.kubernetes.prometheus_config:
    targets:
      gpu1:
        address: 10.0.0.11:9835
        scheme: http
        labels: {node: gpu1, gpu_expected: "8"}
  become: true
"""

RETURN = r"""
needs_reload:
  description: Whether Prometheus has to load its configuration, because it or the rules change, or because an earlier change was not verified.
  returned: success
  type: bool
  sample: true
files:
  description: The files that are written or removed, in that order. Empty if there is nothing to do.
  returned: success
  type: list
  elements: str
  sample: [/etc/prometheus/gpu-kubernetes.rules.yml, /etc/prometheus/gpu-targets/gpu1.json, /etc/prometheus/prometheus.yml]
diff:
  description: The files with their content before and after.
  returned: success, in diff mode
  type: list
  elements: dict
backup_files:
  description: Backups of content of others that was replaced, by file.
  returned: changed, not in check mode
  type: dict
  sample:
    /etc/prometheus/prometheus.yml: /var/lib/gpu-kubernetes/backups/etc-prometheus-prometheus.yml.93e1f0a2c4b5.0f343b0931126a20
"""

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.node import run_node_half
from ansible_collections.gpu.kubernetes.plugins.module_utils._module import build_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.arguments import ARGUMENTS
from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.node import ACTIONS, read


def main() -> None:
    """Be the half on Prometheus' host; the controller's is the action plugin of this name."""
    module = build_module(AnsibleModule, ARGUMENTS)
    run_node_half(module, "prometheus_config", read, ACTIONS)


if __name__ == "__main__":
    main()
