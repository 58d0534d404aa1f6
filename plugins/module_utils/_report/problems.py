# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be wrong with the GPUs of a cluster, as a table of pure checks.

An observation is what was seen of one host::

    {host, node, require_gpu, nvml: facts of nvml_facts, runtime: result of container_runtime_probe,
     daemon: "containerd", "crio" or "docker", toolkit: what container_runtime_info tells of it,
     configuration: result of containerd_config, crio_config or docker_daemon_config in check mode}

``joined`` adds what the cluster says of its node, for the checks::

    {kubernetes: entry of gpu_nodes_info, empty if there is none,
     smoke_test: {result: passed, failed, skipped or "not run", reason unless passed, log_tail if failed,
                  image if one was tried}}

The cluster is what the API server says, and what else concerns all hosts::

    {error: str or None, resource_name, nodes: [entry of gpu_nodes_info], plugin_images: [name],
     runtime_class: {name, found, handler, expected_handler}, smoke: [entry of gpu_smoke_test], smoke_error: str,
     hosts: [all hosts to look at], limited: whether these are a part of all there are}
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Tuple

Observation = Mapping[str, Any]
Cluster = Mapping[str, Any]
# {host, code, cause, remedy, sentence}; host is empty if the problem is the cluster's
Problem = Dict[str, Any]
# (code, cause, remedy)
Finding = Tuple[str, str, str]
HostCheck = Callable[[Observation], Iterator[Finding]]


def title(seen: Observation) -> str:
    """Return the name of the host's container runtime, as people write it."""
    daemon = str(seen.get("daemon") or "containerd")
    return {"crio": "CRI-O", "docker": "Docker"}.get(daemon, daemon)


def split_reason(reason: str) -> tuple[str, str]:
    """Split "cause; remedy" at its last semicolon; the remedy is empty if there is none."""
    cause, separator, remedy = reason.rpartition("; ")
    return (cause, remedy) if separator else (reason, "")


def joined(observation: Observation, cluster: Cluster) -> Observation:
    """Return the observation with what the cluster says of the host's node."""
    name = observation["node"]
    entry: Mapping[str, Any] = next((node for node in cluster.get("nodes") or [] if node["name"] == name), {})
    test: Mapping[str, Any] = next((test for test in cluster.get("smoke") or [] if test["node"] == name), {})
    return {**observation, "kubernetes": entry, "smoke_test": _tested(test) if test else {"result": "not run"}}


def _tested(test: Mapping[str, Any]) -> dict[str, Any]:
    tried = {"image": test["image"]} if test.get("image") else {}
    if test.get("passed"):
        return {"result": "passed", **tried}
    reason = test.get("reason") or "no reason given"
    if test.get("skipped"):
        return {"result": "skipped", "reason": reason, **tried}
    return {"result": "failed", "reason": reason, "log_tail": list(test.get("log_tail") or []), **tried}


def _driver(seen: Observation) -> Iterator[Finding]:
    nvml = seen["nvml"]
    gpus = nvml.get("gpus") or []
    lost = any(gpu.get("lost") for gpu in gpus)  # each is a problem of its own
    if nvml.get("error") and not lost:
        cause, remedy = split_reason(str(nvml["error"]).rstrip("."))
        yield "driver_error", cause, remedy or "install the driver anew and reboot"
    elif gpus and nvml.get("source") == "pci":
        yield "driver_missing", f"{len(gpus)} GPUs on the PCI bus but no NVIDIA driver", "install the driver"
    elif not gpus and seen.get("require_gpu", True):
        remedy = "take the host out of the group of GPU nodes, or look at its slots and its hypervisor"
        yield "no_gpu", "no NVIDIA GPU", remedy


def _lost_gpus(seen: Observation) -> Iterator[Finding]:
    # What the driver says of all of them is told once.
    words = split_reason(str(seen["nvml"].get("error") or "").rstrip("."))[0]
    for gpu in seen["nvml"].get("gpus") or []:
        if gpu.get("lost"):
            name = gpu.get("uuid") or gpu.get("pci_address") or gpu.get("index")
            told, words = f" [{words}]" if words else "", ""
            yield (
                "gpu_lost",
                f"GPU {name} is lost{told}",
                "drain the node, reboot it and look for Xid errors and NVRM in its log",
            )


