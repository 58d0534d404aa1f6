# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions.managed import OWNERS
from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions.managed_monitoring import plan_monitoring

BY_NAME = {row.name: row for row in OWNERS}
MARK = {"gpu-kubernetes/exporter": "true"}
POOL = {"eks.amazonaws.com/nodegroup": "gpu"}
REQUEST_ONLY = "GPUs are visible there only to pods that request them"
PODS = {"namespace": "gpu", "labels": {"app": "x"}, "port": "metrics", "exporter": "dcgm_exporter"}


def found(exporter: str, managed: bool = False) -> dict[str, t.Any]:
    return {"namespace": "gpu", "name": "found", "exporter": exporter, "owner": "", "managed": managed, "address": ""}


def plan(owners: t.Mapping[str, str], selector: t.Any = None, exporters: t.Any = None, **changed: t.Any) -> t.Any:
    """The plan of nodes by name, each of the owner of that name, and of the node plain without GPUs."""
    taints = [{"key": "sku", "value": "gpu", "effect": "NoSchedule"}]
    with_gpus = [
        ({"metadata": {"name": name}, "spec": {"taints": taints}}, BY_NAME[own]) for name, own in owners.items()
    ]
    nodes = {
        name: {"address": f"10.0.0.{number}", "exporters": (exporters or {}).get(name, [])}
        for number, name in enumerate([*owners, "plain"], 1)
    }
    request = {"mode": "exporter", "provider": "nvidia_gpu_exporter", "method": "daemonset", "nodes": nodes, "pods": {}}
    return plan_monitoring(with_gpus, selector or {}, {**request, **changed})


@pytest.mark.parametrize(
    ("owner", "exporters", "reason"),
    [
        pytest.param("EKS", [], "", id="eks"),
        pytest.param("AKS", [], "", id="aks"),
        pytest.param("EKS", [found("nvidia_gpu_exporter", managed=True)], "", id="second-run"),
        pytest.param("EKS", [found("amd_device_metrics_exporter")], "", id="other-vendor"),
        pytest.param("EKS", [found("dcgm_exporter")], "gpu/found serves the metrics", id="others"),
        pytest.param("OpenShift", [found("dcgm_exporter")], "gpu/found serves the metrics", id="operator"),
        # Their runtimes ignore the variable by which a pod gets all GPUs.
        pytest.param("GKE", [], REQUEST_ONLY, id="gke"),
        pytest.param("EKS Auto Mode", [], REQUEST_ONLY, id="auto-mode"),
        pytest.param("EKS with Bottlerocket", [], REQUEST_ONLY, id="bottlerocket"),
    ],
)  # fmt: skip
def test_exporter_runs_where_its_pods_see_gpus_and_no_other_serves_them(
    owner: str, exporters: t.Any, reason: str
) -> None:
    made = plan({"n1": owner}, exporters={"n1": exporters})
    assert made.refusals == []
    assert made.nodes == ([] if reason else ["n1"])
    assert made.labels == {"n1": {} if reason else MARK, "plain": {}}
    assert made.address == ("" if reason else "10.0.0.1")
    assert [note.startswith(f"No exporter is deployed on n1, since {reason}") for note in made.notes] == (
        [True] if reason else []
    )


def test_exporter_tolerates_the_taints_of_its_nodes() -> None:
    assert plan({"n1": "EKS"}).tolerations == [{"key": "sku", "operator": "Exists", "effect": "NoSchedule"}]


def test_selector_of_the_user_needs_no_label() -> None:
    made = plan({"n1": "EKS"}, POOL)
    assert (made.selector, made.labels, made.refusals) == (POOL, {"n1": {}, "plain": {}}, [])


@pytest.mark.parametrize(
    ("owners", "changed", "words"),
    [
        ({"n1": "EKS", "n2": "EKS Auto Mode"}, {"selector": POOL}, "gpu_managed_cluster_node_selector also selects n2"),
        ({"n1": "EKS"}, {"provider": "intel_xpumd"}, "Intel's xpumd serves no GPUs of NVIDIA"),
        ({"n1": "EKS"}, {"method": "archive"}, "gpu_exporter_method is archive, which needs the hosts"),
        ({"n1": "GKE"}, {"mode": "operator"}, "No exporter is deployed, so set gpu_prometheus_exporter_pods"),
    ],
)
def test_plan_refuses_what_needs_a_variable(owners: t.Any, changed: dict[str, t.Any], words: str) -> None:
    (refusal,) = plan(owners, **changed).refusals
    assert refusal.startswith(words)


def test_pods_of_others_are_monitored_without_an_exporter_of_this_collection() -> None:
    made = plan({"n1": "GKE"}, mode="operator", pods=PODS)
    assert (made.nodes, made.pods, made.refusals) == ([], PODS, [])
