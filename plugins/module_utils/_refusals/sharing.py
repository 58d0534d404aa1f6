# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles refuse of device plugins, and where pods share GPUs."""

from __future__ import annotations

import re
from typing import Any, Iterator, Mapping, Sequence

from .._edge import list_notes
from .._report.build import count_products
from .._vendors import SERVED

Facts = Mapping[str, Any]


def check_device_plugin(facts: Facts) -> Iterator[str]:
    """Yield why a device plugin cannot be deployed for these hosts. *nodes* are the rows of gpu_nodes_info, *owners* what it names.

    Nodes that are *leaving* lose the device plugin of their strategy before. Pods of the *adopted* DaemonSet lack the label until they are replaced.
    """
    known = {node["name"] for node in facts["nodes"] if node["known"]}
    unknown = [host for host in facts["hosts"] if host["node"] not in known]
    if unknown:
        yield (
            f"Host {', '.join(host['host'] for host in unknown)}: the cluster has no node {', '.join(host['node'] for host in unknown)}, "
            "so join the host first or set gpu_node_name to its Kubernetes name."
        )
    if facts["owners"]:
        yield (
            f"{' and '.join(facts['owners'])} already offers the GPUs of {facts['vendor']}, and two owners would allocate the same GPUs twice; "
            "remove that first, or leave the vendor out of gpu_vendors for all hosts."
        )
    operated = [node["name"] for node in facts["nodes"] if "device_plugin" in node["gpu_operator"]]
    if operated and facts["vendor"] == SERVED.title:
        yield (
            f"Node {', '.join(operated)}: NVIDIA's GPU Operator deploys the device plugin here, so leave this role out, or set the node's "
            "label nvidia.com/gpu.deploy.device-plugin, or spec.devicePlugin.enabled of the ClusterPolicy, to false first."
        )
    claimed = [node["name"] for node in facts["nodes"] if "dra_driver" in node["gpu_operator"]]
    if claimed and facts["vendor"] == SERVED.title:
        yield (
            f"Node {', '.join(claimed)}: the GPUCluster of NVIDIA's GPU Operator has a DRA driver allocate the GPUs here, and two owners would "
            "allocate the same GPUs twice, so leave this role out, or set the node's label nvidia.com/gpu.deploy.dra-driver to false first."
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


def check_edge(facts: Facts) -> Iterator[str]:
    """Yield what is different on nodes of the edge frameworks *names*, for a warning."""
    for name in sorted(set(facts["names"])):
        yield from list_notes(name)


def check_extender_url(facts: Facts) -> Iterator[str]:
    """Yield why kube-scheduler cannot call the extender of the *strategy* at *url*, which is empty for its own address.

    kube-scheduler sends no ServiceAccount token to extenders, so that the API server's proxy requires a client certificate.
    """
    name, url = f"{facts['strategy']}_extender_url", facts["url"]
    if not url:
        return
    if not _URL.match(url):
        yield (
            f"{name} is {url}, which is not a URL; give one such as http://10.96.0.20:{facts['port']}{facts['path']}, or leave it out for the present "
            "extender's."
        )
        return
    proxied = _API_PROXY.match(url)
    if not proxied:
        return
    service = f"services/http:{facts['service']}:{facts['port']}"
    right = f"https://{proxied.group(1)}/api/v1/namespaces/{facts['namespace']}/{service}/proxy{facts['path']}"
    if facts["on_host"]:
        yield (
            f"{name} leads through the API server's proxy to a Service, and the extender has none; set {facts['strategy']}_extender_topology to service, or "
            f"leave {name} out."
        )
    if url.rstrip("/") != right or not facts["has_certificate"]:
        yield (
            f"{name} is {url}, and the API server's proxy answers over https alone, to a client certificate of a user that may create services/proxy, and at "
            f"{right}; set that with {facts['strategy']}_extender_tls_config, or leave {name} out for the Service's address."
        )


_URL = re.compile(r"https?://[^/\s]+(/\S*)?\Z")
_API_PROXY = re.compile(r"https?://([^/\s]+)/api/v1/(?:namespaces|proxy)/\S*(?:/proxy|services/)")


def check_unequal_gpus(facts: Facts) -> Iterator[str]:
    """Yield what to do on a host whose *gpus*, those of nvml_facts, differ in product or memory; nothing where all are equal or lost."""
    products = count_products(gpu for gpu in facts["gpus"] if not gpu.get("lost"))
    if len(products) > 1:
        named = ", ".join(
            f"{each['count']} x {each['name'] or 'GPU'}{_name_size(each['memory_total_bytes'])}" for each in products
        )
        yield (
            f"has GPUs of different kinds ({named}), and a pod that requests one gets any of them, because node labels, node selectors and "
            "CUDA_VISIBLE_DEVICES do not select among the GPUs of a node; use nodes with GPUs of one kind, or a DRA driver, whose claims name product "
            "and memory."
        )


def _name_size(memory: int | None) -> str:
    return f" with {round(memory / 2**30)} GiB" if memory else ""


def check_mps(facts: Facts) -> Iterator[str]:
    """Yield why MPS cannot share the GPUs, which are those of nvml_facts, among *replicas* clients each.

    *program* is the path of the driver's control program. *handler* is the runtime that pods of the control daemon get, *nvidia* what it has to be.
    GPUs that are *leaving* MIG have another mode before the daemon starts. *method* is how the device plugin is deployed.
    """
    # The chart has one node affinity for both, and the plugin is off a node until the daemon limits its clients.
    if facts["method"] == "helm":
        yield (
            "k8s_device_plugin_method is helm, and NVIDIA's chart cannot start the control daemon before the device plugin; set k8s_device_plugin_method "
            "to manifest, or another gpu_sharing_strategy for this host."
        )
    working = [gpu for gpu in facts["gpus"] if not gpu.get("lost")]
    if working and facts["source"] == "pci":
        yield "its GPUs have no working driver; install or repair the driver first."
        return
    sliced = [gpu for gpu in working if gpu.get("mig_mode") == "enabled"]
    if sliced and not facts["leaving"]:
        yield f"{_name_gpus(sliced)} in MIG mode, which MPS does not support; switch it off (nvidia-smi -mig 0), or set gpu_sharing_strategy to mig."
    old = [gpu for gpu in working if _read_capability(gpu) < (7, 0)]
    if old:
        yield (
            f"{_name_gpus(old)} of a compute capability below 7.0, where MPS limits neither memory nor threads; set another gpu_sharing_strategy "
            "for this host."
        )
    most = min([16 if _read_capability(gpu) < (7, 5) else 48 for gpu in working] or [48])
    if facts["replicas"] > most:
        yield (
            f"{facts['replicas']} pods are to share a GPU, and MPS serves at most {most} on a GPU of this host; set gpu_sharing_replicas to {most} or less."
        )
    if not facts["program"]:
        yield (
            "nvidia-cuda-mps-control is missing, which NVIDIA's runtime adds to the pod of the control daemon; install the driver's package that has it "
            "(nvidia-cuda-mps on Debian), and regenerate the CDI specification if there is one."
        )
    if facts["handler"] != facts["nvidia"]:
        yield (
            f"pods of the control daemon get the runtime {facts['handler'] or 'of a daemon that does not answer'}, which adds no driver; set "
            "k8s_device_plugin_runtime_class, or make NVIDIA's runtime the default (set_default of the runtime's role)."
        )


def check_client_failures(facts: Facts) -> Iterator[str]:
    """Yield where users have found fewer clients than MPS should serve: https://github.com/NVIDIA/k8s-device-plugin/issues/1118."""
    for gpu in {gpu.get("name"): gpu for gpu in facts["gpus"]}.values():
        known = [model for model in WORKING_CLIENTS if model in str(gpu.get("name")).split()]
        if known and facts["replicas"] > WORKING_CLIENTS[known[0]]:
            yield (
                f"with more than {WORKING_CLIENTS[known[0]]} pods on one {known[0]}, clients of MPS failed for other users (NVIDIA/k8s-device-plugin#1118); "
                f"try {facts['replicas']} before you rely on them."
            )


def check_mig_manager(facts: Facts) -> Iterator[str]:
    """Yield why the MIG manager of NVIDIA's GPU Operator has not applied its configuration, by the node's label with its result.

    *error* is the one of the last reading of the node; empty if it could be read.
    """
    log = f"kubectl logs -n {facts['namespace']} -l app=nvidia-mig-manager"
    if facts["error"]:
        yield (
            f"after {facts['timeout']} s, the node cannot be read, so that it is not known whether the GPU Operator's MIG manager has applied "
            f"{facts['config']}; the API server's client reports: {facts['error']}; check the API server and the permissions, and run again."
        )
    elif facts["state"] == "failed":
        yield (
            f"the GPU Operator's MIG manager could not apply {facts['config']}; read its log ({log}), and correct gpu_sharing_mig_config or what "
            "the log names."
        )
    elif facts["state"] != "success":
        yield (
            f"after {facts['timeout']} s, the GPU Operator's MIG manager has not applied {facts['config']} "
            f"({'it reports ' + facts['state'] if facts['state'] else 'it reports nothing'}); read its log ({log}), check that its pod runs on the node, "
            "and run again, with a larger gpu_operator_mig_timeout if it only needs more time."
        )


#: By model, the number of clients on one GPU that has worked.
WORKING_CLIENTS = {"A16": 5, "T4": 21, "A30": 30}


def check_gpu_users(facts: Facts) -> Iterator[str]:
    """Yield which processes compute on the GPUs beside MPS, which would get no GPU or keep MPS off it. Their names are untrusted input."""
    users = {
        f"{_clean(process.get('name'))} (pid {process['pid']})": None
        for gpu in facts["gpus"]
        for process in gpu.get("processes") or []
        if process["type"] != "graphics" and not str(process.get("name")).startswith(MPS_PROGRAMS)
    }
    if users:
        more = f" and {len(users) - MOST_NAMED} more" if len(users) > MOST_NAMED else ""
        yield f"{', '.join(list(users)[:MOST_NAMED])}{more} computes on its GPUs, which MPS takes for its clients alone; end it first."


#: How the kernel shortens the names of the programs of MPS.
MPS_PROGRAMS = "nvidia-cuda-mps"
MOST_NAMED = 5


def _clean(name: str | None) -> str:
    return "".join(character if " " <= character <= "~" else "?" for character in name or "a process")[:15]


def _name_gpus(gpus: Sequence[Facts]) -> str:
    """Return the beginning of a sentence, up to its verb."""
    numbers = ", ".join(str(gpu.get("index")) for gpu in gpus)
    return f"GPU {numbers} ({gpus[0].get('name')}) {'is' if len(gpus) == 1 else 'are'}"


def _read_capability(gpu: Facts) -> tuple[int, ...]:
    """Return the compute capability; that of a new GPU if it is unknown."""
    return tuple(map(int, str(gpu.get("compute_capability") or "99.0").split(".")))


CHECKS = {
    "device_plugin": check_device_plugin,
    "edge": check_edge,
    "extender_url": check_extender_url,
    "unequal_gpus": check_unequal_gpus,
    "mps": check_mps,
    "client_failures": check_client_failures,
    "gpu_users": check_gpu_users,
    "mig_manager": check_mig_manager,
}
