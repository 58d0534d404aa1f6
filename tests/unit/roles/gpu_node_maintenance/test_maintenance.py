# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role gpu_node_maintenance without an API server, and its defaults."""

from __future__ import annotations

from fakes.loopback_api import write_kubeconfig


def test_failed_maintenance_names_the_host(evaluate, tmp_path):
    entry_points = ("begin", "end", "main")
    plays = [
        {
            "hosts": entry_point,
            "gather_facts": False,
            "tasks": [
                {
                    "block": [
                        {
                            "ansible.builtin.include_role": {
                                "name": "gpu.kubernetes.gpu_node_maintenance",
                                "tasks_from": entry_point,
                            }
                        }
                    ],
                    "rescue": [{"ansible.builtin.set_fact": {"message": "{{ ansible_failed_result.msg }}"}}],
                }
            ],
        }
        for entry_point in entry_points
    ]
    messages = evaluate(
        {entry_point: {} for entry_point in entry_points},
        plays,
        "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='message', default='')))",
        gpu_kubeconfig=str(write_kubeconfig("http://127.0.0.1:9", tmp_path / "kubeconfig")),
        gpu_node_name="node",
        gpu_node_maintenance_state="end",
    )
    for entry_point in entry_points:
        assert messages[entry_point].startswith(
            f"{entry_point}: The Kubernetes API at http://127.0.0.1:9 cannot be reached"
        ), messages
