# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of the device plugin, the scheduler and pods, from what the API server reports."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from .._vendors import SERVED
from .model import CLUSTER, FAIL, INFO, WARN, Check, Finding, Observation, UnobservedError, read_part
from .vendors import offers_nvidia

_LIMIT = 5


# -- device plugin


def _has_gpus(observation: Observation, node: Mapping[str, Any]) -> bool:
    gpus = (observation.get("nvml") or {}).get("gpus")
    return bool(gpus) if gpus is not None else node["labelled"] or offers_nvidia(node)


def _find_no_plugin(observation: Observation) -> Iterator[Finding]:
    node = read_part(observation, "kubernetes")
    if not _has_gpus(observation, node):
        raise UnobservedError("the node has no GPU")
    if not node["plugins"]:
        yield FAIL, "no device plugin of GPUs runs on the node"
    for problem in node["plugin_problems"][:_LIMIT]:
        yield FAIL, problem


def _find_plugin_error(observation: Observation) -> Iterator[Finding]:
    log = read_part(observation, "kubernetes").get("plugin_log")
    if log is None:
        raise UnobservedError("the log of the device plugin was not read, because its resource is complete")
    if log:
        yield FAIL, f"the device plugin reports: {log}"


def _find_two_plugins(observation: Observation) -> Iterator[Finding]:
    plugins = read_part(observation, "kubernetes")["plugins"]
    if len(plugins) > 1:
        yield FAIL, f"{len(plugins)} device plugins offer the same GPUs: {', '.join(plugins)}"


def _find_missing_devices(observation: Observation) -> Iterator[Finding]:
    node = read_part(observation, "kubernetes")
    if not _has_gpus(observation, node):
        raise UnobservedError("the node has no GPU")
    if not offers_nvidia(node):
        yield FAIL, "the node reports no GPU as a resource"
        return
    gpus = (observation.get("nvml") or {}).get("gpus")
    units = node["capacity"].get(SERVED.resource, 0)
    if not units or not gpus or any(gpu.get("mig_mode") == "enabled" for gpu in gpus):
        return
    if units % len(gpus):
        yield FAIL, f"the node has {len(gpus)} GPUs and reports {units} {SERVED.resource}"


def _find_failed_preference(observation: Observation) -> Iterator[Finding]:
    for event in (read_part(observation, "kubernetes")["events"].get("preferred") or [])[-1:]:
        yield FAIL, event


# -- scheduler


def _list_pending(observation: Observation, kind: str) -> list[Mapping[str, Any]]:
    return [pod for pod in read_part(observation, "cluster")["pending"] if pod["kind"] == kind]


def _find_shortage(observation: Observation) -> Iterator[Finding]:
    for pod in _list_pending(observation, "free")[:_LIMIT]:
        for resource, need in sorted(pod["requests"].items()):
            total, most = pod["free"].get(resource, 0), pod["most_free"].get(resource, 0)
            if most >= need:
                continue
            where = f"; {pod['node']} has the most" if pod.get("node") else ""
            verdict, state = (
                (WARN, f"{total} are free and at most {most} on one node{where}")
                if total >= need
                else (INFO, f"{total} are free in the cluster")
            )
            yield verdict, f"pod {pod['name']} requests {need} {resource}: {state}"


def _find_taints(observation: Observation) -> Iterator[Finding]:
    for pod in _list_pending(observation, "taint")[:_LIMIT]:
        yield WARN, f"pod {pod['name']} waits: {pod['message']}"


def _find_other_reasons(observation: Observation) -> Iterator[Finding]:
    for pod in _list_pending(observation, "other")[:_LIMIT]:
        yield WARN, f"pod {pod['name']} waits: {pod['message']}"


def _find_maintenance(observation: Observation) -> Iterator[Finding]:
    maintenance = read_part(observation, "kubernetes").get("maintenance")
    if maintenance:
        yield WARN, f"the node {maintenance}"


def _find_quotas(observation: Observation) -> Iterator[Finding]:
    for event in (read_part(observation, "cluster")["events"].get("quota") or [])[-_LIMIT:]:
        yield WARN, event


