# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Ansible inventory of a lab, as an administrator would write it for these machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from . import cluster, images, nodes
from .fakes.archive import image_names
from .fakes.build import (
    AMD_DEVICE_PLUGIN,
    AMD_NODE_LABELLER,
    CLINFO,
    CUDA_SAMPLE,
    DEVICE_PLUGIN,
    GPUSHARE_DEVICE_PLUGIN,
    GPUSHARE_EXTENDER,
    INTEL_DEVICE_PLUGIN,
    NANO_GPU_AGENT,
    NANO_GPU_EXTENDER,
    ROCMINFO,
)
from .packages import KEY
from .settings import Node, Settings


def path(settings: Settings) -> Path:
    """Where the inventory file is."""
    return settings.state / "inventory.yml"


# Variables of an image -> possible ends of its repository, and the fake without an archive of the user.
_IMAGES = {
    "k8s_device_plugin_image": (("nvidia/k8s-device-plugin",), DEVICE_PLUGIN),
    "k8s_device_plugin_amd_image": (("rocm/k8s-device-plugin",), AMD_DEVICE_PLUGIN),
    "gpu_feature_discovery_amd_image": (("rocm/k8s-device-plugin",), AMD_NODE_LABELLER),
    "k8s_device_plugin_intel_image": (("intel/intel-gpu-plugin",), INTEL_DEVICE_PLUGIN),
    "gpu_smoke_test_image": (("nvidia/k8s/cuda-sample",), CUDA_SAMPLE),
    "gpushare_device_plugin_image": (("k8s-gpushare-plugin",), GPUSHARE_DEVICE_PLUGIN),
    "gpushare_extender_image": (("k8s-gpushare-schd-extender",), GPUSHARE_EXTENDER),
    "nano_gpu_agent_image": (("nano-gpu-agent", "elastic-gpu-agent"), NANO_GPU_AGENT),
    "nano_gpu_extender_image": (("nano-gpu-scheduler", "elastic-gpu-scheduler"), NANO_GPU_EXTENDER),
}


# Vendor -> the same for the image of its smoke test, which has one variable for all vendors.
_TEST_IMAGES = {
    "amd": (("rocm/dev-ubuntu-24.04",), ROCMINFO),
    "intel": (("intel/intel-opencl-icd",), CLINFO),
}


_LABELLER = ":labeller-"
# gpushare's published extender, which binds no pod with a runtime class (gpushare_extender_keeps_runtime_class).
_BINDS_NO_RUNTIME_CLASS = "1.11-d170d8a"


def _split_image(prefix: str, image: str) -> dict[str, str]:
    """Registry, repository and tag of an image, as variables whose names begin with PREFIX."""
    name, tag = image.rsplit(":", 1)
    registry, repository = name.split("/", 1)
    return {f"{prefix}_registry": registry, f"{prefix}_repository": repository, f"{prefix}_tag": tag}


def image_variables(settings: Settings) -> dict[str, Any]:
    """Registry, repository and tag of each image, of the user's archive or else of the fake; and further variables of the image."""
    given = [name for archive in settings.given_archives for name in image_names(archive)]

    def choose(endings: tuple[str, ...], fake: str) -> str:
        # Two programs of AMD differ in their tags alone.
        alike = [name for name in given if (_LABELLER in name) == (_LABELLER in fake)]
        return next((name for name in alike if name.rsplit(":", 1)[0].endswith(endings)), fake)

    variables: dict[str, Any] = {
        "gpu_smoke_test_images": {vendor: choose(*known) for vendor, known in _TEST_IMAGES.items()}
    }
    for prefix, known in _IMAGES.items():
        chosen = choose(*known)
        variables |= _split_image(prefix, chosen)
        if chosen == NANO_GPU_AGENT:
            # The nodes have no host binaries: their toolkit is CDI only.
            variables["nano_gpu_agent_needs_host_binaries"] = False
    if variables["gpushare_extender_image_tag"] == _BINDS_NO_RUNTIME_CLASS:
        variables["containerd_nvidia_set_default"] = True
    return variables


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
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={known} -o StrictHostKeyChecking=yes -o ConnectionAttempts=20",
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
            **image_variables(settings),
            **_split_image("kube_scheduler_extender_probe_image", images.kubeadm_names(settings)["pause"]),
        )
    groups = {
        "kube_control_plane": {"hosts": {node.name: _host(settings, node) for node in machines if node.control_plane}},
        "gpu_nodes": {"hosts": {node.name: _host(settings, node) for node in machines if not node.control_plane}},
    }
    target = path(settings)
    header = "# Written by the lab; see tests/lab/README.md.\n---\n"
    target.write_text(header + yaml.safe_dump({"all": {"vars": variables, "children": groups}}, sort_keys=False))
    return target
