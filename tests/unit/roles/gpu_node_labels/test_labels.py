# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gpu_node_labels decides for nodes whose GPUs are unknown, and for control planes."""

from __future__ import annotations

import json

import yaml
from fakes.kubelet_machine import Machine
from fakes.kubernetes_api import node
from fakes.loopback_api import listed, serving, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

WORKING = {"source": "nvml", "error": None, "gpus": [{"name": "Tesla T4", "memory_total_bytes": 2**34, "lost": False}]}


NONE = {"source": "none", "error": None, "gpus": []}


LOST = {**WORKING, "error": "1 of 2 GPUs is lost.", "gpus": [*WORKING["gpus"], {"lost": True, "name": None}]}


ON_THE_BUS = {**WORKING, "source": "pci", "error": "The NVIDIA kernel module is not loaded; load it."}


SILENT = {**NONE, "error": "The NVIDIA driver did not answer within 10 seconds; reboot the node."}


def loaded(*parts):
    return yaml.safe_load(ROOT.joinpath("roles", *parts).read_text())


def test_a_broken_driver_does_not_take_the_labels(hear):
    nodes = {"works": WORKING, "none": NONE, "lost": LOST, "on-the-bus": ON_THE_BUS, "silent": SILENT}
    tasks = [
        task for task in loaded("gpu_node_labels", "tasks", "facts.yml") if "gpu.kubernetes.nvml_facts" not in task
    ]
    rescue = [{"ansible.builtin.set_fact": {"why": "{{ ansible_failed_result.msg }}"}}]
    play = {
        "hosts": "all",
        "gather_facts": False,
        "vars": {**loaded("gpu_node_labels", "defaults", "main.yml"), **loaded("gpu_node_labels", "vars", "main.yml")},
        "tasks": [{"block": tasks, "rescue": rescue}],
    }
    told = hear(
        {name: {"seen": nvml} for name, nvml in nodes.items()},
        [play],
        "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='why', default='')))",
        facts={"nvml": "{{ seen }}"},
    )
    for name, nvml in nodes.items():
        words = f"the labels of node {name} are unchanged, since its GPUs are unknown: {nvml['error']}"
        assert (words in told[name]) is (name in {"on-the-bus", "silent"}), told
        assert bool(told[name]) is (name in {"on-the-bus", "silent"}), told


MASTER = "node-role.kubernetes.io/master"


OURS = json.dumps({"gpu_node_labels_master": {MASTER: {"set": "", "was": None}}})


#: Control planes by who has made masters of them, as labels and annotations.
PLANES = {
    "nobody": ({}, {}),
    "we": ({MASTER: ""}, {"gpu-kubernetes/managed-labels": OURS}),
    "others": ({MASTER: ""}, {}),
}


#: What is asked for, and the value of the label that a control plane gets for it (None: it goes).
MASTERS = [
    ({"gpu_node_labels_master": True}, {"nobody": ""}),
    ({}, {"we": None}),
    ({"gpu_node_labels_master": True, "gpu_node_labels_state": "absent"}, {"we": None}),
    ({"gpu_node_labels_state": "absent", "ansible_limit": "node"}, {}),
]


def test_control_planes_are_masters_where_that_is_asked_for(hear, tmp_path):
    role = {"name": "gpu.kubernetes.gpu_node_labels", "tasks_from": "masters"}
    after = "{{ told + [__gpu_node_labels_masters.nodes | default({})] }}"
    tasks = [{"ansible.builtin.include_role": role}, {"ansible.builtin.set_fact": {"told": after}}]
    plays = [
        {"hosts": "all", "gather_facts": False, "check_mode": True, "vars": given, "tasks": tasks}
        for given, _changed in MASTERS
    ]
    api = Machine(tmp_path, "").api([])
    api.lists["/api/v1/nodes"] = listed(
        [
            {"metadata": {"name": name, "labels": labels, "annotations": annotations}}
            for name, (labels, annotations) in PLANES.items()
        ]
    )
    with serving(api) as server:
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
        told = hear({"node": {}}, plays, "told", facts={"told": []}, gpu_kubeconfig=kubeconfig)
    changes = [{name: node["after"][MASTER] for name, node in nodes.items() if node["changed"]} for nodes in told]
    assert changes == [changed for _given, changed in MASTERS]
    asked = [query["labelSelector"] for _method, _path, query in api.requests if "labelSelector" in query]
    assert asked == ["node-role.kubernetes.io/control-plane="] * 3


def test_a_node_with_a_damaged_record_fails_alone(hear, tmp_path):
    """Its kubelet has written it; the play stops at any other error."""
    damaged = {"gpu-kubernetes/managed-labels": "[" * 5000}
    forged = json.dumps({"gpu_node_labels": {"node-restriction.kubernetes.io/t": {"set": None, "was": "payments"}}})
    nodes = [
        node("bad", annotations=damaged),
        node("forged", annotations={"gpu-kubernetes/managed-labels": forged}),
        node("good"),
    ]
    plays = [
        {"hosts": "all", "gather_facts": False, "any_errors_fatal": True, "roles": ["gpu.kubernetes.gpu_node_labels"]},
        {"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.set_fact": {"reached": "yes"}}]},
    ]
    with serving(SmallCluster(*({"apiVersion": "v1", "kind": "Node", **each} for each in nodes))) as server:
        told = hear(
            {each["metadata"]["name"]: {} for each in nodes},
            plays,
            "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='reached', default='no')))",
            facts={"nvml": WORKING},
            gpu_preflight_gpus={"ansible_facts": {}},
            gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
        )
        labels = {item["metadata"]["name"]: item["metadata"]["labels"] for item in server.all("Node")}
    assert told == {"bad": "no", "forged": "yes", "good": "yes"}
    assert labels["bad"] == {}
    assert labels["forged"] == labels["good"]
    assert labels["good"]["nvidia.com/gpu.present"] == "true"
