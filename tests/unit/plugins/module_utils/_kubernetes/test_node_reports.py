# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reported nodes, and what a report says of each."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.kubernetes_api import node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.node_reports import assess_nodes
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.readiness import Query
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubernetes.plugin_pods import (
    GPU_LABEL,
    LABELS,
    READY,
    plugin,
    waiting,
)

QUERY = Query()


def test_assess_nodes_as_expected_has_no_reason() -> None:
    (report,) = assess_nodes([node("w1", 8)], [plugin(), pod("user", on="w1", gpus=3)], QUERY, {"w1": 8})
    assert (report.ok, report.reason, report.allocated, report.plugin_pod) == (True, "", 3, "plugin-x")


def test_assess_nodes_in_maintenance_names_time_and_reason() -> None:
    text = '{"was_schedulable": true, "reason": "driver 580", "since": "2026-08-23T07:00:00Z"}'
    cordoned = node("w1", 2, annotations={"gpu-kubernetes/maintenance": text}, unschedulable=True)
    [report] = assess_nodes([cordoned], [plugin()], QUERY, {"w1": 2})
    assert report.ok
    assert report.maintenance is not None
    assert report.reason == report.maintenance["message"]
    assert "since 2026-08-23T07:00:00Z for driver 580; run the playbook again if one was interrupted" in report.reason
    [lacking] = assess_nodes([cordoned], [plugin()], QUERY, {"w1": 3})
    assert (lacking.ok, lacking.maintenance) == (False, report.maintenance)
    [free] = assess_nodes([node("w1", 2)], [plugin()], QUERY, {"w1": 2})
    assert free.maintenance is None


def test_assess_nodes_without_control_characters_in_texts() -> None:
    bad = "\x1b]0;x\x07"
    failing_pod = plugin(waiting(bad, bad))
    failing_pod["status"]["containerStatuses"][0]["image"] = bad
    shown = node("w1", 2, 1)
    shown["status"]["nodeInfo"] = {"containerRuntimeVersion": bad * 1000}
    [report] = assess_nodes([shown], [failing_pod], QUERY, {"w1": 2})
    assert "waits (\\x1b]0;x\\x07)" in report.reason
    assert report.reason.isprintable()
    assert len(report.container_runtime_version) <= 300
    assert report.container_runtime_version.isprintable()


def test_assess_nodes_that_are_offline_at_the_edge_are_not_judged() -> None:
    offline = node("w1", 2, ready=False, labels={"superedge.io/node-edge": "enable"})
    offline["status"]["conditions"][0].update(status="Unknown", message="Kubelet stopped posting node status.")
    [report] = assess_nodes([offline], [plugin()], QUERY, {"w1": 2})
    assert (report.ok, report.judged, report.edge) == (False, False, "superedge")
    assert report.reason.startswith("is not judged, ")
    offline["metadata"]["labels"] = {}
    [report] = assess_nodes([offline], [plugin()], QUERY, {"w1": 2})
    assert (report.ok, report.judged, report.edge) == (False, True, "")


def test_assess_nodes_reads_the_version_of_edgecore() -> None:
    shown = node("w1", 2)
    shown["status"]["nodeInfo"] = {"kubeletVersion": "v1.32.10-kubeedge-v1.23.1"}
    [report] = assess_nodes([shown], [plugin()], QUERY, {"w1": 2})
    assert (report.ok, report.judged, report.edge) == (True, True, "kubeedge")


def test_assess_nodes_without_expectation_compares_capacity() -> None:
    nodes = [node("cpu"), node("full", 2), node("ill", 2, 1), node("bare", labels=GPU_LABEL)]
    reports = assess_nodes(nodes, [], QUERY)
    assert [(report.name, report.ok) for report in reports] == [("bare", False), ("full", True), ("ill", False)]


FOLDER = [{"name": "d", "hostPath": {"path": "/var/lib/kubelet/device-plugins"}}]


