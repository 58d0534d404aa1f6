# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the problems of the GPUs of a cluster, by a table of checks.

An observation is of one host::

    {host, node, require_gpu, nvml: facts of nvml_facts, runtime: result of container_runtime_health_info,
     daemon: "containerd", "crio" or "docker", toolkit and kubelet: of the result of container_runtime_info,
     runtime_name: name of the NVIDIA runtime, or empty,
     configuration: result of containerd_config, crio_config or docker_daemon_config in check mode,
     devices: result of gpu_devices_info, or empty}

``index_cluster`` adds what the API server reports on its node, for the checks::

    {kubernetes: entry of gpu_nodes_info, or empty; of several device plugins, the first one that the node is to have,
     other_plugins: the entries of the others,
     smoke_test: {result: passed, failed, skipped or "not run", reason unless passed, log_tail if failed,
                  image if one was tried}}

The cluster is what the API server reports, and what concerns all hosts::

    {error: str or None, resource_name, nodes: [entry of gpu_nodes_info], others_in_maintenance: as there, plugin_images: [name],
     runtime_class: {name, found, handler, expected_handler}, smoke: [entry of gpu_smoke_test], smoke_error: str,
     hosts: [all hosts of the run], left_out: [unreachable hosts that the run accepts], limited: whether the inventory has more}
"""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterable, Iterator, Mapping, Tuple

from .._checks.health import find_health
from .._checks.model import FAIL
from .._text import make_printable
from .._vendors import SERVED

Observation = Mapping[str, Any]
Cluster = Mapping[str, Any]
# {host, code, cause, remedy, sentence}; host is empty for a problem of the cluster
Problem = Dict[str, Any]
# (code, cause, remedy)
Finding = Tuple[str, str, str]
HostCheck = Callable[[Observation], Iterator[Finding]]


def get_runtime_title(observation: Observation) -> str:
    """Return the name of the host's container runtime, as its project writes it."""
    daemon = str(observation.get("daemon") or "containerd")
    return {"crio": "CRI-O", "docker": "Docker"}.get(daemon, daemon)


def split_reason(reason: str) -> tuple[str, str]:
    """Split "cause; remedy" at its last semicolon; without one, the remedy is empty."""
    cause, separator, remedy = reason.rpartition("; ")
    return (cause, remedy) if separator else (reason, "")


def index_cluster(cluster: Cluster) -> Callable[[Observation], Observation]:
    """Return a function that adds to an observation the cluster's entries on the host's node. Of several tests, the worst counts."""
    entries: dict[str, list[Mapping[str, Any]]] = {}
    tests: dict[str, Mapping[str, Any]] = {}
    for node in cluster.get("nodes") or []:
        entries.setdefault(node["name"], []).append(node)
    for test in cluster.get("smoke") or []:
        known = tests.setdefault(test["node"], test)
        if _rank_test(test) > _rank_test(known):
            tests[test["node"]] = test

    def join(observation: Observation) -> Observation:
        test = tests.get(observation["node"])
        own = entries.get(observation["node"], [])
        # Without GPUs of NVIDIA, the first entry is on a plugin that the node is not to have.
        first = next((entry for entry in own if entry.get("expected") or serves_nvidia(observation)), (own or [{}])[0])
        return {
            **observation,
            "kubernetes": first,
            "other_plugins": [entry for entry in own if entry is not first],
            "smoke_test": _build_smoke_test(test) if test else {"result": "not run"},
        }

    return join


def serves_nvidia(observation: Observation) -> bool:
    """Return whether the host is prepared for GPUs of NVIDIA; hosts without any known GPU are."""
    return SERVED.name in ((observation.get("devices") or {}).get("vendors") or [SERVED.name])


def _rank_test(test: Mapping[str, Any]) -> int:
    """Return 2 for a failed test, 1 for a skipped one, 0 for a passed one."""
    return 0 if test.get("passed") else 1 if test.get("skipped") else 2


def is_left_cordoned(entry: Mapping[str, Any]) -> bool:
    """Return whether this collection has cordoned the node of an entry of gpu_nodes_info; one that was cordoned before does not count."""
    found = entry.get("maintenance") or {}
    return bool(found) and not entry.get("schedulable") and found.get("was_schedulable") is not False


def _build_smoke_test(test: Mapping[str, Any]) -> dict[str, Any]:
    tried = {"image": test["image"]} if test.get("image") else {}
    if test.get("passed"):
        return {"result": "passed", **tried}
    reason = test.get("reason") or "no reason given"
    if test.get("skipped"):
        return {"result": "skipped", "reason": reason, **tried}
    return {"result": "failed", "reason": reason, "log_tail": list(test.get("log_tail") or []), **tried}


