# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes may be upgraded at once, in which order, and the reported cause of a failure."""

from __future__ import annotations

import os

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


def test_unavailable_nodes_count_towards_the_limit(refusals, cluster, host_variables, tmp_path):
    """And a batch is not started without an API server."""
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
    unreachable = write_kubeconfig("http://127.0.0.1:1", tmp_path / "unreachable")
    groups.append({"without-api": {**host_variables, "gpu_kubeconfig": str(unreachable)}})
    results = refusals("nvidia_driver_upgrade", ["max_unavailable"], *groups)
    assert results["without-api"].startswith("without-api: ")
    assert "127.0.0.1:1" in results["without-api"]
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


#: The limit; the number of earlier hosts, and the size, of each batch.
BATCHES = {2: ["0 1", "1 2", "3 2"], "60%": ["0 1", "1 3", "4 1"]}


def test_interrupted_upgrade_runs_first_and_the_others_in_batches(evaluate):
    _connect, first, second, _report = yaml.safe_load((ROOT / "playbooks" / "upgrade_nvidia_driver.yml").read_text())
    # Its hosts have no defined order.
    first = {"hosts": "all", "order": "reverse_inventory", "gather_facts": False, "tasks": first["tasks"][-2:]}
    assert all("ansible.builtin.group_by" in task for task in first["tasks"])
    plays = [first]
    for number, limit in enumerate(BATCHES):
        batch = f"batch{number}"
        started = f"ansible_play_hosts_all | map('extract', hostvars) | selectattr('{batch}', 'defined')"
        record = [
            {"ansible.builtin.set_fact": {"earlier": "{{ " + started + " | list | length }}"}},
            {"ansible.builtin.set_fact": {batch: "{{ earlier }} {{ ansible_play_batch | length }}"}},
        ]
        play = {key: second[key] for key in ("hosts", "serial", "gather_facts")}
        plays.append({**play, "vars": {"nvidia_driver_upgrade_max_unavailable": limit}, "tasks": record})
    states = {**dict.fromkeys("abcde", "due"), "f": "unchanged"}
    hosts = {
        name: {"nvidia_driver_upgrade_result": {"state": state, "resumed": name == "e"}}
        for name, state in states.items()
    }
    names = [f"'eabcd' | map('extract', hostvars, 'batch{number}') | unique | list" for number in range(len(BATCHES))]
    results = evaluate(hosts, plays, f"[{', '.join(names)}]")
    assert results == list(BATCHES.values()), "first the interrupted one, then all others in the order of the inventory"


#: The cause that an earlier failure has recorded, and the reported ones. The task of the last host has a time limit, whose message does not name it.
CAUSES = {
    "alone": ("", "second."),
    "before": ("first.", "first. second."),
    "within": ("second", "second."),
    "slow": ("", None),
}


def test_first_cause_is_reported_first_and_that_of_a_time_limit_with_its_task(evaluate):
    hosts = {
        name: {"nvidia_driver_upgrade_result": {**RESULT, "reason": reason}} for name, (reason, _all) in CAUSES.items()
    }
    sleep = {"name": "Start the installer", "ansible.builtin.command": {"argv": ["sleep", "60"]}, "timeout": 1}
    tasks = [
        {
            "block": [
                {**sleep, "when": "inventory_hostname == 'slow'"},
                {"ansible.builtin.fail": {"msg": "second."}},
            ],
            "rescue": [{"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "failed"}}],
        }
    ]
    results = evaluate(
        hosts,
        [{"hosts": "all", "gather_facts": False, "tasks": tasks}],
        "ansible_play_hosts | map('extract', hostvars, 'nvidia_driver_upgrade_result') | map(attribute='reason') | list",
    )
    slow = results.pop()
    assert results == [reasons for _first, reasons in CAUSES.values()][:-1]
    assert slow.startswith("'Start the installer': ")
    # ansible-core 2.18 and 2.19
    assert "failed to execute in the expected time frame (1)" in slow or "Timed out after 1 second" in slow
