# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The refusals of hosts and of the device plugin before any change."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._checks.registry import BY_ID
from ansible_collections.gpu.kubernetes.plugins.module_utils._refusals import find_refusals

#: Facts and parameters of each subject with which nothing is refused.
ACCEPTED: dict[str, dict[str, Any]] = {
    "platform": {
        "allow_unsupported": False,
        "architecture": "x86_64",
        "processors": ["x86_64", "aarch64"],
        "distribution": "Debian",
        "major_version": "12",
        "releases": ["12", "13"],
    },
    "runtime": {
        "name": "containerd",
        "kubelet": {"daemon": "containerd", "endpoint": "unix:///run/containerd/containerd.sock"},
        "own": {},
        "socket": "/run/containerd/containerd.sock",
    },
    "gpus": {
        "found": True,
        "others": False,
        "error": "",
        "driver_works": True,
        "require_gpu": True,
        "require_driver": True,
    },
    "health": {"nvml": {"source": "nvml", "gpus": [{"index": 0, "recovery_action": "none"}]}},
    "unverified_api": {"host": "https://api.example.com:6443", "verify": "True"},
    "vgpu_unlock": {"path": ""},
    "vgpu_license": {"token": True, "daemon": True},
    "node": {
        "name": "w1",
        "error": "",
        "hosts": ["w1"],
        "exists": True,
        "reported": "containerd://2.1.4",
        "runtime": "containerd",
    },
    "device_plugin": {
        "hosts": [{"host": "h1", "node": "w1"}],
        "nodes": [{"name": "w1", "known": True, "gpu_operator": [], "unmanaged_plugins": []}],
        "vendor": "NVIDIA",
        "owners": [],
        "leaving": [],
        "adopted": ["kube-system/plugin"],
    },
    "edge": {"names": ["", ""]},
    "extender_url": {
        "strategy": "nano_gpu",
        "url": "",
        "port": 39999,
        "path": "/scheduler",
        "namespace": "kube-system",
        "service": "nano-gpu-scheduler",
        "on_host": False,
        "has_certificate": False,
    },
    "unequal_gpus": {"gpus": []},
}
PROXIED = "https://10.0.0.1:6443/api/v1/namespaces/kube-system/services/http:nano-gpu-scheduler:39999/proxy/scheduler"
#: What manuals write.
BY_HAND = "http://10.0.0.1:6443/api/v1/namespaces/kube-system/services/nano-gpu-scheduler/proxy/scheduler"
K80, P100 = (
    {"name": name, "memory_total_bytes": size * 2**30} for name, size in (("Tesla K80", 12), ("Tesla P100", 16))
)
BROKEN = {"error": "the driver does not answer; install it again.", "driver_works": False}
#: The containerd that a Kubernetes distribution brings.
OWN = {"socket": "/run/second.sock"}
DOCKERD = {"daemon": "docker", "endpoint": "unix:///run/cri-dockerd.sock"}
SECOND = {"daemon": "containerd", "endpoint": "unix:///var/run/second.sock"}
NONE = {"daemon": None, "endpoint": None}


def make_nodes(**plugins: list[str]) -> list[dict[str, Any]]:
    """Rows of gpu_nodes_info for nodes with these device plugins."""
    return [
        {"name": name, "known": True, "gpu_operator": [], "unmanaged_plugins": found} for name, found in plugins.items()
    ]


