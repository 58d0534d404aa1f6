# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubeadm cluster on the lab's nodes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml

from . import images, nodes
from .progress import step
from .settings import Node, Settings
from .shell import LabError, run

_SERVICES = "10.96.0.0/16"
_CONFIGURATION = "/etc/kubernetes/lab-kubeadm.yaml"


def kubeconfig(settings: Settings) -> Path:
    """The administrator's kubeconfig on the controller."""
    return settings.state / "kubeconfig"


def _kubeadm_configuration(settings: Settings, control_plane: Node) -> bytes:
    kubeadm = f"kubeadm.k8s.io/{'v1beta4' if settings.minor >= 31 else 'v1beta3'}"
    kubelet: dict[str, Any] = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "cgroupDriver": "systemd",
        "failSwapOn": False,
        # a lab shares its disk with everything else on the machine
        "evictionHard": {"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"},
        "imageGCHighThresholdPercent": 100,
    }
    if settings.minor >= 31:
        kubelet["failCgroupV1"] = False
    documents: list[dict[str, Any]] = [
        {
            "apiVersion": kubeadm,
            "kind": "InitConfiguration",
            "localAPIEndpoint": {"advertiseAddress": settings.address(control_plane)},
            "nodeRegistration": {"name": control_plane.name, "imagePullPolicy": "Never"},
        },
        {
            "apiVersion": kubeadm,
            "kind": "ClusterConfiguration",
            "kubernetesVersion": f"v{settings.kubernetes}",
            "clusterName": settings.name,
            # no load balancer: the others join at the address of the first one
            **({"controlPlaneEndpoint": settings.address(control_plane)} if settings.control_planes > 1 else {}),
            "networking": {"serviceSubnet": _SERVICES},
        },
        kubelet,
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            # these sysctls belong to the machine, not to a node of the lab
            "conntrack": {"maxPerCore": 0, "min": 0},
        },
    ]
    return yaml.safe_dump_all(documents, sort_keys=False).encode()


def start(settings: Settings, archives: dict[str, Path], fakes: dict[str, Path]) -> None:
    """kubeadm init on the control plane, kubeadm join on the workers."""
    control_plane, *others = settings.nodes
    control_planes = [node for node in others if node.control_plane]
    workers = [node for node in others if not node.control_plane]
    on_workers = [archives["kube-proxy"], archives["pause"]]
    on_all_nodes = [*fakes.values(), *settings.given_archives]
    with step("import images into the nodes"):
        nodes.run_on_all(
            lambda node: images.load(
                settings, node, [*(archives.values() if node.control_plane else on_workers), *on_all_nodes]
            ),
            settings.nodes,
        )
    with step(f"kubeadm init (Kubernetes {settings.kubernetes})"):
        nodes.put(control_plane, {_CONFIGURATION: _kubeadm_configuration(settings, control_plane)})
        skipped = "preflight,addon/coredns,show-join-command"
        nodes.execute(control_plane, "kubeadm", "init", f"--config={_CONFIGURATION}", f"--skip-phases={skipped}")
        nodes.execute(control_plane, "systemctl", "enable", "--quiet", "kubelet")
        target = kubeconfig(settings)
        target.touch(mode=0o600)
        target.write_text(nodes.execute(control_plane, "cat", "/etc/kubernetes/admin.conf"))
    join = nodes.execute(control_plane, "kubeadm", "token", "create", "--print-join-command").split()
    if control_planes:
        with step(f"kubeadm join of {len(control_planes)} control planes"):
            output = nodes.execute(control_plane, "kubeadm", "init", "phase", "upload-certs", "--upload-certs")
            as_control_plane = ["--control-plane", "--certificate-key", output.split()[-1]]
            # one after the other: etcd takes one new member at a time
            for node in control_planes:
                _join(node, [*join, *as_control_plane, "--apiserver-advertise-address", settings.address(node)])
    with step(f"kubeadm join of {len(workers)} workers"):
        nodes.run_on_all(lambda node: _join(node, join), workers)
    with step("wait until all nodes are Ready"):
        kubectl(settings, "wait", "node", "--all", "--for=condition=Ready", "--timeout=300s")


def _join(node: Node, command: list[str]) -> None:
    nodes.execute(node, *command, "--skip-phases=preflight")
    nodes.execute(node, "systemctl", "enable", "--quiet", "kubelet")


def kubectl(settings: Settings, *words: str, check: bool = True) -> str:
    """Standard output of kubectl as the cluster's administrator."""
    command = settings.cache / "bin" / f"kubernetes-{settings.kubernetes}" / "kubectl"
    return run([command, *words], env={**os.environ, "KUBECONFIG": str(kubeconfig(settings))}, check=check)


def is_ready(settings: Settings) -> bool:
    """Whether the API server of this lab answers and is ready."""
    if not kubeconfig(settings).is_file():
        return False
    try:
        return kubectl(settings, "get", "--raw=/readyz", "--request-timeout=5s").strip() == "ok"
    except LabError:
        return False
