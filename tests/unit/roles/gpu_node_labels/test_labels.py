# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What gpu_node_labels decides for nodes whose GPUs are unknown, and for control planes."""

from __future__ import annotations

import json

import yaml
from fakes.kubelet_machine import Machine
from fakes.kubernetes_api import node
from fakes.loopback_api import encode_list, serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

WORKING = {"source": "nvml", "error": None, "gpus": [{"name": "Tesla T4", "memory_total_bytes": 2**34, "lost": False}]}


NONE = {"source": "none", "error": None, "gpus": []}


LOST = {**WORKING, "error": "1 of 2 GPUs is lost.", "gpus": [*WORKING["gpus"], {"lost": True, "name": None}]}


ON_THE_BUS = {**WORKING, "source": "pci", "error": "The NVIDIA kernel module is not loaded; load it."}


SILENT = {**NONE, "error": "The NVIDIA driver did not answer within 10 seconds; reboot the node."}


def load_yaml(*parts):
    return yaml.safe_load(ROOT.joinpath("roles", *parts).read_text())


def test_broken_driver_keeps_the_labels(evaluate):
    nodes = {"works": WORKING, "none": NONE, "lost": LOST, "on-the-bus": ON_THE_BUS, "silent": SILENT}
    tasks = [
        task for task in load_yaml("gpu_node_labels", "tasks", "facts.yml") if "gpu.kubernetes.nvml_facts" not in task
    ]
    rescue = [{"ansible.builtin.set_fact": {"message": "{{ ansible_failed_result.msg }}"}}]
    play = {
        "hosts": "all",
        "gather_facts": False,
        "vars": {
            **load_yaml("gpu_node_labels", "defaults", "main.yml"),
            **load_yaml("gpu_node_labels", "vars", "main.yml"),
        },
        "tasks": [{"block": tasks, "rescue": rescue}],
    }
    messages = evaluate(
        {name: {"host_nvml": nvml} for name, nvml in nodes.items()},
        [play],
        "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='message', default='')))",
        facts={"nvml": "{{ host_nvml }}"},
    )
    for name, nvml in nodes.items():
        words = f"the labels of node {name} are unchanged, since its GPUs are unknown: {nvml['error']}"
        assert (words in messages[name]) is (name in {"on-the-bus", "silent"}), messages
        assert bool(messages[name]) is (name in {"on-the-bus", "silent"}), messages


MASTER = "node-role.kubernetes.io/master"


MANAGED = json.dumps({"gpu_node_labels_master": {MASTER: {"set": "", "was": None}}})


#: Control planes by who has set the label, as labels and annotations.
PLANES = {
    "none": ({}, {}),
    "managed": ({MASTER: ""}, {"gpu-kubernetes/managed-labels": MANAGED}),
    "unmanaged": ({MASTER: ""}, {}),
}


#: Variables, and the new value of the label by control plane (None: it is removed).
MASTERS = [
    ({"gpu_node_labels_master": True}, {"none": ""}),
    ({}, {"managed": None}),
    ({"gpu_node_labels_master": True, "gpu_node_labels_state": "absent"}, {"managed": None}),
    ({"gpu_node_labels_state": "absent", "ansible_limit": "node"}, {}),
]


def test_control_planes_get_the_label_only_on_request(evaluate, tmp_path):
    role = {"name": "gpu.kubernetes.gpu_node_labels", "tasks_from": "masters"}
    after = "{{ results + [__gpu_node_labels_masters.nodes | default({})] }}"
    tasks = [{"ansible.builtin.include_role": role}, {"ansible.builtin.set_fact": {"results": after}}]
    plays = [
        {"hosts": "all", "gather_facts": False, "check_mode": True, "vars": variables, "tasks": tasks}
        for variables, _changed in MASTERS
    ]
    api = Machine(tmp_path, "").api([])
    api.lists["/api/v1/nodes"] = encode_list(
        [
            {"metadata": {"name": name, "labels": labels, "annotations": annotations}}
            for name, (labels, annotations) in PLANES.items()
        ]
    )
    with serve_in_thread(api) as server:
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
        results = evaluate({"node": {}}, plays, "results", facts={"results": []}, gpu_kubeconfig=kubeconfig)
    changes = [{name: node["after"][MASTER] for name, node in nodes.items() if node["changed"]} for nodes in results]
    assert changes == [changed for _variables, changed in MASTERS]
    selectors = [query["labelSelector"] for _method, _path, query in api.requests if "labelSelector" in query]
    assert selectors == ["node-role.kubernetes.io/control-plane="] * 3


def test_node_with_a_damaged_record_fails_alone(evaluate, tmp_path):
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
    with serve_in_thread(SmallCluster(*({"apiVersion": "v1", "kind": "Node", **each} for each in nodes))) as server:
        results = evaluate(
            {each["metadata"]["name"]: {} for each in nodes},
            plays,
            "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='reached', default='no')))",
            facts={"nvml": WORKING},
            gpu_preflight_gpus={"ansible_facts": {}},
            gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
        )
        labels = {item["metadata"]["name"]: item["metadata"]["labels"] for item in server.all("Node")}
    assert results == {"bad": "no", "forged": "yes", "good": "yes"}
    assert labels["bad"] == {}
    assert labels["forged"] == labels["good"]
    assert labels["good"]["nvidia.com/gpu.present"] == "true"