@pytest.mark.parametrize(
    ("other_plugin", "found"),
    [
        (
            pod("g-1", on="w1", namespace="gpu", image="reg/acs/k8s-gpushare-plugin:v2", volumes=FOLDER, owner="g"),
            ["gpu/g"],
        ),
        (pod("n", on="w1", namespace="x", image="nvcr.io/nvidia/k8s-device-plugin:v1", volumes=FOLDER), ["x/n"]),
        (pod("gfd", on="w1", image="nvcr.io/nvidia/k8s-device-plugin:v1"), []),
        (pod("amd", on="w1", image="docker.io/rocm/k8s-device-plugin:1", volumes=FOLDER), []),
        (pod("fpga", on="w1", image="example/fpga-plugin:1", volumes=FOLDER), []),
        (plugin(image="nvcr.io/nvidia/k8s-device-plugin:v1", volumes=FOLDER), []),
    ],
)
def test_find_other_plugins_by_image(other_plugin: Any, found: list[str]) -> None:
    (report,) = assess_nodes([node("w1", 8)], [other_plugin], QUERY, {"w1": 8})
    assert report.unmanaged_plugins == found


@pytest.mark.parametrize(
    ("image", "resource", "found"),
    [
        ("docker.io/rocm/k8s-device-plugin:1", "amd.com/gpu", ["gpu/other"]),
        ("docker.io/rocm/k8s-device-plugin:1", "amd.com/cpx_nps4", ["gpu/other"]),
        ("docker.io/rocm/k8s-device-plugin:1", "gpu.intel.com/xe", []),
        ("nvcr.io/nvidia/k8s-device-plugin:v1", "amd.com/gpu", []),
        ("intel/intel-gpu-plugin:0.35.0", "gpu.intel.com/i915", ["gpu/other"]),
        # It offers other devices of the vendor.
        ("intel/intel-qat-plugin:0.35.0", "gpu.intel.com/i915", []),
    ],
)
def test_find_other_plugins_of_the_vendor_of_the_resource(image: str, resource: str, found: list[str]) -> None:
    other = pod("o", on="w1", namespace="gpu", image=image, volumes=FOLDER, owner="other")
    (report,) = assess_nodes([node("w1")], [other], Query(resource), {"w1": {resource: 0}})
    assert report.unmanaged_plugins == found


def test_assess_nodes_without_expectation_finds_those_with_the_label_of_the_vendor() -> None:
    nodes = [node("amd", labels={"gpu-kubernetes/amd.present": "true"}), node("nvidia", labels=GPU_LABEL)]
    assert [report.name for report in assess_nodes(nodes, [], Query("amd.com/gpu"))] == ["amd"]


def test_assess_nodes_without_the_pod_of_the_mps_daemon() -> None:
    """The pods of NVIDIA's chart have the same labels."""
    daemon = pod(
        "mps-x",
        on="w1",
        namespace="kube-system",
        labels=LABELS,
        status=READY,
        owner="nvidia-device-plugin-mps-control-daemon",
    )
    [report] = assess_nodes([node("w1", 1)], [daemon, plugin(owner="nvidia-device-plugin")], QUERY, {"w1": 1})
    assert (report.as_dict()["plugin_pod"], report.ok) == ("plugin-x", True)
    [report] = assess_nodes([node("w1", 1)], [daemon], QUERY, {"w1": 1})
    assert report.as_dict()["plugin_pod"] == ""


@pytest.mark.parametrize(
    ("shown", "pods", "stale"),
    [
        (node("w1", 2), [plugin()], True),
        (node("w1", 4), [plugin()], False),
        (node("w1", 4, 3), [plugin()], False),  # an unhealthy GPU
        (node("w1", 4, 0), [plugin()], False),
        (node("w1", 2, ready=False), [plugin()], False),
        (node("w1", 2), [plugin(waiting("CrashLoopBackOff"))], False),
        (node("w1", 2), [plugin(annotations={"sum": "former"})], False),
        (node("w1"), [], False),
    ],
)
def test_plugin_is_stale_if_it_runs_and_has_registered_other_units(shown: Any, pods: Any, stale: bool) -> None:
    for each in pods:
        each["metadata"]["annotations"].setdefault("sum", "1")
    query = Query(pod_annotations={"sum": "1"})
    assert [each.plugin_stale for each in assess_nodes([shown], pods, query, {"w1": 4})] == [stale]


def test_plugin_of_a_former_resource_is_not_stale() -> None:
    """The kubelet reports the capacity of a resource without a plugin for some minutes."""
    shown = node("w1", 2, 0)
    for amounts in (shown["status"]["capacity"], shown["status"]["allocatable"]):
        amounts["amd.com/cpx_nps4"] = "4"
    wanted = {"w1": {"nvidia.com/gpu": 0, "amd.com/cpx_nps4": 4}}
    assert [each.plugin_stale for each in assess_nodes([shown], [plugin()], QUERY, wanted)] == [False]
