# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An upgrade up to the driver itself: whom it waits for, what it counts and what it proves."""

from __future__ import annotations

import copy
import json
import os

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT, task_of
from ansible_collections.gpu.kubernetes.tests.unit.roles.nvidia_driver_upgrade.upgraded import (
    PLAN,
    RESULT,
    encoded,
    note,
    offering,
    placed,
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


#: The phase of an upgrade that was cut off, and whether the run that goes on has to be told the driver again.
PHASES = {"noted": True, "releasing": True, "swapping": True, "returning": False, "proved": False}


def test_a_run_that_goes_on_has_to_be_told_where_to(made, tmp_path):
    task = task_of("nvidia_driver_upgrade", "plan", "Require a version or a branch")
    hosts = {}
    for phase in PHASES:
        (tmp_path / phase).mkdir()
        read = encoded(note(tmp_path / phase, phase=phase))
        hosts[phase] = {"nvidia_driver_plan": {**PLAN, "to": ""}, "__nvidia_driver_upgrade_read": read}
    hosts["not-begun"] = {"nvidia_driver_plan": {**PLAN, "to": ""}}
    told = made("nvidia_driver_upgrade", hosts, "''", task)
    assert told["not-begun"].startswith("not-begun: no other driver than 570.1 is requested; set nvidia_driver_version")
    for phase, refused in PHASES.items():
        words = f"{phase}: an upgrade from driver 570.1 was interrupted, and needs its target again to resume; set"
        assert (told[phase] or "").startswith(words) is refused, told
        assert bool(told[phase]) is refused, told


def test_a_pod_that_its_budget_keeps_is_named_and_the_node_given_back(refusals, cluster, given, tmp_path):
    """Of an upgrade that had only to end the maintenance: another driver is requested now, and the run begins again."""
    first = copy.deepcopy(cluster.put(offering("w1", {"nvidia.com/gpu": "2"})))
    cluster.put(placed("web", gpus=1, owner="web", owner_kind="ReplicaSet"))
    cluster.refuse = lambda _pod: BUDGET
    path = note(tmp_path, phase="proved", **{"from": "560.1"})
    params = {"nvidia_driver_plan": {**PLAN, "due": True}, "__nvidia_driver_upgrade_read": encoded(path)}
    told = refusals(
        "nvidia_driver_upgrade",
        ["upgrade"],
        {"w1": {**given, **params, "gpu_node_maintenance_evict_timeout": 1}},
    )
    assert (
        "default/web is protected by a PodDisruptionBudget (The disruption budget web needs 1 healthy pods)"
        in told["w1"]
    )
    assert told["w1"].endswith("Driver 570.1 was not changed, and the maintenance of node w1 has ended.")
    (now,) = cluster.all("Node")
    assert (now["spec"], now["metadata"].get("annotations") or {}) == (first["spec"], {})
    assert len(cluster.all("Pod")) == 1
    assert not path.exists()


@pytest.mark.thorough
def test_upgrade_with_wrong_installer_checksum_uncordons_the_node(refusals, cluster, given, tmp_path):
    """An interrupted run had cordoned the node."""
    maintenance = {"was_schedulable": True, "reason": "NVIDIA driver upgrade", "since": "2026-01-01T00:00:00Z"}
    annotations = {"gpu-kubernetes/maintenance": json.dumps(maintenance)}
    cluster.put(offering("w1", {"nvidia.com/gpu": "2"}, unschedulable=True, annotations=annotations))
    path = note(tmp_path)
    (tmp_path / "installer.run").write_text("an installer")
    params = {
        "nvidia_driver_method": "runfile",
        "nvidia_driver_runfile": {"url": (tmp_path / "installer.run").as_uri(), "checksum": "sha256:" + "0" * 64},
        "nvidia_driver_state_dir": str(tmp_path),
        "__nvidia_driver_upgrade_read": encoded(path),
    }
    told = refusals("nvidia_driver_upgrade", ["upgrade"], {"w1": {**given, **params}})
    assert "The checksum for" in told["w1"]
    assert told["w1"].endswith("Driver 570.1 was not changed, and the maintenance of node w1 has ended.")
    (node,) = cluster.all("Node")
    assert not node["spec"].get("unschedulable")
    assert not node["metadata"].get("annotations")
    assert not path.exists()


def test_who_has_the_driver_open_is_named_by_pod(refusals, cluster, given, tmp_path):
    note(tmp_path)
    cluster.put(offering("w1", {"nvidia.com/gpu": "2"}))
    for name, keys in (("train", {"uid": UID}), ("static", {"annotations": {"kubernetes.io/config.hash": HASH}})):
        item = placed(name)
        item["metadata"].update(keys)
        cluster.put(item)
    cluster.put(placed("elsewhere", on="w2"))
    users = {
        "users": [{"pod_uid": UID}, {"pod_uid": HASH}, {"pod_uid": None}],
        "reboot_reasons": [
            f"train (pid 1) in pod {UID} uses the GPUs",
            f"s (pid 2) in pod {HASH} uses the GPUs",
            "dcgm (pid 3) uses the GPUs",
        ],
    }
    told = refusals(
        "nvidia_driver_upgrade",
        ["release"],
        {"w1": {**given, "nvidia_driver_upgrade_release_timeout": 2}},
        extra={"__nvidia_driver_upgrade_users": users, "__nvidia_driver_upgrade_running": []},
    )
    assert told["w1"].startswith(
        "w1: train (pid 1) in pod default/train uses the GPUs, and s (pid 2) in pod default/static uses the GPUs, "
        "and dcgm (pid 3) uses the GPUs, 2 seconds after"
    )


def test_all_that_was_offered_has_to_be_there_again(refusals, cluster, given, tmp_path):
    cluster.put(offering("w1", {"aliyun.com/gpu-mem": "31", "nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "7"}))
    note(tmp_path).unlink()
    extra = {"__nvidia_driver_upgrade_running": []}
    told = refusals("nvidia_driver_upgrade", ["record"], {"w1": given}, extra=extra)
    assert told == {"w1": ""}
    written = json.loads((tmp_path / "state" / "driver-upgrade.json").read_text())
    assert written["offered"] == {"aliyun.com/gpu-mem": 31, "nvidia.com/mig-1g.5gb": 7}
    cluster.put(offering("w1", {"aliyun.com/gpu-mem": "0", "nvidia.com/gpu": "0", "nvidia.com/mig-1g.5gb": "7"}))
    extra = {"__nvidia_driver_upgrade_read": encoded(tmp_path / "state" / "driver-upgrade.json")}
    hosts = {"w1": {**given, "nvidia_driver_upgrade_wait_timeout": 1}}
    told = refusals("nvidia_driver_upgrade", ["resume"], hosts, extra=extra)
    assert "node w1: 0 of 31 aliyun.com/gpu-mem allocatable; check the pod of its device plugin" in told["w1"]
    assert "mig" not in told["w1"]


def test_what_was_offered_before_the_swap_is_not_taken_for_the_new_drivers(refusals, cluster, given, tmp_path):
    paused = {"gpu-kubernetes/paused": "nvidia-driver-upgrade"}
    owned = json.dumps({"nvidia_driver_upgrade": {key: {"set": value, "was": None} for key, value in paused.items()}})
    annotations = {"gpu-kubernetes/managed-labels": owned}
    cluster.put(offering("w1", {"nvidia.com/gpu": "2"}, labels=paused, annotations=annotations))
    reports, told = iter(["2", "2", "0"]), []  # the kubelet is late

    def report(_cluster):
        (item,) = cluster.all("Node")
        if "gpu-kubernetes/paused" in item["metadata"]["labels"]:
            item["status"]["allocatable"]["nvidia.com/gpu"] = next(reports, "0")
        else:
            told.append(item["status"]["allocatable"]["nvidia.com/gpu"])
            item["status"]["allocatable"]["nvidia.com/gpu"] = "2"

    cluster.look = report
    extra = {"__nvidia_driver_upgrade_read": encoded(note(tmp_path, offered={"nvidia.com/gpu": 2}))}
    hosts = {"w1": {**given, "nvidia_driver_upgrade_wait_timeout": 20}}
    assert refusals("nvidia_driver_upgrade", ["resume"], hosts, extra=extra) == {"w1": ""}
    assert told[0] == "0"


def test_nodes_of_a_batch_are_proved_by_what_each_offers(refusals, cluster, given):
    """It fails before there is a pod, and says what the pod would have requested."""
    params = {"a": "nvidia.com/gpu", "b": "nvidia.com/mig-1g.5gb", "c": "nvidia.com/gpu"}
    for name in params:
        cluster.put(offering(name, {}))
    told = refusals(
        "nvidia_driver_upgrade",
        ["verify"],
        {name: {**given, "gpu_node_name": name, "offers": [resource]} for name, resource in params.items()},
        facts={"nvml": {"gpus": [{}]}},
        extra={"gpu_preflight_gpus": {"ansible_facts": {}}, "__nvidia_driver_upgrade_testable": "{{ offers }}"},
    )
    for name, resource in params.items():
        assert f"(node {name}) did not pass the GPU test: offers 0 {resource}, so" in told[name]


#: What a node offered, what else is set, which resource a pod requests, and why nothing is proved.
PROOFS = {
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


def test_services_are_named_with_or_without_their_suffix(hear):
    services = {f"{name}.service": {"name": f"{name}.service", "state": state} for name, state in RUNNING.items()}
    variables = yaml.safe_load((ROOT / "roles" / "nvidia_driver_upgrade" / "vars" / "main.yml").read_text())
    units = variables["__nvidia_driver_upgrade_units"]
    named = ["dcgm", "exporter.service", "stopped", "nobody"]
    found = hear(
        {"w1": {"nvidia_driver_upgrade_services": named, "__nvidia_driver_upgrade_units": units}},
        [],
        variables["__nvidia_driver_upgrade_running"].strip().removeprefix("{{").removesuffix("}}").strip(),
        facts={"services": services},
    )
    assert found == ["dcgm.service", "exporter.service"]


def test_what_no_pod_has_proved_is_told(hear):
    role = ROOT / "roles" / "nvidia_driver_upgrade"
    defaults = {"nvidia_driver_upgrade_resource_name": "nvidia.com/gpu", "nvidia_driver_upgrade_smoke_test": True}
    hosts = {
        name: {**defaults, "record": {"offered": offered}, **params} for name, (offered, params, *_x) in PROOFS.items()
    }
    told = "[__nvidia_driver_upgrade_testable | first | default(''), __nvidia_driver_upgrade_unproved]"
    result = {**RESULT, "host": "{{ inventory_hostname }}", "state": "upgraded", "evicted": [], "waited_for": []}
    result["unproved"] = "{{ __nvidia_driver_upgrade_unproved }}"
    tasks = [{"ansible.builtin.set_fact": {"told": "{{ " + told + " }}", "one": result}}]
    play = {"hosts": "all", "gather_facts": False, "vars_files": [f"{role}/vars/main.yml"], "tasks": tasks}
    report = (
        "{'told': dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'told'))), 'report': "
        f"lookup('ansible.builtin.template', '{role}/templates/report.j2', template_vars="
        "{'__nvidia_driver_upgrade_results': ansible_play_hosts | map('extract', hostvars, 'one') | list}).splitlines()}"
    )
    heard = hear(hosts, [play], report, __nvidia_driver_upgrade_record="{{ record }}")
    assert heard["told"] == {name: list(expected) for name, (_offered, _asked, *expected) in PROOFS.items()}
    assert heard["report"][0] == "whole: upgraded (570.1 -> 580.1)"
    assert heard["report"][4:] == [
        "nothing: upgraded (570.1 -> 580.1); NOT VERIFIED by a pod: the node reported no GPUs before",
        "untested: upgraded (570.1 -> 580.1); NOT VERIFIED by a pod: nvidia_driver_upgrade_smoke_test is false",
    ]
