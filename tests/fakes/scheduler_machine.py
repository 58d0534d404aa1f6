# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control planes with fakes of kubelet and scheduler: the manifests make mirror pods, the configurations make them ready.

A scheduler starts if its configuration exists and has no extender with "broken" in its URL, and if `down` is not set. After a change it is not ready
for `failing_reads` reads. A scheduler with "dead" in an extender's URL starts, and schedules nothing while it leads. With `changes_leader`, a leader
that restarts loses the lease to the next control plane.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import yaml
from fakes.small_cluster import SmallCluster

PLACE = {"namespace": "kube-system"}
KUBEADM = """apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: v1.34.4
scheduler: {}
"""


class ControlPlanes:
    """Control planes by name, each below a folder, and the API server."""

    def __init__(self, folder: Path, manifest: str, *names: str) -> None:
        self.folders = {name: folder / name for name in names}
        self.down = False
        self.failing_reads = 0
        self.failing_names: set[str] = set()  # control planes whose scheduler does not start with a configuration
        self.changes_leader = False
        self._reads: dict[str, int] = {}
        self._digests: dict[str, str] = {}
        for each in self.folders.values():
            (each / "manifests").mkdir(parents=True)
            (each / "manifests" / "kube-scheduler.yaml").write_text(manifest)
        config = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "kubeadm-config", **PLACE},
            "data": {"ClusterConfiguration": KUBEADM},
        }
        nodes = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in names]
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system"}}
        self.cluster = SmallCluster(config, namespace, *nodes)
        self.cluster.before_read = self.cluster.react = lambda _cluster: self.reconcile()
        self.set_leader(names[0])
        self.reconcile()

    def set_leader(self, name: str) -> None:
        """Give the lease to the scheduler of a control plane."""
        spec = {"holderIdentity": f"{name}_0b9c6f5e-55f7-4f1c-8a4b-1d2e3f4a5b6c"}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
        self.cluster.put({**lease, "metadata": {"name": "kube-scheduler", **PLACE}})

    @property
    def leader(self) -> str:
        """The control plane whose scheduler leads."""
        lease = self.cluster.objects["Lease", "kube-system", "kube-scheduler"]
        return str(lease["spec"]["holderIdentity"]).partition("_")[0]

    @property
    def kubeadm(self) -> str:
        """The ClusterConfiguration."""
        config = self.cluster.objects["ConfigMap", "kube-system", "kubeadm-config"]
        return config["data"]["ClusterConfiguration"]

    @kubeadm.setter
    def kubeadm(self, text: str) -> None:
        self.cluster.objects["ConfigMap", "kube-system", "kubeadm-config"]["data"]["ClusterConfiguration"] = text

    def reconcile(self) -> None:
        """Act as the kubelets and the leader."""
        former = self._digests.get(self.leader)
        ready = {name: self._update_mirror_pod(name, folder) for name, folder in self.folders.items()}
        if self.changes_leader and former not in (None, self._digests[self.leader]):
            names = list(self.folders)
            self.set_leader(names[(names.index(self.leader) + 1) % len(names)])
        for pod in self.cluster.all("Pod"):
            if "scheduler-probe" in pod["metadata"]["name"] and any(ready.values()) and self._can_schedule(self.leader):
                pod["spec"]["nodeName"] = "worker"
                pod["status"] = {"conditions": [{"type": "PodScheduled", "status": "True"}]}

    def _update_mirror_pod(self, name: str, folder: Path) -> bool:
        key = ("Pod", "kube-system", f"kube-scheduler-{name}")
        manifest = folder / "manifests" / "kube-scheduler.yaml"
        if not manifest.exists():
            self.cluster.objects.pop(key, None)
            return False
        pod = yaml.safe_load(manifest.read_text())
        digest = hashlib.sha256(json.dumps([name, pod], default=str).encode()).hexdigest()[:32]
        hashes = {"kubernetes.io/config.hash": digest, "kubernetes.io/config.mirror": digest}
        annotations = {**(pod["metadata"].get("annotations") or {}), **hashes}
        self._digests[name] = digest
        self._reads[digest] = self._reads.get(digest, 0) + 1
        has_config = any(word.startswith("--config=") for word in pod["spec"]["containers"][0]["command"])
        can_start = self._can_start(pod) and not (has_config and name in self.failing_names)
        is_ready = can_start and self._reads[digest] > self.failing_reads
        state: dict[str, Any] = {"running": {}} if is_ready else {"waiting": {"reason": "CrashLoopBackOff"}}
        status = {"name": "kube-scheduler", "ready": is_ready, "restartCount": 1 if can_start else 3, "state": state}
        self.cluster.objects.pop(key, None)
        pod["metadata"].pop("creationTimestamp", None)
        pod["metadata"].update(name=key[2], annotations=annotations)
        pod["spec"]["nodeName"] = name
        self.cluster.put({**pod, "status": {"containerStatuses": [status]}})
        return is_ready

    def _can_schedule(self, name: str) -> bool:
        manifest = self.folders[name] / "manifests" / "kube-scheduler.yaml"
        words = yaml.safe_load(manifest.read_text())["spec"]["containers"][0]["command"] if manifest.exists() else []
        return not any(word.startswith("--config=") and "dead" in Path(word[9:]).read_text() for word in words)

    def _can_start(self, pod: dict[str, Any]) -> bool:
        for word in pod["spec"]["containers"][0]["command"]:
            if word.startswith("--config="):
                file = Path(word.partition("=")[2])
                if not file.exists() or "broken" in file.read_text():
                    return False
        return not self.down
