# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes may be upgraded at once, in which order, and the reported cause of a failure."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from fakes.loopback_api import write_kubeconfig

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT
from ansible_collections.gpu.kubernetes.tests.unit.roles.nvidia_driver_upgrade.upgrade_objects import (
    PLAN,
    RESULT,
    ROLE,
    encode_record,
    make_node,
    make_pod,
    write_record,
)

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)


def test_unavailable_nodes_count_towards_the_limit(refusals, cluster, host_variables):
    gpus = {"nvidia.com/gpu": "2"}
    for name, parts in {
        "w1": {},
        "w2": {},
        "w3": {},
        "cordoned": {"unschedulable": True},
        "unready": {"ready": False, "unschedulable": True},
    }.items():
        cluster.put(make_node(name, gpus, **parts))
    cluster.put(make_node("no-gpu", {}, unschedulable=True))
    #: Hosts of a batch by their nodes, the limit, and parts of the message, if any.
    batches = [
        ({"a": "w1"}, 2, "with w1 more GPU nodes", "2", "cordoned, unready are", "3"),
        ({"b": "w1"}, 3, ""),
        ({"c": "cordoned", "d": "unready"}, 1, ""),
        ({"e": "w1", "f": "w2"}, "50%", "with w1, w2 more GPU nodes", "1", "cordoned, unready are", "4"),
        ({"g": "w1", "h": "unready"}, 3, ""),
        ({"i": "w1", "j": "unready"}, 2, "with w1, unready more GPU nodes", "2", "cordoned is", "3"),
    ]
    groups = [
        {
            host: {
                **host_variables,
                "nvidia_driver_upgrade_max_unavailable": limit,
                "gpu_node_name": name,
                "nvidia_driver_upgrade_result": {"node": name},
            }
            for host, name in hosts.items()
        }
        for hosts, limit, *_words in batches
    ]
    results = refusals("nvidia_driver_upgrade", ["max_unavailable"], *groups)
    for hosts, _limit, words, *more in batches:
        for host in hosts:
            assert bool(results[host]) is bool(words), results[host]
            if words:
                limit, others, needed = more
                assert results[host] == (
                    f"{host}: not started, because {words} would be unavailable than the {limit} of nvidia_driver_upgrade_max_unavailable: "
                    f"{others} already cordoned or not Ready. Make them available, or set the limit to {needed} with -e."
                )


def test_node_that_another_run_cordoned_meanwhile_counts_before_the_drain(refusals, cluster, host_variables, tmp_path):
    """Both runs have counted before either cordoned; the cordon of this one ends, and no pod is evicted."""
    for name, parts in {"w1": {}, "w2": {"unschedulable": True}}.items():
        cluster.put(make_node(name, {"nvidia.com/gpu": "2"}, **parts))
    cluster.put(make_pod("web", gpus=1, owner="web", owner_kind="ReplicaSet"))
    path = write_record(tmp_path)
    params = {
        "nvidia_driver_plan": {**PLAN, "due": True},
        "__nvidia_driver_upgrade_read": encode_record(path),
        "__nvidia_driver_upgrade_cluster": {"nodes": []},
        "nvidia_driver_upgrade_max_unavailable": "1",
    }
    results = refusals("nvidia_driver_upgrade", ["upgrade"], {"w1": {**host_variables, **params}})
    assert (
        "with w1 more GPU nodes would be unavailable than the 1 of nvidia_driver_upgrade_max_unavailable: w2 is"
        in results["w1"]
    )
    assert results["w1"].endswith("the maintenance of node w1 has ended.")
    assert [item["metadata"]["name"] for item in cluster.all("Node") if item["spec"].get("unschedulable")] == ["w2"]
    assert len(cluster.all("Pod")) == 1


def test_unreachable_api_server_stops_the_batch(refusals, cluster, host_variables):
    host_variables["gpu_kubeconfig"] = str(
        write_kubeconfig("http://127.0.0.1:1", Path(host_variables["gpu_kubeconfig"]))
    )
    results = refusals("nvidia_driver_upgrade", ["max_unavailable"], {"w1": host_variables})
    assert results["w1"].startswith("w1: ")
    assert "127.0.0.1:1" in results["w1"]


@pytest.mark.parametrize(
    ("limit", "batches"),
    [
        (2, ["0 1", "1 2", "3 2"]),
        ("60%", ["0 1", "1 3", "4 1"]),
    ],
)
def test_interrupted_upgrade_runs_first_and_the_others_in_batches(evaluate, limit, batches):
    _connect, first, second, _report = yaml.safe_load((ROOT / "playbooks" / "upgrade_nvidia_driver.yml").read_text())
    # Its hosts have no defined order.
    first = {"hosts": "all", "order": "reverse_inventory", "gather_facts": False, "tasks": first["tasks"][-2:]}
    assert all("ansible.builtin.group_by" in task for task in first["tasks"])
    second = {key: second[key] for key in ("hosts", "serial", "gather_facts")}
    # The number of earlier hosts, and the size of the batch.
    earlier = "{{ ansible_play_hosts_all | map('extract', hostvars) | selectattr('batch', 'defined') | list | length }}"
    record = [
        {"ansible.builtin.set_fact": {"earlier": earlier}},
        {"ansible.builtin.set_fact": {"batch": "{{ earlier }} {{ ansible_play_batch | length }}"}},
    ]
    states = {**dict.fromkeys("abcde", "due"), "f": "unchanged"}
    hosts = {
        name: {"nvidia_driver_upgrade_result": {"state": state, "resumed": name == "e"}}
        for name, state in states.items()
    }
    results = evaluate(
        hosts,
        [first, {**second, "tasks": record}],
        "'eabcd' | map('extract', hostvars, 'batch') | unique | list",
        nvidia_driver_upgrade_max_unavailable=limit,
    )
    assert results == batches, "first the interrupted one, then all others in the order of the inventory"


def test_reason_of_a_time_limit_names_the_task(evaluate):
    hosts = {"alone": {"nvidia_driver_upgrade_result": {**RESULT, "reason": ""}}}
    sleep = {"name": "Start the installer", "ansible.builtin.command": {"argv": ["sleep", "60"]}, "timeout": 1}
    tasks = [
        {
            "block": [sleep],
            "rescue": [{"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "failed"}}],
        }
    ]
    reason = evaluate(
        hosts,
        [{"hosts": "all", "gather_facts": False, "tasks": tasks}],
        "hostvars.alone.nvidia_driver_upgrade_result.reason",
    )
    assert reason.startswith("'Start the installer': ")
    # ansible-core 2.18 and 2.19
    assert "failed to execute in the expected time frame (1)" in reason or "Timed out after 1 second" in reason


def test_first_cause_is_reported_first(evaluate):
    reasons = {"alone": "", "before": "first.", "within": "second"}
    hosts = {name: {"nvidia_driver_upgrade_result": {**RESULT, "reason": reason}} for name, reason in reasons.items()}
    tasks = [
        {
            "block": [{"ansible.builtin.fail": {"msg": "second."}}],
            "rescue": [{"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "failed"}}],
        }
    ]
    results = evaluate(
        hosts,
        [{"hosts": "all", "gather_facts": False, "tasks": tasks}],
        "ansible_play_hosts | map('extract', hostvars, 'nvidia_driver_upgrade_result') | map(attribute='reason') | list",
    )
    assert results == ["second.", "first. second.", "second."]
