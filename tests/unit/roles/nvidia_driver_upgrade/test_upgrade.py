# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade without the driver itself: its waits, its counts of GPUs, and the verification."""

from __future__ import annotations

import copy
import json
import os

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT
from ansible_collections.gpu.kubernetes.tests.unit.roles.nvidia_driver_upgrade.upgrade_objects import (
    PLAN,
    RESULT,
    encode_record,
    make_node,
    make_pod,
    write_record,
)

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)

UID, HASH = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9", "d0a1" * 8
RUNNING = {"dcgm": "running", "exporter": "running", "stopped": "stopped"}

BUDGET = {
    "message": "Cannot evict pod as it would violate the pod's disruption budget.",
    "details": {
        "causes": [{"reason": "DisruptionBudget", "message": "The disruption budget web needs 1 healthy pods"}]
    },
}


def test_upgrade_that_cannot_begin_ends_the_maintenance_unless_the_driver_is_unfinished(
    refusals, cluster, host_variables, tmp_path
):
    """Of a run that had only to end the maintenance and begins another upgrade; one whose driver is unfinished; one with a wrong checksum."""
    before = copy.deepcopy(cluster.put(make_node("protected", {"nvidia.com/gpu": "2"})))
    cluster.put(make_node("unfinished", {"nvidia.com/gpu": "2"}))
    for name in ("protected", "unfinished"):
        cluster.put(make_pod(f"on-{name}", on=name, gpus=1, owner="web", owner_kind="ReplicaSet"))
    cluster.refuse = lambda _pod: BUDGET
    # An interrupted run had cordoned the third node.
    maintenance = {"was_schedulable": True, "reason": "NVIDIA driver upgrade", "since": "2026-01-01T00:00:00Z"}
    annotations = {"gpu-kubernetes/maintenance": json.dumps(maintenance)}
    cluster.put(make_node("checksum", {"nvidia.com/gpu": "2"}, unschedulable=True, annotations=annotations))
    (tmp_path / "installer.run").write_text("an installer")
    runfile = {"url": (tmp_path / "installer.run").as_uri(), "checksum": "sha256:" + "0" * 64}
    cases = {
        "protected": (
            {"phase": "verified", "from": "560.1"},
            {"nvidia_driver_plan": {**PLAN, "due": True}, "gpu_node_maintenance_evict_timeout": 1},
        ),
        "unfinished": ({"phase": "installing"}, {"gpu_node_maintenance_evict_timeout": 1}),
        "checksum": ({}, {"nvidia_driver_method": "runfile", "nvidia_driver_runfile": runfile}),
    }
    hosts, paths = [], {}
    for name, (record, variables) in cases.items():
        (tmp_path / name).mkdir()
        paths[name] = write_record(tmp_path / name, **record)
        where = {
            "gpu_node_name": name,
            "nvidia_driver_state_dir": str(tmp_path / name),
            "nvidia_driver_upgrade_state_dir": str(tmp_path / name),
            "nvidia_driver_upgrade_result": {**RESULT, "host": name, "node": name},
            "nvidia_driver_upgrade_max_unavailable": 3,
            "__nvidia_driver_upgrade_read": encode_record(paths[name]),
        }
        hosts.append({name: {**host_variables, **where, **variables}})
    # One play for each host: each is a batch of its own.
    results = refusals("nvidia_driver_upgrade", ["upgrade"], *hosts)
    nodes = {item["metadata"]["name"]: item for item in cluster.all("Node")}

    assert (
        "default/on-protected is protected by a PodDisruptionBudget (The disruption budget web needs 1 healthy pods)"
        in results["protected"]
    )
    assert "The checksum for" in results["checksum"]
    for name in ("protected", "checksum"):
        words = f"Driver 570.1 was not changed, and the maintenance of node {name} has ended."
        assert results[name].endswith(words), results[name]
        assert not nodes[name]["spec"].get("unschedulable")
        assert not nodes[name]["metadata"].get("annotations")
        assert not paths[name].exists()
    assert nodes["protected"]["spec"] == before["spec"]
    assert results["unfinished"].endswith("node unfinished stays cordoned, and the next run resumes."), results
    assert nodes["unfinished"]["spec"].get("unschedulable")
    assert paths["unfinished"].exists()
    assert len(cluster.all("Pod")) == 2


