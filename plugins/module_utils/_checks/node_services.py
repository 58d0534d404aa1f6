# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the container runtime and the kubelet of a node."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from .model import (
    FAIL,
    INFO,
    RUNTIME_NAME,
    WARN,
    Check,
    Finding,
    Observation,
    UnobservedError,
    offers_otherwise,
    read_part,
)
from .vendors import offers_nvidia

#: A kubelet renews its Lease every ten seconds, and its node is NotReady after forty.
LEASE_SECONDS = 40
_SINGLE_NODE = ("restricted", "single-numa-node")


# -- container runtime


def _find_no_answer(observation: Observation) -> Iterator[Finding]:
    runtime = read_part(observation, "runtime")
    if runtime.get("error"):
        yield FAIL, str(runtime["error"])


def _find_no_handler(observation: Observation) -> Iterator[Finding]:
    handlers = read_part(observation, "runtime")["handlers"]
    if not handlers:
        raise UnobservedError("the container runtime does not report its runtimes")
    cluster = observation.get("cluster") or {}
    classes, users = cluster.get("runtime_classes") or {}, cluster.get("class_users") or {}
    used = {classes[name] for name in users if RUNTIME_NAME in classes.get(name, "")}
    verdict = FAIL if used or not offers_otherwise(observation) else INFO
    for name in sorted((used or {RUNTIME_NAME}) - set(handlers))[:3]:
        yield verdict, f"the container runtime has no runtime {name} (it has {', '.join(sorted(handlers))})"


def _find_drift(observation: Observation) -> Iterator[Finding]:
    for file in read_part(observation, "drift"):
        if file["error"]:
            yield WARN, f"{file['path']} cannot be compared with its record: {file['error']}"
        else:
            yield WARN, f"others have changed {' and '.join(file['settings'])} in {file['path']}"


def _find_restart_due(observation: Observation) -> Iterator[Finding]:
    for path in read_part(observation, "runtime").get("changed_files") or []:
        yield WARN, f"{path} was changed after the container runtime was started"


def _find_other_cgroup_driver(observation: Observation) -> Iterator[Finding]:
    own = read_part(observation, "kubelet").get("cgroup_driver")
    handlers: Mapping[str, Any] = read_part(observation, "runtime")["handlers"]
    for name, handler in sorted(handlers.items()):
        if own and name == RUNTIME_NAME and (handler or {}).get("systemd_cgroup") is not None:
            other = "systemd" if handler["systemd_cgroup"] else "cgroupfs"
            if other != own:
                yield FAIL, f"the kubelet uses the cgroup driver {own} and the runtime {name} uses {other}"


# -- kubelet


def _find_not_ready(observation: Observation) -> Iterator[Finding]:
    node, kubelet = observation.get("kubernetes"), observation.get("kubelet")
    if node is None and kubelet is None:
        read_part(observation, "kubernetes")
    if kubelet is not None and kubelet.get("running") is False:
        yield FAIL, "the kubelet does not run"
    elif node is not None and not node["known"]:
        yield FAIL, f"the cluster has no node {observation.get('node')}"
    elif node is not None and not node["ready"]:
        yield FAIL, f"the node is not Ready: {node['reason'] or 'no reason given'}"
    elif node is not None and (node.get("lease_age_seconds") or 0) > LEASE_SECONDS:
        yield FAIL, f"the kubelet has not renewed its Lease for {node['lease_age_seconds']:.0f} seconds"


def _find_no_socket(observation: Observation) -> Iterator[Finding]:
    kubelet = read_part(observation, "kubelet")
    folder, sockets = kubelet["plugin_folder"], kubelet["sockets"]
    if sockets is None:
        raise UnobservedError(f"{folder} cannot be read")
    node = observation.get("kubernetes") or {}
    if kubelet["running"] is None and "kubelet.sock" not in sockets:
        raise UnobservedError("the kubelet is a part of another program, and its folder is not known")
    others = [path for path in node.get("plugin_folders") or [] if path.rstrip("/") != folder.rstrip("/")]
    if "kubelet.sock" not in sockets:
        yield FAIL, f"{folder} has no kubelet.sock"
    elif others and kubelet["running"]:
        yield FAIL, f"the device plugin uses {others[0]}, and the kubelet {folder}"
    elif node.get("plugins_ready") and not offers_nvidia(node) and len(sockets) == 1:
        yield FAIL, f"the device plugin runs and has no socket in {folder}, so that it did not register again"


def _find_stale_checkpoint(observation: Observation) -> Iterator[Finding]:
    checkpoint = read_part(observation, "kubelet")["checkpoint"]
    if checkpoint is None:
        raise UnobservedError("the kubelet has no checkpoint of devices")
    if checkpoint.get("error"):
        yield FAIL, f"the kubelet's checkpoint of devices cannot be read: {checkpoint['error']}"
        return
    node = read_part(observation, "kubernetes")
    gone = sorted(set(checkpoint["pods"]) - set(node["pods"]))
    # Entries of pods that ended are normal until the next allocation; an allocation that fails with devices left is not.
    for event in (node["events"].get("allocation") or [])[-1:] if gone else ():
        yield FAIL, f"{event}; the kubelet still counts devices of {len(gone)} pods that are gone"


