# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role gpu_node_maintenance without an API server, and its defaults."""

from __future__ import annotations

import yaml
from fakes.loopback_api import write_kubeconfig

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT


def test_a_maintenance_that_fails_names_the_host(hear, tmp_path):
    ways = ("begin", "end", "main")
    plays = [
        {
            "hosts": way,
            "gather_facts": False,
            "tasks": [
                {
                    "block": [
                        {
                            "ansible.builtin.include_role": {
                                "name": "gpu.kubernetes.gpu_node_maintenance",
                                "tasks_from": way,
                            }
                        }
                    ],
                    "rescue": [{"ansible.builtin.set_fact": {"why": "{{ ansible_failed_result.msg }}"}}],
                }
            ],
        }
        for way in ways
    ]
    told = hear(
        {way: {} for way in ways},
        plays,
        "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='why', default='')))",
        gpu_kubeconfig=str(write_kubeconfig("http://127.0.0.1:9", tmp_path / "kubeconfig")),
        gpu_node_name="node",
        gpu_node_maintenance_state="end",
    )
    for way in ways:
        assert told[way].startswith(f"{way}: The Kubernetes API at http://127.0.0.1:9 cannot be reached"), told


def test_the_role_and_the_module_agree_on_what_a_gpu_pod_is():
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.plan import GPU_RESOURCES

    defaults = yaml.safe_load((ROOT / "roles" / "gpu_node_maintenance" / "defaults" / "main.yml").read_text())
    assert defaults["gpu_node_maintenance_resources"] == list(GPU_RESOURCES)
