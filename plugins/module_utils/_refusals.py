# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles refuse or warn of before any change: a sentence with cause and remedy for each reason."""

from __future__ import annotations

import re
from typing import Any, Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from ._checks.health import PREFLIGHT, find_health
from ._distributions import USUAL_SOCKET
from ._edge import list_notes
from ._report.build import count_products
from ._vendors import SERVED

#: How a node names its runtime in containerRuntimeVersion.
SCHEMES = {"containerd": "containerd", "crio": "cri-o", "docker": "docker"}
#: Values of K8S_AUTH_VERIFY_SSL, in lower case, that switch the verification off.
UNVERIFIED = ("false", "no", "off", "n", "f", "0")

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
    """Yield why pods would not get the NVIDIA runtime of this container runtime. *kubelet* and *own* are what container_runtime_info reports."""
    name, daemon, endpoint = facts["name"], facts["kubelet"]["daemon"], facts["kubelet"]["endpoint"] or ""
    if daemon not in (None, name):
        yield (
            f"container_runtime is {name}, but the kubelet uses {endpoint}, so that pods would not get the NVIDIA runtime; "
            "leave container_runtime out."
        )
    used, socket = normalize_socket(endpoint), normalize_socket(facts["socket"])
    if name == "containerd" and socket == USUAL_SOCKET:
        socket = facts["own"].get("socket", socket)
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
    """Yield why the GPUs are not usable. The *error* of nvml_facts names cause and remedy. *others* is whether the host has GPUs of other vendors."""
    if facts["others"] and not facts["found"]:
        return  # nothing of NVIDIA is installed there
    if facts["require_gpu"] and not facts["found"] and not facts["error"]:
        yield (
            "no NVIDIA GPU was found; take the host out of the group of GPU nodes, look at its slots and its hypervisor, or set "
            "gpu_preflight_require_gpu to false for it."
        )
    elif facts["require_driver"] and (facts["require_gpu"] or facts["found"]) and not facts["driver_works"]:
        yield facts["error"]


def check_health(facts: Facts) -> Iterator[str]:
    """Yield what the doctor's checks find in the facts *nvml* of GPUs that the driver serves. A change may repair it, so it is a warning."""
    for cause in find_health(facts["nvml"], PREFLIGHT):
        yield f"{'; '.join(cause['details'])} ({cause['id']}); {cause['remedy']}."


def check_vgpu_unlock(facts: Facts) -> Iterator[str]:
    """Yield why a host with vgpu_unlock, which *path* uses, is refused. The path is empty without it."""
    if facts["path"]:
        yield (
            f"{facts['path']} uses vgpu_unlock, which circumvents NVIDIA's licence, breaks signed kernel modules, and shares GPUs among virtual "
            "machines and not among containers; remove it with the driver that it patches, and share GPUs by gpu_sharing_strategy: time_slicing "
            "or mps."
        )


def check_vgpu_license(facts: Facts) -> Iterator[str]:
    """Yield why no licence can be obtained. *daemon* is whether the host has nvidia-gridd, or its driver may bring it."""
    if facts["token"] and not facts["daemon"]:
        yield (
            "nvidia_driver_vgpu_license_token is set, and the driver has no nvidia-gridd, which only NVIDIA's guest driver for vGPU brings; install that "
            "driver (method runfile with its installer, or its packages in nvidia_driver_packages), or leave the token out."
        )


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


def check_gpu_driver(facts: Facts) -> Iterator[str]:
    """Yield why the driver of another vendor's GPUs cannot be managed. *plan* is that of plan_packages, *problems* those of gpu_driver_info."""
    role, title, vendor = facts["role"], facts["title"], facts["source"] == "vendor"
    if not facts["found"]:
        yield from facts["problems"]
    if facts["recorded"] and not vendor:
        yield (
            f"this role installed the {title} from the vendor's packages, and {role}_source is distribution; remove these first ({role}_state: absent), "
            "or set it to vendor."
        )
    if not vendor:
        return
    if facts["plan"]["problem"]:
        yield facts["plan"]["problem"]
        return
    if not facts["named_headers"]:
        yield (
            f"the package name of the headers for the running kernel {facts['kernel']} is not known; install them yourself and set {role}_headers to false, "
            "or boot a standard kernel of the distribution."
        )
    if facts["plan"]["unsupported_modules"] and not facts["unsupported_modules"]:
        yield (
            f"modprobe of this distribution does not load the modules of the {title}; write allow_unsupported_modules 1 to "
            "/etc/modprobe.d/10-unsupported-modules.conf, and rebuild the initial RAM disk (dracut -f)."
        )
    if facts["reboot"] == "if_needed" and facts["connection"] == "local":
        yield (
            f"{role}_reboot is if_needed, and the connection is local, so that a reboot would end this run; run from another machine, or set "
            f"{role}_reboot to never."
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


def check_unverified_api(facts: Facts) -> Iterator[str]:
    """Yield why the token of the environment may reach others. *host* and *verify* are K8S_AUTH_HOST and K8S_AUTH_VERIFY_SSL, or empty."""
    name = urlsplit(facts["host"]).hostname or ""
    if (
        name
        and str(facts["verify"]).lower() in UNVERIFIED
        and name != "localhost"
        and not name.startswith(("127.", "::1"))
    ):
        yield (
            f"K8S_AUTH_VERIFY_SSL is {facts['verify']}, so that whoever answers for {name} gets the token; enter the certificate authority of the API "
            "server in the credential, or set K8S_AUTH_SSL_CA_CERT and K8S_AUTH_VERIFY_SSL=true."
        )


CHECKS = {
    "unverified_api": check_unverified_api,
    "platform": check_platform,
    "runtime": check_runtime,
    "gpus": check_gpus,
    "health": check_health,
    "vgpu_unlock": check_vgpu_unlock,
    "vgpu_license": check_vgpu_license,
    "node": check_node,
    "device_plugin": check_device_plugin,
    "edge": check_edge,
    "extender_url": check_extender_url,
    "unequal_gpus": check_unequal_gpus,
    "mps": check_mps,
    "client_failures": check_client_failures,
    "gpu_users": check_gpu_users,
    "mig_manager": check_mig_manager,
    "gpu_driver": check_gpu_driver,
}
