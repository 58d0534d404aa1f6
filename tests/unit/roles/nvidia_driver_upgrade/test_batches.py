# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes may be upgraded at once, in which order, and what is told of one that failed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from fakes.loopback_api import write_kubeconfig

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT
from ansible_collections.gpu.kubernetes.tests.unit.roles.nvidia_driver_upgrade.upgraded import (
    PLAN,
    RESULT,
    ROLE,
    encoded,
    note,
    offering,
    placed,
)

if os.geteuid() != 0:
    pytest.skip("only root gives files to root", allow_module_level=True)


def test_nodes_that_take_no_work_already_count(refusals, cluster, given):
    gpus = {"nvidia.com/gpu": "2"}
    for name, parts in {
        "w1": {},
        "w2": {},
        "w3": {},
        "away": {"unschedulable": True},
        "sick": {"ready": False, "unschedulable": True},
    }.items():
        cluster.put(offering(name, gpus, **parts))
    cluster.put(offering("no-gpu", {}, unschedulable=True))
    #: Hosts whose turn it is, by their nodes, and the limit; what is said, if anything.
    batches = [
        ({"a": "w1"}, 2, "with w1 more GPU nodes", "2", "away, sick are", "3"),
        ({"b": "w1"}, 3, ""),
        ({"c": "away", "d": "sick"}, 1, ""),
        ({"e": "w1", "f": "w2"}, "50%", "with w1, w2 more GPU nodes", "1", "away, sick are", "4"),
        ({"g": "w1", "h": "sick"}, 3, ""),
        ({"i": "w1", "j": "sick"}, 2, "with w1, sick more GPU nodes", "2", "away is", "3"),
    ]
    groups = [
        {
            host: {
                **given,
                "nvidia_driver_upgrade_max_unavailable": limit,
                "gpu_node_name": name,
                "nvidia_driver_upgrade_result": {"node": name},
            }
            for host, name in hosts.items()
        }
        for hosts, limit, *_words in batches
    ]
    told = refusals("nvidia_driver_upgrade", ["max_unavailable"], *groups)
    for hosts, _limit, words, *more in batches:
        for host in hosts:
            assert bool(told[host]) is bool(words), told[host]
            if words:
                limit, others, needed = more
                assert told[host] == (
                    f"{host}: not started, because {words} would be unavailable than the {limit} of nvidia_driver_upgrade_max_unavailable: "
                    f"{others} already cordoned or not Ready. Make them available, or set the limit to {needed} with -e."
                )


def test_node_that_another_run_cordoned_meanwhile_counts_before_the_drain(refusals, cluster, given, tmp_path):
    """Both runs have counted before either cordoned; the cordon of this one ends, and no pod is evicted."""
    for name, parts in {"w1": {}, "w2": {"unschedulable": True}}.items():
        cluster.put(offering(name, {"nvidia.com/gpu": "2"}, **parts))
    cluster.put(placed("web", gpus=1, owner="web", owner_kind="ReplicaSet"))
    path = note(tmp_path)
    params = {
        "nvidia_driver_plan": {**PLAN, "due": True},
        "__nvidia_driver_upgrade_read": encoded(path),
        "__nvidia_driver_upgrade_cluster": {"nodes": []},
        "nvidia_driver_upgrade_max_unavailable": "1",
    }
    told = refusals("nvidia_driver_upgrade", ["upgrade"], {"w1": {**given, **params}})
    assert (
        "with w1 more GPU nodes would be unavailable than the 1 of nvidia_driver_upgrade_max_unavailable: w2 is"
        in told["w1"]
    )
    assert told["w1"].endswith("the maintenance of node w1 has ended.")
    assert [item["metadata"]["name"] for item in cluster.all("Node") if item["spec"].get("unschedulable")] == ["w2"]
    assert len(cluster.all("Pod")) == 1


def test_an_api_server_that_does_not_tell_stops_the_batch(refusals, cluster, given):
    given["gpu_kubeconfig"] = str(write_kubeconfig("http://127.0.0.1:1", Path(given["gpu_kubeconfig"])))
    told = refusals("nvidia_driver_upgrade", ["max_unavailable"], {"w1": given})
    assert told["w1"].startswith("w1: ")
    assert "127.0.0.1:1" in told["w1"]


@pytest.mark.parametrize(
    ("limit", "batches"),
    [
        (2, ["0 1", "1 2", "3 2"]),
        ("60%", ["0 1", "1 3", "4 1"]),
    ],
)
def test_what_was_begun_goes_first_and_the_others_follow_in_batches(hear, limit, batches):
    _connect, first, second, _report = yaml.safe_load((ROOT / "playbooks" / "upgrade_nvidia_driver.yml").read_text())
    # They come through it in no order that is known.
    first = {"hosts": "all", "order": "reverse_inventory", "gather_facts": False, "tasks": first["tasks"][-2:]}
    assert all("ansible.builtin.group_by" in task for task in first["tasks"])
    second = {key: second[key] for key in ("hosts", "serial", "gather_facts")}
    # The hosts of a batch, and how many had their turn before.
    had = "{{ ansible_play_hosts_all | map('extract', hostvars) | selectattr('batch', 'defined') | list | length }}"
    keep = [
        {"ansible.builtin.set_fact": {"had": had}},
        {"ansible.builtin.set_fact": {"batch": "{{ had }} {{ ansible_play_batch | length }}"}},
    ]
    states = {**dict.fromkeys("abcde", "due"), "f": "unchanged"}
    hosts = {
        name: {"nvidia_driver_upgrade_result": {"state": state, "resumed": name == "e"}}
        for name, state in states.items()
    }
    told = hear(
        hosts,
        [first, {**second, "tasks": keep}],
        "'eabcd' | map('extract', hostvars, 'batch') | unique | list",
        nvidia_driver_upgrade_max_unavailable=limit,
    )
    assert told == batches, "first the one that was begun, then all others in the inventory's order"


def test_reason_of_a_time_limit_names_what_was_waited_for(hear):
    results = {"alone": {"nvidia_driver_upgrade_result": {**RESULT, "reason": ""}}}
    sleep = {"name": "Start the installer", "ansible.builtin.command": {"argv": ["sleep", "60"]}, "timeout": 1}
    tasks = [
        {
            "block": [sleep],
            "rescue": [{"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "failed"}}],
        }
    ]
    told = hear(
        results,
        [{"hosts": "all", "gather_facts": False, "tasks": tasks}],
        "hostvars.alone.nvidia_driver_upgrade_result.reason",
    )
    assert told.startswith("'Start the installer': ")
    # ansible-core 2.18 and 2.19
    assert "failed to execute in the expected time frame (1)" in told or "Timed out after 1 second" in told


def test_why_it_failed_first_is_told_first(hear):
    reasons = {"alone": "", "before": "first.", "within": "second"}
    results = {name: {"nvidia_driver_upgrade_result": {**RESULT, "reason": reason}} for name, reason in reasons.items()}
    tasks = [
        {
            "block": [{"ansible.builtin.fail": {"msg": "second."}}],
            "rescue": [{"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "failed"}}],
        }
    ]
    told = hear(
        results,
        [{"hosts": "all", "gather_facts": False, "tasks": tasks}],
        "ansible_play_hosts | map('extract', hostvars, 'nvidia_driver_upgrade_result') | map(attribute='reason') | list",
    )
    assert told == ["second.", "first. second.", "second."]