def _runtime(seen: Observation) -> Iterator[Finding]:
    runtime = seen["runtime"]
    # A configuration that drifted explains why a daemon that answers lacks something.
    drifted = bool((seen.get("configuration") or {}).get("reasons"))
    if not runtime.get("ok") and not (drifted and runtime.get("runtime_version")):
        words = "".join(f" [{line}]" for line in (runtime.get("log") or [])[-1:])
        yield "runtime", f"{runtime.get('cause') or 'no answer'}{words}", runtime.get("remedy") or "read its log"


def _toolkit(seen: Observation) -> Iterator[Finding]:
    found = seen.get("toolkit")
    if found is not None and not found.get("usable"):
        place = f"{found['path']} cannot be executed" if found.get("path") else "nvidia-container-runtime is missing"
        yield "toolkit", place, "run prepare_gpu_nodes"


def _configuration(seen: Observation) -> Iterator[Finding]:
    found = seen.get("configuration") or {}
    if "reasons" not in found:
        if found.get("msg") and not found.get("skipped"):
            cause, remedy = split_reason(str(found["msg"]).rstrip("."))
            yield "configuration", cause, remedy or "correct the file"
    elif found["reasons"]:
        cause = f"the configuration of {title(seen)} is not what was declared (to do: {', '.join(found['reasons'])})"
        yield "drift", cause, "run prepare_gpu_nodes, and look for who else writes the file"
    elif found.get("restart_required"):
        cause = f"no run has confirmed a restart of {title(seen)} since its configuration changed"
        yield "restart_due", cause, "run prepare_gpu_nodes"


def _node(seen: Observation) -> Iterator[Finding]:
    entry = seen["kubernetes"]
    if entry and not entry.get("ok"):
        cause, remedy = split_reason(str(entry.get("reason") or "not every GPU is offered to pods"))
        yield "node", cause, remedy or "look at the node and at the device plugin's pod"


def _smoke(seen: Observation) -> Iterator[Finding]:
    test = seen["smoke_test"]
    if test["result"] == "failed":
        cause, remedy = split_reason(str(test["reason"]))
        yield "smoke_test", f"the smoke test failed: {cause}", remedy or "read the pod's last lines in the report"


HOST_CHECKS: tuple[HostCheck, ...] = (_driver, _lost_gpus, _toolkit, _runtime, _configuration, _node, _smoke)


def _problem(host: str, finding: Finding) -> Problem:
    code, cause, remedy = (" ".join(part.split()).rstrip(".") for part in finding)
    sentence = f"{host or 'cluster'}: {cause}; {remedy}."
    return {"host": host, "code": code, "cause": cause, "remedy": remedy, "sentence": sentence}


def host_problems(seen: Observation) -> list[Problem]:
    """Return what is wrong with one host, as a joined observation tells it, its hardware first."""
    return [_problem(seen["host"], finding) for check in HOST_CHECKS for finding in check(seen)]


def unseen_problems(hosts: Iterable[str]) -> list[Problem]:
    """Return one problem for each of the hosts, of which nothing was seen."""
    finding = ("unreachable", "the host could not be examined", "look at its errors above")
    return [_problem(host, finding) for host in sorted(hosts)]


def cluster_problems(cluster: Cluster) -> list[Problem]:
    """Return what is wrong with the cluster as a whole."""
    found: list[Problem] = []
    if cluster.get("error"):
        cause, remedy = split_reason(str(cluster["error"]).rstrip("."))
        found.append(_problem("", ("api", cause, remedy or "check gpu_kubeconfig and the API server")))
        return found
    if cluster.get("smoke_error"):
        cause, remedy = split_reason(str(cluster["smoke_error"]).rstrip("."))
        found.append(_problem("", ("smoke_test", cause, remedy or "run it alone to see why")))
    wanted = cluster.get("runtime_class") or {}
    name = wanted.get("name")
    if name and not wanted.get("found"):
        found.append(
            _problem(
                "",
                (
                    "runtime_class",
                    f"there is no RuntimeClass {name}",
                    "run the playbook that deploys the device plugin",
                ),
            )
        )
    # ansible-core 2.18 makes an empty text of nothing.
    elif name and (wanted.get("expected_handler") or wanted.get("handler")) != wanted.get("handler"):
        cause = f"RuntimeClass {name} asks for the handler {wanted.get('handler')}, not {wanted['expected_handler']}"
        found.append(
            _problem("", ("runtime_class", cause, "delete it and run the playbook that deploys the device plugin"))
        )
    return found