@pytest.mark.parametrize(
    ("subject", "facts", "sentences"),
    [
        *((subject, {}, []) for subject in ACCEPTED),
        (
            "platform",
            {"architecture": "riscv64", "major_version": "3"},
            [
                "the processor architecture riscv64 is not supported; use a host with x86_64 or aarch64.",
                (
                    "Debian 3 is not supported; use a distribution and a release that the guide on support lists, or set "
                    "gpu_preflight_allow_unsupported to try it."
                ),
            ],
        ),
        ("platform", {"major_version": "3", "allow_unsupported": True}, []),
        ("platform", {"major_version": "n/a", "releases": ["*"]}, []),
        ("runtime", {"own": OWN, "kubelet": NONE}, []),
        ("runtime", {"own": OWN, "kubelet": SECOND}, []),
        ("runtime", {"own": OWN, "name": "docker", "kubelet": DOCKERD, "socket": "/run/docker/docker.sock"}, []),
        (
            "runtime",
            {"own": OWN},
            [
                (
                    "the kubelet uses /run/containerd/containerd.sock, and not /run/second.sock, whose daemon would get the NVIDIA runtime; set "
                    "containerd_nvidia_socket, _service and _config_path to the daemon that the kubelet uses."
                )
            ],
        ),
        (
            "runtime",
            {"name": "docker"},
            [
                (
                    "container_runtime is docker, but the kubelet uses unix:///run/containerd/containerd.sock, so that pods would not get the "
                    "NVIDIA runtime; leave container_runtime out."
                )
            ],
        ),
        (
            "runtime",
            {"kubelet": SECOND},
            [
                (
                    "the kubelet uses /run/second.sock, and not /run/containerd/containerd.sock, whose daemon would get the NVIDIA runtime; set "
                    "containerd_nvidia_socket, _service and _config_path to the daemon that the kubelet uses."
                )
            ],
        ),
        ("runtime", {"kubelet": SECOND, "socket": "/var/run/second.sock"}, []),
        ("runtime", {"kubelet": NONE}, []),
        # The API of another daemon than the requested one is reported once, not twice.
        (
            "runtime",
            {"kubelet": DOCKERD},
            [
                (
                    "container_runtime is containerd, but the kubelet uses unix:///run/cri-dockerd.sock, so that pods would not get the NVIDIA "
                    "runtime; leave container_runtime out."
                )
            ],
        ),
        (
            "gpus",
            {"found": False},
            [
                (
                    "no NVIDIA GPU was found; take the host out of the group of GPU nodes, look at its slots and its hypervisor, or set "
                    "gpu_preflight_require_gpu to false for it."
                )
            ],
        ),
        ("gpus", {"found": False, "require_gpu": False, "driver_works": False}, []),
        ("gpus", {**BROKEN, "found": False, "others": True}, []),
        ("gpus", {**BROKEN, "others": True}, [BROKEN["error"]]),
        ("gpus", BROKEN, [BROKEN["error"]]),
        ("gpus", {**BROKEN, "require_gpu": False}, [BROKEN["error"]]),
        ("gpus", {**BROKEN, "found": False}, [BROKEN["error"]]),
        ("gpus", {**BROKEN, "require_driver": False}, []),
        # Without a driver, nothing is known of the health.
        ("health", {"nvml": {"source": "pci", "error": BROKEN["error"], "gpus": []}}, []),
        (
            "health",
            {"nvml": {"source": "nvml", "gpus": [{"index": 0, "recovery_action": "gpu_reset"}]}},
            [f"the driver requires of GPU 0: gpu reset (hw.recovery); {BY_ID['hw.recovery'].remedy}."],
        ),
        # Some GPUs are lost, and the others work.
        ("gpus", {**BROKEN, "driver_works": True}, []),
        (
            "vgpu_unlock",
            {"path": "/usr/src/nvidia-535.54.06/nvidia/os-interface.c"},
            [
                (
                    "/usr/src/nvidia-535.54.06/nvidia/os-interface.c uses vgpu_unlock, which circumvents NVIDIA's licence, breaks signed kernel "
                    "modules, and shares GPUs among virtual machines and not among containers; remove it with the driver that it patches, and share "
                    "GPUs by gpu_sharing_strategy: time_slicing or mps."
                )
            ],
        ),
        (
            "vgpu_license",
            {"daemon": False},
            [
                (
                    "nvidia_driver_vgpu_license_token is set, and the driver has no nvidia-gridd, which only NVIDIA's guest driver for vGPU brings; "
                    "install that driver (method runfile with its installer, or its packages in nvidia_driver_packages), or leave the token out."
                )
            ],
        ),
        ("vgpu_license", {"token": False, "daemon": False}, []),
        (
            "node",
            {"error": "no answer.", "exists": False, "reported": ""},
            [
                "no answer.",
                "the cluster has no node w1; join the host to the cluster, or set gpu_node_name to the name of its node.",
                (
                    "the kubelet of node w1 uses a runtime that it does not report and not containerd, so that pods would not get the NVIDIA "
                    "runtime; set container_runtime to the one that it uses, or take the host out of the group of GPU nodes."
                ),
            ],
        ),
        (
            "node",
            {"hosts": ["w1", "w2"]},
            ["w1 and w2 have the same node name w1; give each host a name of its own, or a gpu_node_name."],
        ),
        ("node", {"runtime": "crio", "reported": "cri-o://1.34.0"}, []),
        (
            "node",
            {"runtime": "docker"},
            [
                (
                    "the kubelet of node w1 uses containerd://2.1.4 and not docker, so that pods would not get the NVIDIA runtime; set "
                    "container_runtime to the one that it uses, or take the host out of the group of GPU nodes."
                )
            ],
        ),
        *(
            (
                "unverified_api",
                {"verify": verify},
                [
                    (
                        f"K8S_AUTH_VERIFY_SSL is {verify}, so that whoever answers for api.example.com gets the token; enter the certificate authority of "
                        "the API server in the credential, or set K8S_AUTH_SSL_CA_CERT and K8S_AUTH_VERIFY_SSL=true."
                    )
                ],
            )
            # ansible-core 2.18 makes a boolean of the text.
            for verify in ("False", False, "no", "0")
        ),
        *(
            ("unverified_api", {"host": host, "verify": "False"}, [])
            for host in ("", "https://localhost:6443", "https://127.0.0.1:6443", "https://[::1]:6443")
        ),
        ("unverified_api", {"verify": ""}, []),
        (
            "device_plugin",
            {"hosts": [{"host": "h1", "node": "w1"}, {"host": "h2", "node": "w2"}, {"host": "h3", "node": "w3"}]},
            [
                "Host h2, h3: the cluster has no node w2, w3, so join the host first or set gpu_node_name to its Kubernetes name.",
            ],
        ),
        (
            "device_plugin",
            {"nodes": [{**node, "gpu_operator": ["driver", "device_plugin"]} for node in make_nodes(w1=[], w2=[])]},
            [
                (
                    "Node w1, w2: NVIDIA's GPU Operator deploys the device plugin here, so leave this role out, or set the node's label "
                    "nvidia.com/gpu.deploy.device-plugin, or spec.devicePlugin.enabled of the ClusterPolicy, to false first."
                )
            ],
        ),
        (
            "device_plugin",
            {
                "vendor": "AMD",
                "owners": ["AMD's GPU operator (DeviceConfig kube-amd-gpu/default)"],
                # A mixed node, whose other GPUs NVIDIA's GPU Operator offers.
                "nodes": [{**node, "gpu_operator": ["device_plugin", "dra_driver"]} for node in make_nodes(w1=[])],
            },
            [
                (
                    "AMD's GPU operator (DeviceConfig kube-amd-gpu/default) already offers the GPUs of AMD, and two owners would allocate the same "
                    "GPUs twice; remove that first, or leave the vendor out of gpu_vendors for all hosts."
                )
            ],
        ),
        (
            "device_plugin",
            {"nodes": [{**node, "gpu_operator": ["dra_driver"]} for node in make_nodes(w1=[])]},
            [
                (
                    "Node w1: the GPUCluster of NVIDIA's GPU Operator has a DRA driver allocate the GPUs here, and two owners would allocate the same "
                    "GPUs twice, so leave this role out, or set the node's label nvidia.com/gpu.deploy.dra-driver to false first."
                )
            ],
        ),
        (
            "device_plugin",
            {
                "nodes": make_nodes(w1=["a/x", "b/y"], w2=["b/y"], w3=["a/x"], w4=["kube-system/plugin"]),
                "leaving": ["w3"],
            },
            [
                (
                    "Node w1, w2: its GPUs are already advertised by a/x, b/y, and two device plugins would allocate the same GPUs twice, so "
                    "remove that one first."
                )
            ],
        ),
        (
            "device_plugin",
            {"nodes": make_nodes(w1=["kube-system/plugin"]), "adopted": []},
            [
                (
                    "Node w1: its GPUs are already advertised by kube-system/plugin, and two device plugins would allocate the same GPUs twice, so "
                    "remove that one first."
                )
            ],
        ),
    ],
)
def test_find_refusals_returns_the_sentences_on_a_subject(
    subject: str, facts: dict[str, Any], sentences: list[str]
) -> None:
    assert find_refusals({subject: {**ACCEPTED[subject], **facts}}) == sentences


