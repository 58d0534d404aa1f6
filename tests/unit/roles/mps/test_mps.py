# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role mps refuses, and what it does on a node and its host."""

from __future__ import annotations

import os

import pytest
from fakes.kubernetes_api import node
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import FAILURE, write_lonely_interpreter
from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules.mps_node import Node

ROLE, NAME, LABEL = "gpu.kubernetes.mps", "nvidia-device-plugin-mps-control-daemon", "nvidia.com/mps.capable"
A100 = {
    "index": 0,
    "name": "NVIDIA A100-PCIE-40GB",
    "lost": False,
    "mig_mode": "disabled",
    "compute_capability": "8.0",
    "memory_total_bytes": 40 * 2**30,
}
ANSWERS = "get_default_active_thread_percentage = 25.0\nget_default_device_pinned_mem_limit 0 = 10G\n"
CONFIG = {"sharing": {"mps": {"renameByDefault": True, "resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}}
BY_HOST = "dict(groups.all | zip(groups.all | map('extract', hostvars, 'result')))"


def planned(**more):
    """The host's part of the plan."""
    return {"node": "w1", "config": CONFIG, "cordon": False, "node_absent": [], **more}


SLICED = {"gpu": {**A100, "mig_mode": "enabled"}}
FACTS = {"nvml": {"source": "nvml", "error": None, "gpus": "{{ [gpu] }}"}}


#: Variables of a host, and what its refusal contains.
REFUSED = {
    "accepted": ({}, ""),
    "sliced": (SLICED, "GPU 0 (NVIDIA A100-PCIE-40GB) is in MIG mode"),
    "leaves-mig": ({**SLICED, "plan": planned(node_absent=["mig"])}, ""),
    # Without a configuration of its own, the node has that of all nodes, whose names may lack the vendor.
    "configured": (
        {
            "plan": planned(config={}),
            "k8s_device_plugin_config": {"sharing": {"mps": {"resources": [{"name": "gpu", "replicas": 60}]}}},
        },
        "Host configured: 60 pods are to share a GPU, and MPS serves at most 48",
    ),
    "no-runtime": (
        {
            "mps_runtime_class": "",
            "gpu_preflight_container_runtime": "containerd",
            "containerd_nvidia_socket": "/nonexistent/containerd.sock",
        },
        "pods of the control daemon get the runtime of a daemon that does not answer",
    ),
    "default-runtime": ({"mps_runtime_class": "", "containerd_nvidia_set_default": True}, ""),
    "chart": (
        {"k8s_device_plugin_method": "helm"},
        "NVIDIA's chart cannot start the control daemon before the device plugin",
    ),
}


@pytest.fixture
def machine(tmp_path):
    """A host with the programs of MPS (fakes)."""
    return Node(tmp_path)


def run_as_playbooks(evaluate, machine, hosts, *plays, **extra):
    """Run entry points of the role: pairs of their names and variables; return the message of the failed task of each host, or empty."""
    found = [
        {
            "hosts": "all",
            "gather_facts": False,
            "vars": {"gpu_sharing_node_plan": "{{ plan }}", **variables},
            "tasks": [
                {
                    "block": [
                        *({"ansible.builtin.include_role": {"name": ROLE, "tasks_from": entry}} for entry in entries),
                        {"ansible.builtin.set_fact": {"result": "{{ result | default('') }}"}},
                    ],
                    "rescue": [{"ansible.builtin.set_fact": {"result": FAILURE}}],
                }
            ],
        }
        for entries, variables in plays
    ]
    return evaluate(
        {name: {"plan": planned(), "gpu": A100, **variables} for name, variables in hosts.items()},
        found,
        BY_HOST,
        facts=FACTS,
        environment={"PATH": f"{machine.programs}:{os.environ['PATH']}"},
        ansible_python_interpreter=write_lonely_interpreter(machine.programs.parent),
        __mps_path=str(machine.path),
        gpu_preflight_gpus={"ansible_facts": {}},
        **extra,
    )


def test_hosts_without_the_requirements_of_mps_are_refused(evaluate, machine):
    hosts = {name: variables for name, (variables, _words) in REFUSED.items()}
    results = run_as_playbooks(evaluate, machine, hosts, (["preflight"], {}))
    for name, (_variables, words) in REFUSED.items():
        assert (words in results[name]) if words else (results[name] == ""), (name, results[name])


class Controllers:
    """Start the daemon's pod on a node with the label; its daemon answers on the host, and leaves its folder when it ends."""

    def __init__(self, machine):
        self.machine, self.labels = machine, []

    def react(self, cluster):
        labels = cluster.objects["Node", "", "w1"]["metadata"]["labels"]
        key = ("Pod", "kube-system", f"{NAME}-x")
        self.labels.append(labels.get(LABEL))
        if labels.get(LABEL) == "true" and key not in cluster.objects:
            pipe = self.machine.path / "nvidia.com/gpu.shared/pipe"
            pipe.mkdir(parents=True)
            (pipe / "answers").write_text(ANSWERS)
            cluster.objects[key] = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": key[2],
                    "namespace": key[1],
                    "labels": {"name": NAME},
                    "ownerReferences": [{"kind": "DaemonSet", "name": NAME}],
                },
                "spec": {"nodeName": "w1"},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            }
        elif labels.get(LABEL) != "true":
            cluster.objects.pop(key, None)


def test_node_enters_and_leaves_mps(evaluate, machine, tmp_path):
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": NAME,
            "namespace": "kube-system",
            "labels": {"app.kubernetes.io/managed-by": "gpu.kubernetes"},
        },
        "spec": {},
    }
    bystander = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "static", "namespace": "kube-system"},
        "spec": {"nodeName": "w1"},
    }
    cluster = SmallCluster({"apiVersion": "v1", "kind": "Node", **node("w1", 0, labels={})}, daemon_set, bystander)
    controllers = Controllers(machine)
    cluster.react = controllers.react
    with serve_in_thread(cluster) as server:
        variables = {
            "gpu_kubeconfig": str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
            "mps_wait_timeout": 20,
        }
        # Again on a node that changes, whose GPUs are checked again.
        enter = (["preflight", "node_present"], {}), (["node_present"], {"gpu_sharing_node_plan": planned(cordon=True)})
        assert run_as_playbooks(evaluate, machine, {"h1": {}}, *enter, **variables) == {"h1": ""}
        assert controllers.labels == ["true"]
        assert machine.path.exists()
        leave = (["node_absent", "cluster_absent", "node_absent"], {"gpu_sharing_node_plan": planned(config={})})
        assert run_as_playbooks(evaluate, machine, {"h1": {}}, leave, (["main"], {}), **variables) == {
            "h1": "Host h1: MPS also needs the role k8s_device_plugin, before and after this role; set gpu_sharing_strategy to mps, or to another "
            "strategy to remove it, and run the playbook share_gpus."
        }
        assert LABEL not in server.objects["Node", "", "w1"]["metadata"]["labels"]
        assert ("DaemonSet", "kube-system", NAME) not in server.objects
    assert not machine.path.exists()