TENANT = "node-restriction.kubernetes.io/tenant"


def test_labels_of_each_host_are_set_and_restored(evaluate, tmp_path):
    """The hosts differ in their extra labels, and the first host runs the task for all."""
    extras = {"a": {"team": "blue"}, "b": {"rack": "r1", TENANT: "x"}}
    labels = {"a": {"team": "old", "rack": "old"}, "b": {"team": "old", "rack": "old"}}
    nodes = [node(name, labels=labels[name]) for name in extras]
    play = {"hosts": "all", "gather_facts": False, "roles": ["gpu.kubernetes.gpu_node_labels"]}
    absent = {**play, "vars": {"gpu_node_labels_state": "absent"}}
    observed = []
    with serve_in_thread(SmallCluster(*({"apiVersion": "v1", "kind": "Node", **each} for each in nodes))) as server:
        for plays in ([play], [absent]):
            evaluate(
                {name: {"gpu_node_labels_extra": extra} for name, extra in extras.items()},
                plays,
                "''",
                facts={"nvml": WORKING},
                gpu_preflight_gpus={"ansible_facts": {}},
                gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
            )
            found = {item["metadata"]["name"]: item["metadata"]["labels"] for item in server.all("Node")}
            observed.append(
                {name: {key: own[key] for key in ("team", "rack", TENANT) if key in own} for name, own in found.items()}
            )
    assert observed == [{name: {**labels[name], **extras[name]} for name in extras}, labels]


AMD = {"devices": [{"vendor": "amd", "model": "AMD Instinct MI210", "driver": "amdgpu"}], "vendors": ["amd"]}


def test_features_are_written_and_removed_without_the_api_server(evaluate, tmp_path):
    """No kubeconfig is given, and the API server of the fake address does not answer."""
    folder = tmp_path / "features.d"
    play = {"hosts": "all", "gather_facts": False, "become": False, "roles": ["gpu.kubernetes.gpu_node_labels"]}
    observed = []
    for variables in ({}, {"gpu_devices": AMD, "gpu_node_labels_extra": {"rack": 7}}, {"host_nvml": NONE}):
        evaluate(
            {"node": {"host_nvml": WORKING, **variables}},
            [play],
            "''",
            facts={"nvml": "{{ host_nvml }}"},
            gpu_preflight_gpus={"ansible_facts": {}},
            gpu_node_labels_publish="nfd",
            gpu_node_labels_nfd_dir=str(folder),
            gpu_kubeconfig=str(write_kubeconfig("http://127.0.0.1:1", tmp_path / "kubeconfig")),
        )
        observed.append({path.name: path.read_text().splitlines()[1:] for path in folder.iterdir()})
    first, second, third = observed
    assert third == {}
    assert list(first) == list(second) == ["gpu-kubernetes"]
    assert {"gpu-kubernetes/nvidia.present=true", "gpu-kubernetes/accelerator=tesla-t4"} <= set(first["gpu-kubernetes"])
    added = set(second["gpu-kubernetes"]) - set(first["gpu-kubernetes"])
    assert {"gpu-kubernetes/rack=7", "gpu-kubernetes/amd.product=AMD-Instinct-MI210"} <= added
    assert all(line.startswith("gpu-kubernetes/") for line in second["gpu-kubernetes"])


NFD = "nfd.node.kubernetes.io/feature-labels"


def test_labels_of_other_tools_stay_and_the_undo_removes_the_features(evaluate, tmp_path):
    nodes = {
        "nobody": node("nobody"),
        "nfd": node("nfd", labels={"nvidia.com/gpu.present": "no"}, annotations={NFD: "nvidia.com/gpu.present"}),
        "gfd": node("gfd", labels={"nvidia.com/gpu.count": "7"}, annotations={NFD: "nvidia.com/gpu.product"}),
    }
    features = tmp_path / "gpu-kubernetes"
    features.write_text("gpu-kubernetes/nvidia.present=true")
    play = {"hosts": "all", "gather_facts": False, "become": False, "roles": ["gpu.kubernetes.gpu_node_labels"]}
    absent = {**play, "vars": {"gpu_node_labels_state": "absent"}}
    observed = []
    with serve_in_thread(
        SmallCluster(*({"apiVersion": "v1", "kind": "Node", **each} for each in nodes.values()))
    ) as server:
        for plays in ([play], [absent]):
            evaluate(
                {name: {} for name in nodes},
                plays,
                "''",
                facts={"nvml": WORKING},
                gpu_preflight_gpus={"ansible_facts": {}},
                gpu_node_labels_nfd_dir=str(tmp_path),
                gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
            )
            observed.append({item["metadata"]["name"]: item["metadata"]["labels"] for item in server.all("Node")})
    present, undone = observed
    assert present["nobody"]["nvidia.com/gpu.present"] == "true"
    assert present["nobody"]["nvidia.com/gpu.replicas"] == "1"
    assert (present["nfd"]["nvidia.com/gpu.present"], present["nfd"]["nvidia.com/gpu.count"]) == ("no", "1")
    assert present["gfd"] == {"nvidia.com/gpu.count": "7", "nvidia.com/gpu.present": "true", "accelerator": "tesla-t4"}
    assert undone == {name: each["metadata"].get("labels") or {} for name, each in nodes.items()}
    assert not features.exists()
