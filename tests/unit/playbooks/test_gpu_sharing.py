# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a node's GPUs are shared is decided from what is declared and what is there."""

from __future__ import annotations

import pytest

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")

REASON = '{"reason": "change of how GPUs are shared"}'
SLICED = {"sharing": {"timeSlicing": {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}}}


def node(shared=False, begun=False, held=0, **declared):
    """A host whose node shares by memory or not, is being emptied or not, and whose GPUs are held by some pods."""
    row = {"name": "{{ inventory_hostname }}", "labels": {}, "annotations": {}, "allocated": 0, "capacity": 0}
    memory = {**row, "allocated": held if shared else 0, "labels": {"gpushare": "true"} if shared else {}}
    memory["annotations"] = {"gpu-kubernetes/maintenance": REASON} if begun else {}
    whole = {**row, "allocated": 0 if shared else held, "capacity": 0 if shared else 2}
    seen = {"__gpu_sharing_memory": {"nodes": [memory]}, "__gpu_sharing_whole": {"nodes": [whole]}}
    return {**seen, "gpu_node_name": "{{ inventory_hostname }}", **declared}


#: The host, and what is decided: the strategy, whether to empty the node, to give it back, to take gpushare off; None if it is refused.
CASES = {
    "as-it-is": (node(), ["exclusive", False, False, False]),
    "as-configured": (node(k8s_device_plugin_config=SLICED), ["time_slicing", False, False, False]),
    "shared-undeclared": (node(shared=True, held=3), ["gpushare", False, False, False]),
    "leaves": (node(shared=True, gpu_sharing_strategy="exclusive"), ["exclusive", False, False, True]),
    "leaves-held": (node(shared=True, held=3, gpu_sharing_strategy="exclusive"), None),
    "joins-held": (node(held=1, gpu_sharing_strategy="gpushare"), None),
    "joins": (
        node(held=1, gpu_sharing_strategy="gpushare", gpu_sharing_migrate=True),
        ["gpushare", True, True, False],
    ),
    "cut-off-when-done": (
        node(shared=True, begun=True, held=3, gpu_sharing_strategy="gpushare"),
        ["gpushare", False, True, False],
    ),
    "contradiction": (node(gpu_sharing_strategy="mps"), None),
}


def test_what_is_decided(hear):
    role = {"name": "gpu.kubernetes.gpu_sharing"}
    tasks = [{"ansible.builtin.include_role": {**role, "tasks_from": step}} for step in ("validate", "decide")]
    names = ["gpu_sharing_decided", "gpu_sharing_empties", "gpu_sharing_returns", "gpu_sharing_leaves_gpushare"]
    notes = {"ansible.builtin.set_fact": {"told": "{{ [" + ", ".join(names) + "] }}"}}
    told = hear(
        {name: host for name, (host, _wanted) in CASES.items()},
        [{"hosts": "all", "gather_facts": False, "tasks": [*tasks, notes]}],
        "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='told', default='refused')))",
    )
    assert told == {name: wanted or "refused" for name, (_host, wanted) in CASES.items()}
