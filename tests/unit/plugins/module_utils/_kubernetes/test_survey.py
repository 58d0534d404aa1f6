# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reads of a survey, and its wait until the nodes are as expected."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.kubernetes_api import FakeClock, FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.readiness import Query
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.retries import Timing, Wait
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.survey import survey_nodes
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubernetes.plugin_pods import (
    GPU_LABEL,
    NVML_LOG,
    PINNED,
    daemon_set,
    plugin,
)

QUERY = Query()


def start_wait(seconds: float) -> tuple[Wait, FakeClock]:
    clock = FakeClock()
    return Wait(Timing(clock, clock.sleep), seconds, 5, 5), clock


def test_survey_nodes_as_expected_makes_two_lists() -> None:
    cluster = FakeCluster([node(f"w{number}", 1) for number in range(50)], [])
    assert all(report.ok for report in survey_nodes(cluster, QUERY, None).reports)
    assert sorted(cluster.calls) == ["nodes", "pods"]


def test_survey_nodes_of_one_node_does_not_list_others() -> None:
    """A pod without a node may belong to this one, so it is reported."""
    pending_pod = plugin(status={"phase": "Pending"}, affinity=PINNED)
    del pending_pod["spec"]["nodeName"]
    cluster = FakeCluster(
        [node(f"w{number}", 1) for number in range(50)], [pending_pod, pod("own", on="w1", gpus=1), pod("far", on="w2")]
    )

    def schedule(api: FakeCluster) -> None:
        if api.calls == ["node", "pods", "pods"]:
            pending_pod["spec"]["nodeName"] = "w1"

    for _round in range(2):
        cluster.calls.clear()
        (report,) = survey_nodes(cluster, QUERY, {"w1": 1}).reports
        assert (report.ok, report.allocated, report.plugin_pod) == (True, 1, "plugin-x")
        assert cluster.calls == ["node", "pods", "pods"]
        cluster.on_list = schedule
    (report,) = survey_nodes(cluster, QUERY, {"gone": 1}).reports
    assert (report.known, "nodes" in cluster.calls) == (False, False)
    assert "is not in the cluster" in report.reason


def test_survey_nodes_with_failure_reads_log_and_events() -> None:
    cluster = FakeCluster([node("w1")], [plugin()])
    cluster.logs["plugin-x"] = NVML_LOG
    (report,) = survey_nodes(cluster, QUERY, {"w1": 8}).reports
    assert "No devices found" in report.reason
    assert cluster.calls.count("events") == 1
    assert cluster.calls.count("log") == 1
    assert "daemon_sets" not in cluster.calls


def test_survey_nodes_with_wait_returns_once_gpus_appear() -> None:
    cluster = FakeCluster([node("w1")], [plugin()])
    wait, clock = start_wait(60)

    def appear(api: FakeCluster) -> None:
        if clock.time >= 10:
            api.store_nodes["w1"] = node("w1", 8)

    cluster.on_list = appear
    (report,) = survey_nodes(cluster, QUERY, {"w1": 8}, wait).reports
    assert report.ok
    assert clock.time == 10


@pytest.mark.parametrize(("status", "is_transient"), [(0, True), (503, True), (403, False)])
def test_survey_nodes_with_unreachable_server_retries(status: int, is_transient: bool) -> None:
    cluster = FakeCluster([node("w1", 8)], [plugin()])
    wait, clock = start_wait(60)

    def fail(_api: FakeCluster) -> None:
        if clock.time < 10:
            raise ApiError("cannot be reached", status)

    cluster.on_list = fail
    if is_transient:
        assert [report.ok for report in survey_nodes(cluster, QUERY, {"w1": 8}, wait).reports] == [True]
        assert clock.time == 10
    else:
        with pytest.raises(ApiError):
            survey_nodes(cluster, QUERY, {"w1": 8}, wait)


def test_survey_nodes_after_timeout_reports_failure() -> None:
    cluster = FakeCluster([node("w1")], [])
    cluster.daemon_set_list = [daemon_set(GPU_LABEL)]
    wait, clock = start_wait(12)
    (report,) = survey_nodes(cluster, QUERY, {"w1": 8}, wait).reports
    assert "lacks the label" in report.reason
    assert clock.time == 12


def test_survey_nodes_without_rights_explains_the_rest() -> None:
    cluster = FakeCluster([node("w1"), node("w2")], [plugin()])

    def forbid(_namespace: str) -> Any:
        raise ApiError("forbidden", 403)

    cluster.daemon_sets = cluster.warning_events = forbid  # type: ignore[method-assign, assignment]
    reports = survey_nodes(cluster, QUERY, {"w1": 8, "w2": 8}).reports
    assert ["has registered no GPU" in reports[0].reason, "no plugin pod" in reports[1].reason] == [True, True]


def test_survey_nodes_names_others_in_maintenance_without_further_requests() -> None:
    text = '{"since": "2026-08-23T07:00:00Z", "reason": "driver", "was_schedulable": true}'
    annotations = {"gpu-kubernetes/maintenance": text}
    nodes = [
        node("w1", 8),
        node("w3", annotations=annotations, unschedulable=True),
        node("w2", annotations=annotations),
        node("w4", unschedulable=True),
    ]
    cluster = FakeCluster(nodes, [plugin()])
    others = survey_nodes(cluster, QUERY, {"w1": 8, "w9": 1}, explain=False).others_in_maintenance
    assert [(each["name"], each["schedulable"]) for each in others] == [("w2", True), ("w3", False)]
    assert "driver" in others[0]["maintenance"]["message"]
    assert len(cluster.calls) == 2