def _find_extender_failure(observation: Observation) -> Iterator[Finding]:
    cluster = read_part(observation, "cluster")
    messages = [
        *(cluster["events"].get("extender") or []),
        *(pod["message"] for pod in _list_pending(observation, "extender")),
    ]
    for message in messages[-1:]:
        yield FAIL, message


# -- pods


def _find_no_class(observation: Observation) -> Iterator[Finding]:
    cluster = read_part(observation, "cluster")
    classes = cluster["runtime_classes"]
    if classes is None:
        raise UnobservedError("the RuntimeClasses cannot be read")
    for name, users in sorted(cluster["class_users"].items()):
        if name not in classes:
            yield FAIL, f"{users[0]} uses the RuntimeClass {name}, which does not exist"


def _find_failed_smoke_test(observation: Observation) -> Iterator[Finding]:
    result = read_part(observation, "smoke_test")
    if result.get("skipped"):
        raise UnobservedError(f"skipped: {result.get('reason')}")
    if not result.get("passed"):
        yield FAIL, f"the smoke test failed: {result.get('reason') or 'no reason given'}"


def _find_bypass(observation: Observation) -> Iterator[Finding]:
    for pod in read_part(observation, "cluster")["bypassing"][:_LIMIT]:
        yield WARN, f"pod {pod} has NVIDIA_VISIBLE_DEVICES and requests no GPU"


def _find_reload_risk(observation: Observation) -> Iterator[Finding]:
    toolkit = read_part(observation, "toolkit")
    handler = (read_part(observation, "runtime")["handlers"] or {}).get("nvidia") or {}
    if handler.get("systemd_cgroup") and toolkit.get("mode") in ("legacy", "auto") and not toolkit.get("char_links"):
        yield (
            INFO,
            "containers lose their GPUs at systemctl daemon-reload, because the device files are unknown to systemd",
        )


PLUGIN: tuple[Check, ...] = (
    Check(
        "pl.daemonset",
        "plugin",
        "Device plugin of the node",
        _find_no_plugin,
        ("DESIRED 0", "the device plugin is not running"),
        "the device plugin was not deployed, nodeSelector, labels or taints keep it off the node, or its pod fails",
        "run the playbook label_gpu_nodes and the playbook share_gpus, and check the tolerations of the DaemonSet",
        ("kl.ready", "rt.handler", "lib.answers", "pod.runtime_class"),
    ),
    Check(
        "pl.log",
        "plugin",
        "Log of the device plugin",
        _find_plugin_error,
        (
            "Incompatible strategy detected auto",
            "Incompatible platform detected",
            "No devices found. Waiting indefinitely",
            "could not load NVML library",
        ),
        "the device plugin's pod has no NVIDIA runtime, and so no driver",
        "set its RuntimeClass, or make nvidia the default runtime of the node",
        ("pl.daemonset", "lib.serves", "kl.socket"),
    ),
    Check(
        "pl.count",
        "plugin",
        "Devices that the node reports",
        _find_missing_devices,
        ("Insufficient nvidia.com/gpu", "the node shows fewer GPUs than it has cards"),
        "a GPU is lost, or the device plugin has another MIG strategy or configuration",
        "compare the device plugin's configuration and log with the GPUs of the node",
        ("pl.daemonset", "pl.log", "kl.socket", "kl.unhealthy", "lib.serves"),
    ),
    Check(
        "pl.twice",
        "plugin",
        "One device plugin for the GPUs",
        _find_two_plugins,
        ("one GPU is given to two pods", "the number of GPUs of the node changes by itself"),
        "NVIDIA's GPU Operator or another installation deploys a second device plugin",
        "remove one of the device plugins",
        ("kl.ready",),
    ),
    Check(
        "pl.preferred",
        "plugin",
        "Allocation by the device plugin",
        _find_failed_preference,
        ("UnexpectedAdmissionError", "GetPreferredAllocation rpc failed"),
        "one dead GPU makes the device plugin refuse every pod",
        "cordon and drain the node, and scale down the owner that creates the failing pods",
        ("lib.answers", "lib.serves", "kernel.xid", "kl.checkpoint", "kl.unhealthy"),
    ),
)