def test_processes_that_use_the_driver_are_named_by_pod(refusals, cluster, host_variables, tmp_path):
    write_record(tmp_path)
    cluster.put(make_node("w1", {"nvidia.com/gpu": "2"}))
    for name, keys in (("train", {"uid": UID}), ("static", {"annotations": {"kubernetes.io/config.hash": HASH}})):
        item = make_pod(name)
        item["metadata"].update(keys)
        cluster.put(item)
    cluster.put(make_pod("elsewhere", on="w2"))
    users = {
        "users": [{"pod_uid": UID}, {"pod_uid": HASH}, {"pod_uid": None}],
        "reboot_reasons": [
            f"train (pid 1) in pod {UID} uses the GPUs",
            f"s (pid 2) in pod {HASH} uses the GPUs",
            "dcgm (pid 3) uses the GPUs",
        ],
    }
    results = refusals(
        "nvidia_driver_upgrade",
        ["release"],
        {"w1": {**host_variables, "nvidia_driver_upgrade_release_timeout": 2}},
        extra={"__nvidia_driver_upgrade_users": users, "__nvidia_driver_upgrade_running": []},
    )
    assert results["w1"].startswith(
        "w1: train (pid 1) in pod default/train uses the GPUs, and s (pid 2) in pod default/static uses the GPUs, "
        "and dcgm (pid 3) uses the GPUs, 2 seconds after"
    )