def test_find_refusals_returns_the_sentences_in_the_order_of_the_subjects() -> None:
    platform = {**ACCEPTED["platform"], "architecture": "riscv64"}
    runtime = {**ACCEPTED["runtime"], "name": "docker"}
    found = find_refusals({"runtime": runtime, "platform": platform})
    assert [sentence.split()[0] for sentence in found] == ["container_runtime", "the"]
    with pytest.raises(KeyError):
        find_refusals({"weather": {}})


def refuse(subject: str, **facts: Any) -> list[str]:
    return find_refusals({subject: {**ACCEPTED[subject], **facts}})


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"url": "http://10.96.0.20:39999/scheduler"}, ""),
        ({"url": PROXIED, "has_certificate": True}, ""),
        ({"url": f"{PROXIED}/", "has_certificate": True}, ""),
        # kube-scheduler would be anonymous.
        ({"url": PROXIED}, "nano_gpu_extender_tls_config"),
        ({"url": BY_HAND}, f"and at {PROXIED}; set that"),
        ({"url": BY_HAND, "has_certificate": True}, f"and at {PROXIED}; set that"),
        # Without the port's name or number, the proxy finds no endpoint of a port that has a name.
        ({"url": BY_HAND.replace("http:", "https:", 1), "has_certificate": True}, f"and at {PROXIED}; set that"),
        ({"url": PROXIED, "has_certificate": True, "on_host": True}, "set nano_gpu_extender_topology to service"),
        ({"url": "10.96.0.20/scheduler"}, "which is not a URL; give one such as http://10.96.0.20:39999/scheduler"),
        ({"url": "http://"}, "which is not a URL"),
        # This path belongs to another server.
        ({"url": "https://lb.example.com/proxy/scheduler"}, ""),
    ],
)
def test_check_extender_url_offers_the_right_form(facts: dict[str, Any], words: str) -> None:
    sentences = refuse("extender_url", **facts)
    assert bool(sentences) is bool(words)
    assert words in "".join(sentences)


@pytest.mark.parametrize(
    ("gpus", "named"),
    [
        ([K80, K80], ""),
        ([K80, {**K80, "memory_total_bytes": 24 * 2**30}], "1 x Tesla K80 with 12 GiB, 1 x Tesla K80 with 24 GiB"),
        ([K80, P100, K80], "2 x Tesla K80 with 12 GiB, 1 x Tesla P100 with 16 GiB"),
        ([K80, {**P100, "lost": True}], ""),
        ([{}, {}], ""),
    ],
)
def test_check_unequal_gpus_names_kinds_and_remedies(gpus: list[dict[str, Any]], named: str) -> None:
    sentences = refuse("unequal_gpus", gpus=gpus)
    assert len(sentences) == bool(named)
    for sentence in sentences:
        assert f"({named})" in sentence
        assert "CUDA_VISIBLE_DEVICES" in sentence
        assert "DRA driver" in sentence


def test_check_edge_returns_each_note_once() -> None:
    once = refuse("edge", names=["superedge", "", "superedge"])
    assert once == refuse("edge", names=["superedge"])
    assert all(sentence.startswith("SuperEdge: ") for sentence in once)
