# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles refuse of hosts: their platform, software, GPUs and nodes, and the access to the API server."""

from __future__ import annotations

from typing import Any, Iterator, Mapping
from urllib.parse import urlsplit

from .._checks.health import PREFLIGHT, find_health
from .._distributions import USUAL_SOCKET

#: How a node names its runtime in containerRuntimeVersion.
SCHEMES = {"containerd": "containerd", "crio": "cri-o", "docker": "docker"}
#: Values of K8S_AUTH_VERIFY_SSL, in lower case, that switch the verification off.
UNVERIFIED = ("false", "no", "off", "n", "f", "0")

Facts = Mapping[str, Any]


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


def check_toolkit(facts: Facts) -> Iterator[str]:
    """Yield why the host does not suit the parameters of the NVIDIA container toolkit.

    *managed* is whether this collection installs it, *packaged* whether all its packages are installed. *path* is the declared one of its runtime program,
    *package_manager* empty if none is known.
    """
    if not facts["package_manager"]:
        yield (
            f"no package manager is known for {facts['distribution']} ({facts['os_family']}); use a distribution and a release that the guide on "
            "support lists."
        )
        return
    if not facts["present"]:
        return
    pinned = facts["version"] or facts["hold"]
    if not facts["usable"] and (not facts["managed"] or (facts["path"] and facts["packaged"])):
        missing = (
            f"the program {facts['path']} is missing or does not run"
            if facts["path"]
            else "there is no usable nvidia-container-runtime"
        )
        remedy = (
            "the packages with it are installed already; correct nvidia_container_toolkit_runtime_path, or leave it out"
            if facts["managed"]
            else "nvidia_container_toolkit_install is never; install the NVIDIA container toolkit, or set it to auto"
        )
        yield f"{missing} and {remedy}."
    elif not facts["managed"] and pinned:
        yield (
            "nvidia_container_toolkit_version and nvidia_container_toolkit_hold would have no effect, since this role did not install the existing toolkit; "
            "leave them out, or set nvidia_container_toolkit_install: always."
        )
    if facts["managed"] and not facts["chooses_versions"] and pinned:
        limit = (
            f"{facts['package_manager']} installs only the version of its repository"
            if facts["version"]
            else f"this role holds no packages with {facts['package_manager']}"
        )
        yield f"{limit}; leave out nvidia_container_toolkit_version and nvidia_container_toolkit_hold there."


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
    "toolkit": check_toolkit,
    "gpus": check_gpus,
    "health": check_health,
    "vgpu_unlock": check_vgpu_unlock,
    "vgpu_license": check_vgpu_license,
    "node": check_node,
    "gpu_driver": check_gpu_driver,
}
