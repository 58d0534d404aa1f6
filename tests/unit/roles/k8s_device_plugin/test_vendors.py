# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The device plugins of AMD and Intel: deployed on a mixed node, verified, kept, refused and removed."""

from __future__ import annotations

import json
import re

import pytest
from fakes import gpu_sysfs
from fakes.kubernetes_api import node
from fakes.loopback_api import serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import HERE

PRESENT = {"gpu-kubernetes/amd.present": "true", "gpu-kubernetes/intel.present": "true", "kubernetes.io/arch": "amd64"}
#: What the plugin of a DaemonSet registers on the node.
OFFERED = {
    "amdgpu-device-plugin-daemonset": {"amd.com/gpu": 2},
    "intel-gpu-plugin": {"gpu.intel.com/i915": 1},
}


def run_plugins(cluster, all_offered=None, suffix="x"):
    """Act as the DaemonSet controller, the kubelet and the plugins on the only node."""
    worker = cluster.objects["Node", "", "w1"]
    for name, offered in (all_offered or OFFERED).items():
        daemon_set = cluster.objects.get(("DaemonSet", "kube-system", name))
        pod = ("Pod", "kube-system", f"{name}-{suffix}")
        template = daemon_set["spec"]["template"] if daemon_set else {}
        if not daemon_set:
            cluster.objects.pop(pod, None)
        elif template["spec"]["nodeSelector"].items() <= worker["metadata"]["labels"].items():
            ready = [{"type": "Ready", "status": "True"}]
            cluster.objects[pod] = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {**template["metadata"], "name": pod[2], "namespace": pod[1], "ownerReferences": [{"name": name}]},
                "spec": {**template["spec"], "nodeName": "w1"},
                "status": {"phase": "Running", "conditions": ready, "containerStatuses": [{"name": "x", "ready": True}]},
            }  # fmt: skip
        for resource, units in offered.items():
            for amounts in (worker["status"]["capacity"], worker["status"]["allocatable"]):
                amounts[resource] = str(units if pod in cluster.objects else 0)


@pytest.fixture
def deploy(run, tmp_path):
    """Run the role for both vendors on a node with GPUs of both: exit code and output."""
    gpu_sysfs.replace_tree(tmp_path / "gpus", "mixed")
    playbook = tmp_path / "plugins.yml"

    def run_role(server, *options, providers=("amd", "intel")):
        tasks = [
            {
                "ansible.builtin.include_role": {"name": "gpu.kubernetes.k8s_device_plugin"},
                "vars": {"k8s_device_plugin_provider": "{{ item }}"},
                "loop": list(providers),
            }
        ]
        playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
        variables = {
            **HERE,
            "gpu_node_name": "w1",
            "gpu_devices_root": str(tmp_path / "gpus"),
            "gpu_kubeconfig": str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
            "k8s_device_plugin_wait_timeout": 20,
        }
        code, output = run({"all": {"hosts": {"h1": variables}}}, playbook, *options)
        return code, " ".join(output.split())

    return run_role


def make_cluster(*more):
    worker = node("w1", labels=dict(PRESENT))
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}},
        {"apiVersion": "v1", "kind": "Node", **worker},
    ]
    return SmallCluster(*objects, *more)


def find_names(server):
    return [item["metadata"]["name"] for item in server.all("DaemonSet")]


@pytest.mark.thorough
def test_plugins_of_a_mixed_node_have_no_rights_beyond_need(deploy, tmp_path):
    """The scenario vendors repeats and undoes the run on a cluster."""
    cluster = make_cluster()
    cluster.react = run_plugins
    with serve_in_thread(cluster) as server:
        code, output = deploy(server)
        assert (code, find_names(server)) == (0, list(OFFERED)), output
        check_pods(
            {item["metadata"]["name"]: item["spec"]["template"]["spec"] for item in server.all("DaemonSet")}, tmp_path
        )


def check_pods(specs, root):
    """They have no account, no privileges and their own selector and tolerations, and read the folder of the GPUs."""
    for name, vendor in (("amdgpu-device-plugin-daemonset", "amd"), ("intel-gpu-plugin", "intel")):
        spec = specs[name]
        assert spec["nodeSelector"] == {f"gpu-kubernetes/{vendor}.present": "true", "kubernetes.io/arch": "amd64"}
        assert {each["key"] for each in spec["tolerations"]} >= set(OFFERED[name])
        assert spec["priorityClassName"] == "system-node-critical"
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"] == {"seccompProfile": {"type": "RuntimeDefault"}}
        volumes = {each["name"]: each["hostPath"]["path"] for each in spec["volumes"]}
        assert volumes["sys"] == f"{root}/gpus/sys"
        assert volumes["device-plugins"] == "/var/lib/kubelet/device-plugins"
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            rights = container["securityContext"]
            assert (rights["allowPrivilegeEscalation"], rights["capabilities"]) == (False, {"drop": ["ALL"]})
            assert container["resources"]["requests"]
            assert ":latest" not in container["image"]
            assert container["image"].count(":") == 1
    [waiting] = specs["amdgpu-device-plugin-daemonset"]["initContainers"]
    assert "/sys/class/kfd" in waiting["command"][2]
    assert "/sys/module/amdgpu/drivers" in waiting["command"][2]
    [container] = specs["intel-gpu-plugin"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert container["args"] == ["-shared-dev-num=1", "-allocation-policy=none"]


def test_broken_hosts_and_other_owners_are_refused_before_a_change(deploy, tmp_path):
    config = {"apiVersion": "amd.com/v1alpha1", "kind": "DeviceConfig", "metadata": {"name": "default", "namespace": "kube-amd-gpu"}}  # fmt: skip
    with serve_in_thread(make_cluster(config)) as server:
        code, output = deploy(server)
        assert "AMD's GPU operator (DeviceConfig kube-amd-gpu/default) already offers the GPUs of AMD" in output
        gpu_sysfs.replace_tree(tmp_path / "gpus", "amd-heterogeneous")
        code, output = deploy(server)
        assert code != 0
        assert "Host h1: its AMD GPUs are partitioned in different ways (cpx_nps4 and spx_nps1)" in output
        assert find_names(server) == []


def test_plugin_of_amd_restarts_once_after_a_change_of_the_partitions(deploy, tmp_path):
    """It reads the GPUs when it starts."""
    [name, _intel], gpus = OFFERED, tmp_path / "gpus"
    cluster, started = make_cluster(), []

    def start_missing_pod(cluster):
        if not cluster.all("Pod"):
            started.append(4 if (gpus / "sys/devices/platform").exists() else 2)
            run_plugins(cluster, {name: {"amd.com/gpu": started[-1]}}, str(len(started)))

    cluster.before_read = start_missing_pod
    with serve_in_thread(cluster) as server:
        gpu_sysfs.replace_tree(gpus, "amd")
        code, output = deploy(server, providers=["amd"])
        assert (code, started[-1]) == (0, 2), output
        [pod] = server.all("Pod")
        gpu_sysfs.replace_tree(gpus, "amd-cpx")
        code, output = deploy(server, "--check", providers=["amd"])
        assert (code, re.findall(r"changed=(\d+)", output), server.all("Pod")) == (0, ["1"], [pod]), output
        code, output = deploy(server, providers=["amd", "amd"])
        assert (code, re.findall(r"changed=(\d+)", output), started[-1]) == (0, ["1"], 4), output