def _find_unhealthy(observation: Observation) -> Iterator[Finding]:
    node = read_part(observation, "kubernetes")
    for resource, capacity in sorted(node["capacity"].items()):
        allocatable = node["allocatable"].get(resource, 0)
        if allocatable < capacity:
            yield FAIL, f"{allocatable} of {capacity} {resource} are healthy"


def _find_topology(observation: Observation) -> Iterator[Finding]:
    for event in (read_part(observation, "kubernetes")["events"].get("topology") or [])[-1:]:
        policy = (observation.get("kubelet") or {}).get("topology_policy")
        yield WARN, f"{event}" + (f" (topology manager policy {policy})" if policy in _SINGLE_NODE else "")


RUNTIME: tuple[Check, ...] = (
    Check(
        "rt.answers",
        "runtime",
        "Answer of the container runtime",
        _find_no_answer,
        (
            "container runtime is not running",
            "failed to connect to containerd",
            "unknown service runtime.v1.RuntimeService",
        ),
        "the container runtime does not run, or its CRI plugin is disabled",
        "read its journal and start it",
    ),
    Check(
        "rt.handler",
        "runtime",
        "NVIDIA runtime of the container runtime",
        _find_no_handler,
        (
            'no runtime for "nvidia" is configured',
            "unknown or invalid runtime name: nvidia",
            "failed to find runtime handler nvidia",
        ),
        "the container runtime is not configured for NVIDIA, a later file overrides it, or it was not restarted",
        "run the playbook prepare_gpu_nodes",
        ("rt.answers", "tk.binary"),
    ),
    Check(
        "rt.drift",
        "runtime",
        "Configuration that this collection wrote",
        _find_drift,
        ("config.toml was overwritten", "containerd lost its nvidia runtime"),
        "another program or a person has changed settings of the container runtime that this collection had written",
        "run the playbook prepare_gpu_nodes with --check --diff, then without, and let one program own the file",
        ("rt.answers", "rt.handler"),
    ),
    Check(
        "rt.restart_due",
        "runtime",
        "Configuration that is in use",
        _find_restart_due,
        ("the configuration of containerd has no effect",),
        "the container runtime reads its configuration when it starts",
        "restart the container runtime when the node is idle; the playbook prepare_gpu_nodes restarts it only for changes of this collection",
        ("rt.answers", "rt.handler"),
    ),
    Check(
        "rt.cgroup",
        "runtime",
        "Cgroup drivers",
        _find_other_cgroup_driver,
        ('expected cgroupsPath to be of format "slice:prefix:name"',),
        "one of kubelet and container runtime uses systemd and the other cgroupfs",
        "set SystemdCgroup of the runtime as the kubelet's cgroupDriver (containerd_nvidia_systemd_cgroup)",
        ("rt.answers", "rt.handler"),
    ),
)

KUBELET: tuple[Check, ...] = (
    Check(
        "kl.ready",
        "kubelet",
        "Kubelet and node",
        _find_not_ready,
        ("NotReady", "Kubelet stopped posting node status"),
        "the kubelet is stopped, or does not reach the API server or the container runtime",
        "read its journal: journalctl -u kubelet",
        ("rt.answers",),
    ),
    Check(
        "kl.socket",
        "kubelet",
        "Sockets of device plugins",
        _find_no_socket,
        ("the plugin runs and allocatable is 0", "dial unix … kubelet.sock: connect: no such file or directory"),
        "the device plugin's hostPath is not the kubelet's folder, or the plugin did not register again after a restart of the kubelet",
        "use /var/lib/kubelet/device-plugins as hostPath of the device plugin, whatever the kubelet's --root-dir is, and restart the plugin's pod",
        ("kl.ready",),
    ),
    Check(
        "kl.checkpoint",
        "kubelet",
        "Devices that the kubelet has allocated",
        _find_stale_checkpoint,
        ("Allocate failed due to requested number of devices unavailable for … Requested: … Available: 0",),
        "the kubelet still counts devices of a pod that was deleted by force",
        "restart the kubelet of the node",
        ("kl.ready", "kl.socket", "kl.unhealthy"),
    ),
    Check(
        "kl.unhealthy",
        "kubelet",
        "Healthy devices",
        _find_unhealthy,
        ("no healthy devices present", "cannot allocate unhealthy devices"),
        "the device plugin marked a GPU as unhealthy after an Xid, and never removes this mark",
        "reset the GPU, then restart the device plugin's pod on this node",
        ("kl.ready", "lib.answers", "lib.serves", "kernel.xid", "hw.recovery", "pl.daemonset"),
    ),
    Check(
        "kl.topology",
        "kubelet",
        "Topology of GPUs and processors",
        _find_topology,
        ("TopologyAffinityError", "Resources cannot be allocated with Topology locality"),
        "the requested GPUs and processors are on different NUMA nodes",
        "request fewer GPUs or processors, or use the topology manager policy best-effort",
        ("kl.ready",),
    ),
)