def test_all_former_resources_must_be_allocatable_again(refusals, cluster, host_variables, tmp_path):
    cluster.put(make_node("w1", {"aliyun.com/gpu-mem": "31", "nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "7"}))
    write_record(tmp_path).unlink()
    extra = {"__nvidia_driver_upgrade_running": []}
    results = refusals("nvidia_driver_upgrade", ["record"], {"w1": host_variables}, extra=extra)
    assert results == {"w1": ""}
    written = json.loads((tmp_path / "state" / "driver-upgrade.json").read_text())
    assert written["allocatable"] == {"aliyun.com/gpu-mem": 31, "nvidia.com/mig-1g.5gb": 7}
    cluster.put(make_node("w1", {"aliyun.com/gpu-mem": "0", "nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "7"}))
    extra = {"__nvidia_driver_upgrade_read": encode_record(tmp_path / "state" / "driver-upgrade.json")}
    hosts = {"w1": {**host_variables, "nvidia_driver_upgrade_wait_timeout": 1}}
    results = refusals("nvidia_driver_upgrade", ["resume"], hosts, extra=extra)
    assert "node w1: 0 of 31 aliyun.com/gpu-mem allocatable; check the pod of its device plugin" in results["w1"]
    assert "mig" not in results["w1"]


def test_allocatable_from_before_the_upgrade_does_not_count(refusals, cluster, host_variables, tmp_path):
    paused = {"gpu-kubernetes/paused": "nvidia-driver-upgrade"}
    owned = json.dumps({"nvidia_driver_upgrade": {key: {"set": value, "was": None} for key, value in paused.items()}})
    annotations = {"gpu-kubernetes/managed-labels": owned}
    cluster.put(make_node("w1", {"nvidia.com/gpu": "2"}, labels=paused, annotations=annotations))
    reports, resumed = iter(["2", "2", "0"]), []  # the kubelet is late

    def report(_cluster):
        (item,) = cluster.all("Node")
        if "gpu-kubernetes/paused" in item["metadata"]["labels"]:
            item["status"]["allocatable"]["nvidia.com/gpu"] = next(reports, "0")
        else:
            resumed.append(item["status"]["allocatable"]["nvidia.com/gpu"])
            item["status"]["allocatable"]["nvidia.com/gpu"] = "2"

    cluster.before_read = report
    extra = {"__nvidia_driver_upgrade_read": encode_record(write_record(tmp_path, allocatable={"nvidia.com/gpu": 2}))}
    hosts = {"w1": {**host_variables, "nvidia_driver_upgrade_wait_timeout": 20}}
    assert refusals("nvidia_driver_upgrade", ["resume"], hosts, extra=extra) == {"w1": ""}
    assert resumed[0] == "0"


def test_nodes_of_a_batch_are_verified_by_their_own_resources(refusals, cluster, host_variables):
    """The test fails before it creates a pod, and names the resource that the pod would request."""
    params = {"a": "nvidia.com/gpu", "b": "nvidia.com/mig-1g.5gb", "c": "nvidia.com/gpu"}
    for name in params:
        cluster.put(make_node(name, {}))
    results = refusals(
        "nvidia_driver_upgrade",
        ["verify"],
        {
            name: {**host_variables, "gpu_node_name": name, "node_resources": [resource]}
            for name, resource in params.items()
        },
        facts={"nvml": {"gpus": [{}]}},
        extra={"gpu_preflight_gpus": {"ansible_facts": {}}, "__nvidia_driver_upgrade_testable": "{{ node_resources }}"},
    )
    for name, resource in params.items():
        assert f"(node {name}) did not pass the GPU test: has 0 allocatable {resource}, so" in results[name]


#: Former resources of a node, variables, the resource that a pod requests, and why nothing is verified.
VERIFICATIONS = {
    "whole": ({"nvidia.com/gpu": 2}, {}, "nvidia.com/gpu", ""),
    "mixed": ({"nvidia.com/mig-2g.10gb": 1, "nvidia.com/mig-1g.5gb": 7}, {}, "nvidia.com/mig-1g.5gb", ""),
    "named": ({"a.example/gpu": 2}, {"nvidia_driver_upgrade_resource_name": "a.example/gpu"}, "a.example/gpu", ""),
    "shared": (
        {"aliyun.com/gpu-mem": 31, "aliyun.com/gpu-count": 2},
        {},
        "",
        "the node reports aliyun.com/gpu-count, aliyun.com/gpu-mem, which the test does not request",
    ),
    "nothing": ({}, {}, "", "the node reported no GPUs before"),
    "untested": (
        {"nvidia.com/gpu": 2},
        {"nvidia_driver_upgrade_smoke_test": False},
        "nvidia.com/gpu",
        "nvidia_driver_upgrade_smoke_test is false",
    ),
}


def test_upgrade_without_a_verification_is_reported(evaluate):
    """And the running ones of the services, which are named with or without their suffix."""
    role = ROOT / "roles" / "nvidia_driver_upgrade"
    defaults = {"nvidia_driver_upgrade_resource_name": "nvidia.com/gpu", "nvidia_driver_upgrade_smoke_test": True}
    defaults["nvidia_driver_upgrade_services"] = ["dcgm", "exporter.service", "stopped", "missing"]
    hosts = {
        name: {**defaults, "record": {"allocatable": allocatable}, **params}
        for name, (allocatable, params, *_expected) in VERIFICATIONS.items()
    }
    verification = "[__nvidia_driver_upgrade_testable | first | default(''), __nvidia_driver_upgrade_unverified]"
    result = {**RESULT, "host": "{{ inventory_hostname }}", "state": "upgraded", "evicted": [], "waited_for": []}
    running = "{{ __nvidia_driver_upgrade_running }}"
    result["unverified"] = "{{ __nvidia_driver_upgrade_unverified }}"
    tasks = [
        {"ansible.builtin.set_fact": {"verification": "{{ " + verification + " }}", "one": result, "running": running}}
    ]
    play = {"hosts": "all", "gather_facts": False, "vars_files": [f"{role}/vars/main.yml"], "tasks": tasks}
    report = (
        "{'verification': dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'verification'))), 'running': hostvars.whole.running, "
        "'report': "
        f"lookup('ansible.builtin.template', '{role}/templates/report.j2', template_vars="
        "{'__nvidia_driver_upgrade_results': ansible_play_hosts | map('extract', hostvars, 'one') | list}).splitlines()}"
    )
    services = {f"{name}.service": {"name": f"{name}.service", "state": state} for name, state in RUNNING.items()}
    rendered = evaluate(
        hosts, [play], report, facts={"services": services}, __nvidia_driver_upgrade_record="{{ record }}"
    )
    assert rendered["running"] == ["dcgm.service", "exporter.service"]
    assert rendered["verification"] == {
        name: list(expected) for name, (_allocatable, _params, *expected) in VERIFICATIONS.items()
    }
    assert rendered["report"][0] == "whole: upgraded (570.1 -> 580.1)"
    assert rendered["report"][4:] == [
        "nothing: upgraded (570.1 -> 580.1); NOT VERIFIED by a pod: the node reported no GPUs before",
        "untested: upgraded (570.1 -> 580.1); NOT VERIFIED by a pod: nvidia_driver_upgrade_smoke_test is false",
    ]