def _check_driver(observation: Observation) -> Iterator[Finding]:
    nvml = observation["nvml"]
    gpus = nvml.get("gpus") or []
    lost = any(gpu.get("lost") for gpu in gpus)  # each is a problem of its own
    if nvml.get("error") and not lost:
        cause, remedy = split_reason(str(nvml["error"]).rstrip("."))
        yield "driver_error", cause, remedy or "reinstall the driver and reboot"
    elif gpus and nvml.get("source") == "pci":
        yield "driver_missing", f"{len(gpus)} GPUs on the PCI bus but no NVIDIA driver", "install the driver"
    elif not gpus and observation.get("require_gpu", True) and serves_nvidia(observation):
        remedy = "remove the host from the group of GPU nodes, or check its slots and its hypervisor"
        yield "no_gpu", "no NVIDIA GPU", remedy


def _check_devices(observation: Observation) -> Iterator[Finding]:
    """Yield what keeps the GPUs of other vendors from being offered: driver, KFD, NUMA node, render node."""
    found = observation.get("devices") or {}
    for vendor in found.get("vendors") or []:
        for clause in (found.get("problems") or {}).get(vendor) or []:
            yield ("driver_error", *split_reason(clause))


def _check_lost_gpus(observation: Observation) -> Iterator[Finding]:
    # The driver's error concerns all of them, so that only the first names it.
    detail = split_reason(str(observation["nvml"].get("error") or "").rstrip("."))[0]
    for gpu in observation["nvml"].get("gpus") or []:
        if gpu.get("lost"):
            name = gpu.get("uuid") or gpu.get("pci_address") or gpu.get("index")
            suffix, detail = f" [{detail}]" if detail else "", ""
            yield (
                "gpu_lost",
                f"GPU {name} is lost{suffix}",
                "drain the node, reboot it and look for Xid errors and NVRM in its log",
            )


def _check_health(observation: Observation) -> Iterator[Finding]:
    for cause in find_health(observation["nvml"]):
        if cause["verdict"] == FAIL:
            yield cause["id"], "; ".join(cause["details"]), cause["remedy"]


def _check_runtime(observation: Observation) -> Iterator[Finding]:
    runtime = observation["runtime"]
    # Drift explains why a daemon that answers lacks a runtime.
    drifted = bool((observation.get("configuration") or {}).get("reasons"))
    if not runtime.get("ok") and not (drifted and runtime.get("runtime_version")):
        detail = "".join(f" [{line}]" for line in (runtime.get("log") or [])[-1:])
        yield "runtime", f"{runtime.get('cause') or 'no answer'}{detail}", runtime.get("remedy") or "read its log"


def _check_toolkit(observation: Observation) -> Iterator[Finding]:
    found = observation.get("toolkit")
    if found is not None and not found.get("usable"):
        place = f"{found['path']} cannot be executed" if found.get("path") else "nvidia-container-runtime is missing"
        yield "toolkit", place, "run prepare_gpu_nodes"


def _check_configuration(observation: Observation) -> Iterator[Finding]:
    found = observation.get("configuration") or {}
    if "reasons" not in found:
        if found.get("msg") and not found.get("skipped"):
            cause, remedy = split_reason(str(found["msg"]).rstrip("."))
            yield "configuration", cause, remedy or "correct the file"
    elif found["reasons"]:
        cause = f"the configuration of {get_runtime_title(observation)} is not as declared (to do: {', '.join(found['reasons'])})"
        yield "drift", cause, "run prepare_gpu_nodes, and find the other program that writes the file"
    elif found.get("restart_required"):
        cause = f"no run has confirmed a restart of {get_runtime_title(observation)} since its configuration changed"
        yield (
            "restart_due",
            cause,
            (
                "run prepare_gpu_nodes with container_runtime_restart_ok set to true, and if the restart would end containers, also with"
                " container_runtime_restart_interrupt"
            ),
        )


def _check_cgroup_driver(observation: Observation) -> Iterator[Finding]:
    driver = (observation.get("kubelet") or {}).get("cgroup_driver")
    name = observation.get("runtime_name")
    runtime = (observation["runtime"].get("runtimes") or {}).get(name) or {}
    if not driver or "systemd_cgroup" not in runtime or runtime["systemd_cgroup"] == (driver == "systemd"):
        return
    other = "cgroupfs" if driver == "systemd" else "systemd"
    cause = f"the kubelet's cgroup driver is {driver}, and the runtime {name} of {get_runtime_title(observation)} uses {other}"
    remedy = f"configure the cgroup driver {driver} for {get_runtime_title(observation)}"
    if (observation.get("daemon") or "containerd") == "containerd":
        remedy = f"set containerd_nvidia_systemd_cgroup to {str(driver == 'systemd').lower()} and run prepare_gpu_nodes"
    yield "cgroup_driver", cause, remedy