SCHEDULER: tuple[Check, ...] = (
    Check(
        "sc.free",
        "scheduler",
        "Free GPUs",
        _find_shortage,
        ("Insufficient nvidia.com/gpu", "Insufficient aliyun.com/gpu-mem", "nodes are available: … Insufficient"),
        "all GPUs are allocated, or the free ones are on different nodes",
        "show the allocation with the playbook show_gpu_allocation; request fewer GPUs, or free a whole node",
        (),
        CLUSTER,
    ),
    Check(
        "sc.taint",
        "scheduler",
        "Taints",
        _find_taints,
        ("had untolerated taint",),
        "the nodes with enough free GPUs have a taint that the pod does not tolerate",
        "add the toleration to the pod, or remove the taint",
        (),
        CLUSTER,
    ),
    Check(
        "sc.other",
        "scheduler",
        "Pods that wait although GPUs are free",
        _find_other_reasons,
        ("didn't match Pod's node affinity/selector", "nodes are available: … Insufficient cpu", "Insufficient memory"),
        "processors, memory, nodeSelector, affinity or volumes keep the pod off the nodes with enough free GPUs",
        "read the message, which counts the nodes of each reason; compare the pod's spec with the nodes with GPUs",
        (),
        CLUSTER,
    ),
    Check(
        "sc.maintenance",
        "scheduler",
        "Maintenance by this collection",
        _find_maintenance,
        ("SchedulingDisabled", "node(s) were unschedulable"),
        "a run of this collection was interrupted, or cordon_gpu_node has found a fault of the node",
        "repeat the interrupted playbook, or repair the node and end its maintenance with the role gpu_node_maintenance (tasks_from: end)",
    ),
    Check(
        "sc.quota",
        "scheduler",
        "Quotas of namespaces",
        _find_quotas,
        ("exceeded quota", "requests.nvidia.com/gpu"),
        "the namespace has used its quota of GPUs",
        "raise the ResourceQuota, or end pods of the namespace",
        (),
        CLUSTER,
    ),
    Check(
        "sc.extender",
        "scheduler",
        "Scheduler extender",
        _find_extender_failure,
        ("failed to run extender", "Post … /filter … connection refused"),
        "kube-scheduler does not reach the extender of the sharing strategy",
        "run the playbook share_gpus, and check the extender's pod and Service",
        (),
        CLUSTER,
    ),
)

POD: tuple[Check, ...] = (
    Check(
        "pod.runtime_class",
        "pod",
        "RuntimeClasses",
        _find_no_class,
        ('RuntimeClass "nvidia" not found', 'RuntimeClass.node.k8s.io "nvidia" not found'),
        "the RuntimeClass was not deployed",
        "run the playbook deploy_device_plugin",
        (),
        CLUSTER,
    ),
    Check(
        "pod.smoke",
        "pod",
        "Smoke test",
        _find_failed_smoke_test,
        ("the pod does not see a GPU",),
        "a layer between the driver and the pod fails",
        "read the verdicts of the layers below and the log of the test",
        (
            "lib.serves",
            "rt.handler",
            "pl.count",
            "pl.daemonset",
            "kernel.nodes",
            "tk.rpc",
            "tk.cdi",
            "pod.runtime_class",
        ),
    ),
    Check(
        "pod.bypass",
        "pod",
        "GPUs outside of Kubernetes' accounts",
        _find_bypass,
        ("GPU memory is used and no pod owns it",),
        "a pod uses all GPUs by the variable NVIDIA_VISIBLE_DEVICES, and Kubernetes does not count it",
        "request GPUs; accept-nvidia-visible-devices-envvar-when-unprivileged = false refuses the variable, where the device plugin uses volume mounts or CDI"
        " (deviceListStrategy)",
        (),
        CLUSTER,
    ),
    Check(
        "pod.daemon_reload",
        "pod",
        "GPUs of containers after a reload of systemd",
        _find_reload_risk,
        ("Failed to initialize NVML: Unknown Error",),
        "systemctl daemon-reload removes device files that are unknown to systemd from the cgroups of containers",
        "run nvidia-ctk system create-dev-char-symlinks --create-all, or use CDI",
        ("tk.binary", "rt.answers"),
    ),
)