def test_survey_nodes_reads_the_cluster_policy_if_a_reported_node_has_a_label_of_the_operator() -> None:
    label = "nvidia.com/gpu.deploy.device-plugin"
    cluster = FakeCluster([node("w1", labels={label: "true"}), node("w2", labels={label: "false"}), node("w3")])
    cluster.policies = [{"spec": {"driver": {"enabled": False}}}]
    reports, _others, operator_plugins = survey_nodes(cluster, QUERY, {"w1": 0, "w2": 0})[:3]
    assert operator_plugins
    # Also for a node without the operator's device plugin.
    assert survey_nodes(cluster, QUERY, {"w2": 0}).operator_plugins
    cluster.calls.remove("cluster_policies")
    assert [report.gpu_operator for report in reports] == [
        ["toolkit", "device_plugin", "feature_discovery", "mig_manager"],
        ["toolkit", "feature_discovery", "mig_manager"],
    ]
    assert cluster.calls.count("cluster_policies") == 1
    [report] = survey_nodes(cluster, QUERY, {"w3": 0}).reports
    assert (report.gpu_operator, cluster.calls.count("cluster_policies")) == ([], 1)
    # What waits has read it before.
    [report] = survey_nodes(cluster, QUERY, {"w1": 0}, start_wait(10)[0]).reports
    assert (report.gpu_operator, cluster.calls.count("cluster_policies")) == ([], 1)
    # An operator that was removed has left its labels, and one without device plugins sets them.
    for policies in ([], [{"spec": {"devicePlugin": {"enabled": False}}}]):
        cluster.policies = policies
        [report], _others, operator_plugins = survey_nodes(cluster, QUERY, {"w1": 0})[:3]
        assert ("device_plugin" in report.gpu_operator, operator_plugins) == (False, False)
    # A GPUCluster is there instead of a ClusterPolicy.
    cluster.policies, cluster.gpu_cluster_list = [], [{"spec": {}}]
    [report], _others, operator_plugins = survey_nodes(cluster, QUERY, {"w1": 0})[:3]
    assert (report.gpu_operator, operator_plugins) == (["dra_driver"], False)


class OwnedCluster(FakeCluster):
    """A cluster with objects of other kinds; a kind that is missing is unknown to its API."""

    others: dict[tuple[str, str], list[dict[str, Any]]]

    def objects(self, api_version: str, kind: str, *_args: Any, **_options: Any) -> list[dict[str, Any]]:
        if (api_version, kind) not in self.others:
            raise ApiError(f"The API has no {kind}.", 404)
        return self.others[api_version, kind]


DEVICE_CLASS = ("resource.k8s.io/v1", "DeviceClass")


@pytest.mark.parametrize(
    ("resource", "others", "owners"),
    [
        ("amd.com/gpu", {}, ()),
        (
            "amd.com/cpx_nps4",
            {("amd.com/v1alpha1", "DeviceConfig"): [{"metadata": {"name": "default", "namespace": "kube-amd-gpu"}}]},
            ("AMD's GPU operator (DeviceConfig kube-amd-gpu/default)",),
        ),
        (
            "gpu.intel.com/xe",
            {("deviceplugin.intel.com/v1", "GpuDevicePlugin"): [{"metadata": {"name": "gpu"}}]},
            ("Intel's device plugins operator (GpuDevicePlugin gpu)",),
        ),
        (
            "amd.com/gpu",
            {
                DEVICE_CLASS: [
                    {"metadata": {"name": "spx"}, "spec": {"extendedResourceName": "amd.com/gpu"}},
                    {"metadata": {"name": "gpu.nvidia.com"}, "spec": {"extendedResourceName": "nvidia.com/gpu"}},
                    {"metadata": {"name": "plain"}, "spec": {}},
                ]
            },
            ("the DeviceClass spx (dynamic resource allocation of amd.com/gpu)",),
        ),
        # Kubernetes 1.33 and 1.32, without the name of an extended resource.
        (
            "amd.com/gpu",
            {("resource.k8s.io/v1beta2", "DeviceClass"): [{"metadata": {"name": "gpu.amd.com"}, "spec": {}}]},
            ("the DeviceClass gpu.amd.com (dynamic resource allocation)",),
        ),
        (
            "gpu.intel.com/xe",
            {("resource.k8s.io/v1beta1", "DeviceClass"): [{"metadata": {"name": "gpu.intel.com"}, "spec": {}}]},
            ("the DeviceClass gpu.intel.com (dynamic resource allocation)",),
        ),
        (
            "nvidia.com/gpu",
            {DEVICE_CLASS: [{"metadata": {"name": "x"}, "spec": {"extendedResourceName": "nvidia.com/gpu"}}]},
            (),
        ),
    ],
)
def test_survey_nodes_of_another_vendor_names_what_else_offers_its_gpus(
    resource: str, others: dict[tuple[str, str], list[dict[str, Any]]], owners: tuple[str, ...]
) -> None:
    cluster = OwnedCluster([node("w1")])
    cluster.others = {key: [{"kind": key[1], **item} for item in items] for key, items in others.items()}
    assert survey_nodes(cluster, Query(resource), {"w1": {resource: 0}}).owners == owners
    # What waits has read it before.
    assert survey_nodes(cluster, Query(resource), {"w1": {resource: 0}}, start_wait(1)[0]).owners == ()