def _check_node(observation: Observation) -> Iterator[Finding]:
    for entry in (observation["kubernetes"], *(observation.get("other_plugins") or [])):
        if entry and not entry.get("ok") and entry.get("judged", True):
            cause, remedy = split_reason(str(entry.get("reason") or "not every GPU is allocatable"))
            yield "node", cause, remedy or "check the node and the device plugin's pod"


def _check_maintenance(observation: Observation) -> Iterator[Finding]:
    entry = observation["kubernetes"]
    if is_left_cordoned(entry):
        cause, remedy = split_reason(str(entry["maintenance"]["message"]))
        yield "maintenance", f"node {entry['name']} {cause}", remedy


def _check_smoke_test(observation: Observation) -> Iterator[Finding]:
    test = observation["smoke_test"]
    if test["result"] == "failed":
        cause, remedy = split_reason(str(test["reason"]))
        yield "smoke_test", f"the smoke test failed: {cause}", remedy or "read the pod's last lines in the report"


HOST_CHECKS: tuple[HostCheck, ...] = (
    _check_driver,
    _check_devices,
    _check_lost_gpus,
    _check_health,
    _check_toolkit,
    _check_runtime,
    _check_configuration,
    _check_cgroup_driver,
    _check_node,
    _check_maintenance,
    _check_smoke_test,
)


#: Those of what hosts need for GPUs of NVIDIA alone.
NVIDIA_CHECKS: tuple[HostCheck, ...] = (_check_toolkit, _check_configuration, _check_cgroup_driver)


def _build_problem(host: str, finding: Finding) -> Problem:
    code, cause, remedy = (make_printable(" ".join(part.split())).rstrip(".") for part in finding)
    sentence = f"{host or 'cluster'}: {cause}; {remedy}."
    return {"host": host, "code": code, "cause": cause, "remedy": remedy, "sentence": sentence}


def find_host_problems(observation: Observation) -> list[Problem]:
    """Return the problems of one host with a joined observation, those of its hardware first."""
    checks = [check for check in HOST_CHECKS if serves_nvidia(observation) or check not in NVIDIA_CHECKS]
    return [_build_problem(observation["host"], finding) for check in checks for finding in check(observation)]


def find_unreachable(hosts: Iterable[str]) -> list[Problem]:
    """Return one problem for each host without an observation."""
    finding = ("unreachable", "the host could not be examined", "read its errors above")
    return [_build_problem(host, finding) for host in sorted(hosts)]


def find_cluster_problems(cluster: Cluster) -> list[Problem]:
    """Return the problems of the cluster as a whole."""
    found: list[Problem] = []
    if cluster.get("error"):
        cause, remedy = split_reason(str(cluster["error"]).rstrip("."))
        found.append(_build_problem("", ("api", cause, remedy or "check gpu_kubeconfig and the API server")))
        return found
    if cluster.get("smoke_error"):
        cause, remedy = split_reason(str(cluster["smoke_error"]).rstrip("."))
        found.append(_build_problem("", ("smoke_test", cause, remedy or "run it alone to see why")))
    runtime_class = cluster.get("runtime_class") or {}
    name = runtime_class.get("name")
    if name and not runtime_class.get("found"):
        found.append(
            _build_problem(
                "",
                (
                    "runtime_class",
                    f"there is no RuntimeClass {name}",
                    "run the playbook that deploys the device plugin",
                ),
            )
        )
    # ansible-core 2.18 turns None into an empty text.
    elif name and (runtime_class.get("expected_handler") or runtime_class.get("handler")) != runtime_class.get(
        "handler"
    ):
        cause = f"RuntimeClass {name} has the handler {runtime_class.get('handler')}, not {runtime_class['expected_handler']}"
        found.append(
            _build_problem(
                "", ("runtime_class", cause, "delete it and run the playbook that deploys the device plugin")
            )
        )
    return found


def choose_runtime_class(needed: Iterable[Mapping[str, str]], found: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the RuntimeClass to report: the first needed one that is missing, else the first with another handler, else the first one.

    ``needed`` has the names as ``key`` and the handlers as ``value``, where an empty handler accepts any. ``found`` has the objects of the cluster.
    """
    handlers = {each["metadata"]["name"]: each["handler"] for each in found}
    pairs = [(each["key"], each["value"] or "") for each in needed]
    missing = [pair for pair in pairs if pair[0] not in handlers]
    wrong = [pair for pair in pairs if pair[1] and handlers.get(pair[0]) != pair[1]]
    name, expected = next(iter([*missing, *wrong, *pairs]), ("", ""))
    return {
        "name": name,
        "found": name in handlers,
        "handler": handlers.get(name),
        "expected_handler": expected or None,
    }
