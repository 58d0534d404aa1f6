# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Ansible inventory of a lab, as an administrator would write it for these machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from . import cluster, images, nodes
from .packages import KEY
from .settings import Node, Settings
from .standins.archive import image_names
from .standins.build import CUDA_SAMPLE, DEVICE_PLUGIN, GPUSHARE_DEVICE_PLUGIN, GPUSHARE_EXTENDER


def path(settings: Settings) -> Path:
    """Where the inventory file is."""
    return settings.state / "inventory.yml"


def _image(settings: Settings, stand_in: str, ending: str) -> dict[str, str]:
    """Registry, repository and tag: of the user's own archive where one fits, else of the stand-in."""
    names = [name for archive in settings.given_archives for name in image_names(archive)]
    chosen = next((name for name in names if name.rsplit(":", 1)[0].endswith(ending)), stand_in)
    repository, tag = chosen.rsplit(":", 1)
    registry, repository = repository.split("/", 1)
    return {"registry": registry, "repository": repository, "tag": tag}


def _prefixed(prefix: str, values: dict[str, str]) -> dict[str, str]:
    return {f"{prefix}_{key}": value for key, value in values.items()}


def _notes(settings: Settings) -> list[str]:
    simulated = [f"{node.name}: {node.gpus}" for node in settings.nodes if node.gpus]
    library = f"the library of LAB_NVML ({settings.nvml.name})" if settings.nvml else "the lab's simulated NVML library"
    return [f"GPUs below NVML are simulated: {library}, device nodes and a PCI tree ({', '.join(simulated)})."]


def _host(settings: Settings, node: Node) -> dict[str, str]:
    return {"ansible_host": settings.address(node)}


def write(settings: Settings, machines: list[Node], *, with_cluster: bool) -> Path:
    """Write the inventory of MACHINES; returns its path."""
    known = nodes.known_hosts(settings, machines)
    variables: dict[str, Any] = {
        "ansible_user": "root",
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_ssh_private_key_file": str(nodes.keys(settings)),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={known} -o StrictHostKeyChecking=yes",
        "nvidia_container_toolkit_repository": {
            "url": "file:/srv/lab/apt",
            "suite": "./",
            "key_path": f"/srv/lab/apt/{KEY}",
        },
    }
    if with_cluster:
        variables.update(
            gpu_kubeconfig=str(cluster.kubeconfig(settings)),
            gpu_verify_notes=_notes(settings),
            gpu_verify_report_path=str(settings.state / "gpu-report.json"),
            **_prefixed("k8s_device_plugin_image", _image(settings, DEVICE_PLUGIN, "nvidia/k8s-device-plugin")),
            **_prefixed("gpu_smoke_test_image", _image(settings, CUDA_SAMPLE, "nvidia/k8s/cuda-sample")),
            **_prefixed(
                "gpushare_device_plugin_image", _image(settings, GPUSHARE_DEVICE_PLUGIN, "k8s-gpushare-plugin")
            ),
            **_prefixed("gpushare_extender_image", _image(settings, GPUSHARE_EXTENDER, "k8s-gpushare-schd-extender")),
            kube_scheduler_extender_probe_image=images.kubeadm_names(settings)["pause"],
        )
    groups = {
        "kube_control_plane": {"hosts": {node.name: _host(settings, node) for node in machines if node.control_plane}},
        "gpu_nodes": {"hosts": {node.name: _host(settings, node) for node in machines if not node.control_plane}},
    }
    target = path(settings)
    header = "# Written by the lab; see tests/lab/README.md.\n---\n"
    target.write_text(header + yaml.safe_dump({"all": {"vars": variables, "children": groups}}, sort_keys=False))
    return target
