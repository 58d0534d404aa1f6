# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles refuse before any change: a sentence with cause and remedy for each reason."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

CONTAINERD_PATH = "/etc/containerd/config.toml"
#: How a node names its runtime in containerRuntimeVersion.
SCHEMES = {"containerd": "containerd", "crio": "cri-o", "docker": "docker"}

Facts = Mapping[str, Any]


def find_refusals(subjects: Mapping[str, Facts]) -> list[str]:
    """Return the sentences on each of the subjects in their order. Raises KeyError for an unknown subject or a missing fact."""
    return [sentence for subject, facts in subjects.items() for sentence in CHECKS[subject](facts)]


def check_platform(facts: Facts) -> Iterator[str]:
    """Yield why the host's processor or distribution is not supported."""
    if facts["architecture"] not in facts["processors"]:
        yield (
            f"the processor architecture {facts['architecture']} is not supported; use a host with "
            f"{' or '.join(facts['processors'])}."
        )
    if not facts["allow_unsupported"] and not {"*", facts["major_version"]} & set(facts["releases"]):
        yield (
            f"{facts['distribution']} {facts['major_version']} is not supported; use a distribution and a release that the guide on "
            "support lists, or set gpu_preflight_allow_unsupported to try it."
        )


def check_runtime(facts: Facts) -> Iterator[str]:
    """Yield why pods would not get the NVIDIA runtime of this container runtime. *kubelet* is what container_runtime_info reports."""
    name, daemon, endpoint = facts["name"], facts["kubelet"]["daemon"], facts["kubelet"]["endpoint"] or ""
    # The kubelet of these distributions uses their own containerd, even where another one is installed.
    if name == "containerd" and facts["hint"] and facts["config_path"] == CONTAINERD_PATH:
        yield (
            f"{facts['distribution']} brings its own containerd; {facts['hint']}, or set containerd_nvidia_config_path and "
            "containerd_nvidia_service to the containerd that the kubelet uses."
        )
    if daemon not in (None, name):
        yield (
            f"container_runtime is {name}, but the kubelet uses {endpoint}, so that pods would not get the NVIDIA runtime; "
            "leave container_runtime out."
        )
    used, socket = normalize_socket(endpoint), normalize_socket(facts["socket"])
    # With cri-dockerd, the kubelet's socket is not Docker's.
    if daemon == name != "docker" and used != socket:
        yield (
            f"the kubelet uses {used}, and not {socket}, whose daemon would get the NVIDIA runtime; set {name}_nvidia_socket, _service "
            "and _config_path to the daemon that the kubelet uses."
        )


def normalize_socket(address: str) -> str:
    """Return the path of a socket without its scheme, below /run."""
    path = address[len("unix://") :] if address.startswith("unix://") else address
    return path[len("/var") :] if path.startswith("/var/run/") else path


def check_gpus(facts: Facts) -> Iterator[str]:
    """Yield why the GPUs are not usable. The *error* of nvml_facts names cause and remedy."""
    if facts["require_gpu"] and not facts["found"] and not facts["error"]:
        yield (
            "no NVIDIA GPU was found; take the host out of the group of GPU nodes, look at its slots and its hypervisor, or set "
            "gpu_preflight_require_gpu to false for it."
        )
    elif facts["require_driver"] and (facts["require_gpu"] or facts["found"]) and not facts["driver_works"]:
        yield facts["error"]


def check_node(facts: Facts) -> Iterator[str]:
    """Yield why the host's node cannot get GPU pods. Without an answer of the API server, nothing is known of nodes."""
    name, runtime = facts["name"], facts["runtime"]
    if facts["error"]:
        yield facts["error"]
    if len(facts["hosts"]) != 1:
        yield (
            f"{' and '.join(facts['hosts'])} have the same node name {name}; give each host a name of its own, or a gpu_node_name."
        )
    if not facts["exists"]:
        yield (
            f"the cluster has no node {name}; join the host to the cluster, or set gpu_node_name to the name of its node."
        )
    if not facts["reported"].startswith(f"{SCHEMES[runtime]}://"):
        yield (
            f"the kubelet of node {name} uses {facts['reported'] or 'a runtime that it does not report'} and not {runtime}, so that pods "
            "would not get the NVIDIA runtime; set container_runtime to the one that it uses, or take the host out of the group of GPU nodes."
        )


def check_device_plugin(facts: Facts) -> Iterator[str]:
    """Yield why NVIDIA's device plugin cannot be deployed for these hosts. *nodes* are the rows of gpu_nodes_info.

    Nodes that are *leaving* lose the device plugin of their strategy before. Pods of the *adopted* DaemonSet lack the label until they are replaced.
    """
    known = {node["name"] for node in facts["nodes"] if node["known"]}
    unknown = [host for host in facts["hosts"] if host["node"] not in known]
    if unknown:
        yield (
            f"Host {', '.join(host['host'] for host in unknown)}: the cluster has no node {', '.join(host['node'] for host in unknown)}, "
            "so join the host first or set gpu_node_name to its Kubernetes name."
        )
    operated = [node["name"] for node in facts["nodes"] if node["gpu_operator"]]
    if operated:
        yield (
            f"Node {', '.join(operated)}: NVIDIA's GPU Operator deploys the device plugin here, so leave this role out, or set the node's "
            "label nvidia.com/gpu.deploy.device-plugin to false first."
        )
    conflicts = {
        node["name"]: node["unmanaged_plugins"]
        for node in facts["nodes"]
        if node["name"] not in facts["leaving"] and node["unmanaged_plugins"] not in ([], facts["adopted"])
    }
    if conflicts:
        plugins = dict.fromkeys(plugin for found in conflicts.values() for plugin in found)
        yield (
            f"Node {', '.join(conflicts)}: its GPUs are already advertised by {', '.join(plugins)}, and two device plugins would allocate the "
            "same GPUs twice, so remove that one first."
        )


CHECKS = {
    "platform": check_platform,
    "runtime": check_runtime,
    "gpus": check_gpus,
    "node": check_node,
    "device_plugin": check_device_plugin,
}
