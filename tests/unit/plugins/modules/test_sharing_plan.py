# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module passes its options and the state of the cluster to the plan, and returns plan, blockers and table."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from fakes.kubernetes_api import FakeCluster, node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.modules import sharing_plan


@pytest.fixture
def run(run_module: Any) -> Any:
    return partial(run_module, sharing_plan)


def request(strategy: str = "gpushare", name: str = "w1", **more: Any) -> dict[str, Any]:
    return {"host": name, "node": name, "strategy": strategy, "gpus": 2, **more}


def test_plan_blockers_and_table_are_returned(run: Any) -> None:
    cluster = FakeCluster([node("w1", 2)], [pod("a", on="w1", gpus=1)])
    result = run(cluster, hosts=[request()], control_planes=[])
    [row] = result["plan"]["nodes"]
    assert (row["from"], row["to"], row["node_present"]) == (["exclusive"], "gpushare", ["gpushare"])
    begins = ["Host w1 (node w1): its GPUs are shared as", "The inventory has no host in kube_control_plane,"]
    assert [sentence.startswith(begin) for sentence, begin in zip(result["blockers"], begins)] == [True, True]
    assert len(result["blockers"]) == 2
    assert result["table"][1] == "w1    w1    exclusive  gpushare  cordon, leave exclusive, enter gpushare, uncordon"
    assert result["changed"] is False


@pytest.mark.parametrize(
    ("given", "vendors"), [({}, ["nvidia"]), ({"vendors": []}, ["nvidia"]), ({"vendors": ["amd"]}, ["amd"])]
)
def test_host_without_known_vendors_has_gpus_of_nvidia(run: Any, given: dict[str, Any], vendors: list[str]) -> None:
    result = run(FakeCluster([node("w1", 2)]), hosts=[request("exclusive", **given)], control_planes=["cp"])
    assert [row["vendors"] for row in result["plan"]["nodes"]] == [vendors]


def test_workloads_that_no_node_can_run_afterwards_are_in_the_table_and_block_nothing(run: Any) -> None:
    cluster = FakeCluster([node("w1", 2)], [pod("a", gpus=1, owner="train", owner_kind="Job")])
    result = run(cluster, hosts=[request()], control_planes=["cp"])
    assert [(each["kind"], each["name"]) for each in result["stranded"]] == [("Job", "train")]
    sentence = "Job default/train requests 1 of nvidia.com/gpu, which no node that it selects offers after this change."
    assert f"WARNING: {sentence}" in result["table"]
    assert result["blockers"] == []


class ClusterWithCronJob(FakeCluster):
    """A cluster with a CronJob, of which no pod exists."""

    def objects(self, api_version: str, kind: str, *args: Any, **options: Any) -> list[dict[str, Any]]:
        self.calls.append(kind)
        container = {"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
        template = {"spec": {"containers": [container]}}
        nightly = {"kind": kind, "metadata": {"name": "nightly", "namespace": "team", "uid": "1"}}
        spec = {"jobTemplate": {"spec": {"template": template}}}
        return [{**nightly, "spec": spec}] if kind == "CronJob" else []


def test_workloads_without_pods_are_read_if_a_node_leaves_a_strategy(run: Any) -> None:
    cluster = ClusterWithCronJob([node("w1", 2)])
    result = run(cluster, hosts=[request()], control_planes=["cp"])
    assert [(each["kind"], each["name"]) for each in result["stranded"]] == [("CronJob", "nightly")]
    assert "Deployment" in cluster.calls
    cluster.calls.clear()
    assert run(cluster, hosts=[request("exclusive")])["stranded"] == []
    assert "Deployment" not in cluster.calls


def test_all_options_reach_the_plan(run: Any) -> None:
    cluster = FakeCluster([node("w1", labels={"gpushare": "true"}), node("w2", labels={"gpushare": "true"})])
    result = run(cluster, hosts=[request("")], state="absent")
    assert (result["plan"]["nodes"][0]["node_absent"], result["plan"]["cluster"]["kept"]) == (
        ["gpushare"],
        {"gpushare": ["w2"]},
    )
    options = {"second_scheduler": "nano_gpu", "control_planes": ["cp"], "left_out": ["cp"], "control_plane_group": "m"}
    result = run(cluster, hosts=[request("nano_gpu", "w3")], run_tags=["scheduler"], namespaces={"a": "b"}, **options)
    assert result["plan"]["cluster"]["scheduler_changes"] is False
    assert [sentence.partition(";")[0] for sentence in result["blockers"]] == ["Host w3: the cluster has no node w3"]


@pytest.mark.parametrize(
    ("hosts", "words"),
    [
        ([{"host": "h"}], "missing required arguments: node"),
        ([request("other")], "hosts names the unknown sharing strategy 'other'; choose one of exclusive, time_slicing"),
        ([request(extra=1)], "Unsupported parameters"),
    ],
)
def test_hosts_of_another_form_are_refused(run: Any, hosts: Any, words: str) -> None:
    assert words in run(FakeCluster([node("w1")]), hosts=hosts)["msg"]


@pytest.mark.parametrize(("allowed", "blockers"), [("false", 1), (False, 1), ("yes", 0), (True, 0)])
def test_removal_while_pods_hold_resources_is_allowed_by_any_form_of_true(
    run: Any, allowed: Any, blockers: int
) -> None:
    holder = pod("a", on="w1", containers=[{"name": "c", "resources": {"limits": {"aliyun.com/gpu-mem": "1"}}}])
    cluster = FakeCluster([node("w1", labels={"gpushare": "true"})], [holder])
    hosts = [request("", gpus="-1", remove_used={"gpushare": allowed})]
    assert len(run(cluster, hosts=hosts, state="absent")["blockers"]) == blockers


def test_api_server_that_does_not_answer_is_reported(run: Any) -> None:
    cluster = FakeCluster()

    def fail(_call: str) -> None:
        raise ApiError("cannot be reached")

    cluster.on_call = fail
    assert run(cluster, hosts=[request()])["msg"] == "cannot be reached"
