# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster in memory of two nodes with two GPUs each, whose controllers, kubelets and device plugins react, and the programs of one host."""

from __future__ import annotations

import copy
import os
import time
from pathlib import Path

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import can_run_on

from .kubernetes_api import node
from .loopback_api import write_kubeconfig
from .small_cluster import Object, SmallCluster

NODES = ("w1", "w2")
GPU, MEMORY, COUNT = "nvidia.com/gpu", "aliyun.com/gpu-mem", "aliyun.com/gpu-count"
#: What the device plugin of a DaemonSet registers on a node.
PLUGINS = {
    "nvidia-device-plugin-daemonset": {GPU: "2"},
    "gpushare-device-plugin-ds": {MEMORY: "32", COUNT: "2"},
}
NVML = {"source": "nvml", "error": None, "gpus": [{"name": "GPU", "lost": False, "memory_total_bytes": 2**34}] * 2}


class SharingMachine:
    """``cluster`` has the nodes w1 and w2; ``bin`` has the programs that nano-gpu's agent would replace on w1."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        (self.bin / "hook").write_bytes(b"\x7fELF")
        (self.bin / "hook").chmod(0o755)
        (self.bin / "toolkit").symlink_to("hook")
        labels = {"nvidia.com/gpu.present": "true"}
        nodes = [{"kind": "Node", "apiVersion": "v1", **node(name, labels=dict(labels))} for name in NODES]
        self.cluster = SmallCluster(*nodes, {"kind": "Namespace", "metadata": {"name": "kube-system"}})
        self.cluster.react = self.react
        self.kubeconfig = write_kubeconfig(self.cluster.url, folder / "kubeconfig")
        self.initial_state = self.read_state()
        self.variables = {
            "gpu_kubeconfig": str(self.kubeconfig),
            "gpu_preflight_gpus": {"ansible_facts": {}},
            "gpushare_extender_topology": "service",
            "gpushare_extender_image_tag": "c0b6141",
            "__nano_gpu_programs": [str(self.bin / name) for name in ("hook", "toolkit")],
            "__nano_gpu_leftovers": [str(self.bin / "toolkit-bak")],
            "nano_gpu_state_dir": str(folder / "state"),
        }

    def react(self, cluster: SmallCluster) -> None:
        """Act as the controllers and the kubelets."""
        for item in cluster.all("Node"):
            self._run_plugins(cluster, item)
        for item in cluster.all("Deployment"):
            counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas"), 1)
            item["status"] = {"observedGeneration": item["metadata"]["generation"], **counts}
        for item in cluster.all("Service"):
            item["spec"]["clusterIP"] = "10.96.0.9"

    def _run_plugins(self, cluster: SmallCluster, item: Object) -> None:
        name, labels = item["metadata"]["name"], item["metadata"]["labels"]
        # A kubelet reports 0 of a resource without a plugin; the device plugin itself writes the count, which stays.
        capacity = {key: amount if key == COUNT else "0" for key, amount in item["status"]["capacity"].items()}
        for daemon_set in (each for each in cluster.all("DaemonSet") if each["metadata"]["name"] in PLUGINS):
            template = copy.deepcopy(daemon_set["spec"]["template"])
            pod = f"{daemon_set['metadata']['name']}-{name}"
            key = ("Pod", daemon_set["metadata"]["namespace"], pod)
            cluster.objects.pop(key, None)
            if can_run_on(template["spec"], labels):
                capacity.update(PLUGINS[daemon_set["metadata"]["name"]])
                cluster.objects[key] = self._pod(template, daemon_set, pod, name)
        known = {each["metadata"]["name"] for each in cluster.all("DaemonSet")}
        for key in [key for key in cluster.objects if key[0] == "Pod" and key[2].rpartition("-")[0] not in known]:
            del cluster.objects[key]
        item["status"].update(capacity=capacity, allocatable=dict(capacity))

    def _pod(self, template: Object, daemon_set: Object, name: str, on: str) -> Object:
        owner = {"kind": "DaemonSet", "name": daemon_set["metadata"]["name"], "controller": True}
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        namespace = daemon_set["metadata"]["namespace"]
        template["metadata"].update(name=name, namespace=namespace, creationTimestamp=now, ownerReferences=[owner])
        template["spec"]["nodeName"] = on
        statuses = [{"name": "main", "ready": True, "state": {"running": {}}}]
        return {
            "kind": "Pod",
            "apiVersion": "v1",
            **template,
            "status": {"phase": "Running", "containerStatuses": statuses},
        }

    def read_programs(self) -> dict[str, object]:
        """The programs by name: the target of a link, or mode and content."""
        paths = sorted(self.bin.iterdir())
        return {
            path.name: os.readlink(path) if path.is_symlink() else (path.stat().st_mode, path.read_bytes())
            for path in paths
        }

    def read_capacity(self, name: str) -> dict[str, str]:
        """The capacity of a node, without resources of amount 0."""
        capacity = self.cluster.objects["Node", "", name]["status"]["capacity"]
        return {key: amount for key, amount in capacity.items() if amount != "0"}

    def read_state(self) -> tuple[object, ...]:
        """The specs and labels of all objects except pods, and the programs."""
        objects = {
            key: (item.get("spec"), item["metadata"].get("labels"))
            for key, item in self.cluster.objects.items()
            if key[0] != "Pod"
        }
        return copy.deepcopy(objects), self.read_programs()
