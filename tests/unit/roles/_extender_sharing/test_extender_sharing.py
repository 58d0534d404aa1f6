# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What strategies with a scheduler extender have in common: whom they refuse, and what they make of what nodes report."""

from __future__ import annotations

import shutil
from itertools import product

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import FAILURE, ROOT, task_of

ROLE = "_extender_sharing"
STRATEGIES = pytest.mark.parametrize("strategy", ["gpushare", "nano_gpu"])
SETTING = "accept-nvidia-visible-devices-envvar-when-unprivileged"
#: The toolkit's settings, whether GPUs reach containers by the environment, and whether that is refused.
TOOLKITS = {
    "accepts": (f"{SETTING} = true\n", True, False),
    "default": ("", True, False),
    "refuses": (f"{SETTING} = false\n", True, True),
    "refuses-and-unused": (f"{SETTING} = false\n", False, False),
}


@STRATEGIES
def test_container_toolkit_that_ignores_the_environment_is_refused(made, strategy):
    task = task_of(ROLE, "preflight", "Require that the container toolkit accepts")
    hosts = {
        name: {
            "by_environment": by_environment,
            "_extender_sharing_toolkit_file": {"content": "{{ text | b64encode }}"},
            "text": text,
        }
        for name, (text, by_environment, _refused) in TOOLKITS.items()
    }
    found = made(strategy, hosts, "''", {**task, "when": "by_environment"})
    assert {name for name, why in found.items() if why} == {"refuses"}
    assert f"Host refuses: {SETTING} is false" in found["refuses"]
    assert f"{strategy} assigns GPUs to containers by that variable" in found["refuses"]


@STRATEGIES
@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("", True),
        ("https://lb.example.com/scheduler", True),
        ("http://10.96.0.20:39999", True),
        ("10.96.0.9:39999/scheduler", False),
        ("http://", False),
        ("http://a b", False),
    ],
)
def test_address_that_is_not_a_url_is_refused(made, strategy, url, good):
    task = task_of(ROLE, "preflight", "Require an address that kube-scheduler can call")
    found = made(strategy, {"h": {f"{strategy}_extender_url": url}}, "''", task)
    assert (not found["h"]) is good
    if not good:
        assert f"Host h: {strategy}_extender_url is {url}, which is not a URL; give one such as" in found["h"]


def control_plane(address):
    return {"metadata": {"name": "cp"}, "status": {"addresses": [{"type": "InternalIP", "address": address}]}}


POD_PEER = {"podSelector": {"matchLabels": {"component": "second-scheduler"}}}
#: The control planes that the cluster has by their present and former label, variables, and who may reach the extender; None is everyone.
PEERS = {
    "one": ([[control_plane("192.0.2.11")], []], {}, [{"ipBlock": {"cidr": "192.0.2.11/32"}}]),
    "both-labels": ([[control_plane("192.0.2.11")]] * 2, {}, [{"ipBlock": {"cidr": "192.0.2.11/32"}}]),
    "more": ([[], []], {"nano_gpu_extender_network_policy_peers": [POD_PEER]}, [POD_PEER]),
    # A rule without sources would reject kube-scheduler too.
    "hidden": ([[], []], {}, None),
}


def test_only_control_planes_reach_an_extender_behind_a_service(made):
    hosts = {
        name: {"__extender_sharing_control_planes": {"found": found}, **variables}
        for name, (found, variables, _peers) in PEERS.items()
    }
    found = made(
        "nano_gpu", hosts, "__extender_sharing_guards | selectattr('kind', 'equalto', 'NetworkPolicy') | first"
    )
    for name, (_found, _variables, peers) in PEERS.items():
        spec = found[name]["spec"]
        [rule] = spec["ingress"]
        assert (rule.get("from"), rule["ports"]) == (peers, [{"port": 39999, "protocol": "TCP"}])
        assert spec["podSelector"]["matchLabels"].items() >= {"app": "nano-gpu-scheduler"}.items()


#: Variables of gpushare, and how many policies are deployed and removed.
GUARDS = {
    "usual": ({}, (4, 1)),
    "service": ({"gpushare_extender_topology": "service"}, (5, 0)),
    "no-policies": ({"gpushare_admission_policy": False, "gpushare_extender_topology": "service"}, (1, 4)),
    "no-network": ({"gpushare_extender_network_policy": False, "gpushare_extender_topology": "service"}, (4, 1)),
}


def test_policies_that_are_switched_off_are_removed(made):
    expression = "[__extender_sharing_guards | length, __extender_sharing_unused_guards | length]"
    found = made("gpushare", {name: variables for name, (variables, _numbers) in GUARDS.items()}, expression)
    assert found == {name: list(numbers) for name, (_variables, numbers) in GUARDS.items()}


SERVICE = {
    "gpushare_extender_topology": "service",
    "__extender_sharing_service": {"found": [[{"spec": {"clusterIP": "10.96.0.9"}}]]},
}
#: Variables of gpushare, and what has to answer on each control plane before kube-scheduler calls it, with a part of the remedy.
ENDPOINTS = {
    "beside": ({}, "http://127.0.0.1:12345/version", "gpushare_extender_tolerations"),
    "service": (SERVICE, "http://10.96.0.9:12345/version", "gpushare_extender_network_policy_peers"),
    "no-service-yet": ({**SERVICE, "__extender_sharing_service": {"found": [[]]}}, "", ""),
    "own": ({"gpushare_extender_url": "https://lb.example.com/x"}, "", ""),
}


def test_extender_has_to_answer_where_kube_scheduler_calls_it(made):
    task = task_of(ROLE, "settings", "Export the scheduler")
    expression = task["vars"]["__extender_sharing_answering"].strip()[2:-2]
    found = made("gpushare", {name: variables for name, (variables, _url, _hint) in ENDPOINTS.items()}, expression)
    for name, (_variables, url, hint) in ENDPOINTS.items():
        assert (found[name] or {}).get("url", "") == url
        assert hint in (found[name] or {}).get("hint", "")


#: Variables of two hosts of a strategy, and whether they are refused.
AGREEMENTS = {
    "same": ({"gpushare_memory_unit": "MiB"}, {"gpushare_memory_unit": "MiB"}, False),
    "own": ({}, {"gpushare_allow_unequal_gpus": True, "gpu_node_name": "other"}, False),
    "unit": ({}, {"gpushare_memory_unit": "MiB"}, True),
    "namespace": ({}, {"gpushare_namespace": "other"}, True),
    "policy": ({}, {"gpushare_admission_policy": False}, True),
    "kubeconfig": ({}, {"gpu_kubeconfig": "/other"}, True),
}


def test_hosts_with_different_cluster_wide_variables_are_refused(hear, tmp_path):
    """The role's file of tasks, with the variables of a strategy."""
    for role, folder in product([ROLE, "gpushare"], ["defaults", "vars"]):
        shutil.copytree(ROOT / "roles" / role / folder, tmp_path / "roles" / role / folder)
    include = {"ansible.builtin.include_tasks": str(ROOT / "roles" / ROLE / "tasks" / "agree.yml")}
    rescue = [{"ansible.builtin.set_fact": {"why": FAILURE}}]
    hosts = {
        f"{name}-{number}": host for name, (*both, _refused) in AGREEMENTS.items() for number, host in zip("ab", both)
    }
    plays = [
        {
            "hosts": f"{name}-a,{name}-b",
            "gather_facts": False,
            "roles": [ROLE, "gpushare"],
            "tasks": [{"block": [include], "rescue": rescue}],
        }
        for name in AGREEMENTS
    ]
    found = hear(
        hosts, plays, "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='why', default='')))"
    )
    for name, (_first, _second, refused) in AGREEMENTS.items():
        words = f"Hosts {name}-a and {name}-b differ in cluster-wide variables of gpushare" if refused else ""
        assert found[f"{name}-a"][: len(words) or None] == words


def host_of(strategy, node, expected, count=0):
    return {
        "strategy": strategy,
        "host": node,
        "node": node,
        "expected": expected,
        "count": count,
        "planned": [expected, count],
    }


def test_hosts_of_another_strategy_are_not_shared(made):
    hosts = {
        "a": {"_extender_sharing_host": host_of("gpushare", "a", 32, 2)},
        "b": {"_extender_sharing_host": host_of("nano_gpu", "b", 200)},
        "c": {"_extender_sharing_host": host_of("gpushare", "c", 0)},
        "d": {},
    }
    found = made("gpushare", hosts, "[__extender_sharing_expected, __extender_sharing_counts]")
    assert found["d"] == [{"a": 32, "c": 0}, {"a": 2}]


def counted(name, ready=True, ok=True, plugin_pod="p"):
    return {"name": name, "ready": ready, "ok": ok, "plugin_pod": plugin_pod}


def test_device_plugin_is_restarted_where_its_count_is_wrong(made):
    """The argument of the task, as Ansible computes it."""
    nodes = [
        counted("good"),
        counted("zero", ok=False),
        counted("away", ok=False, ready=False),
        counted("new", ok=False, plugin_pod=""),
    ]
    loop = task_of(ROLE, "api_count", "Restart the device plugin")["loop"]
    record = {"ansible.builtin.set_fact": {"nodes": loop}}
    host = {"__extender_sharing_counts_before": {"nodes": nodes}}
    assert made("gpushare", {"n": host}, "nodes | map(attribute='name') | list", record) == {"n": ["zero"]}


def test_count_is_removed_from_nodes_that_have_lost_their_gpus(made):
    task = task_of(ROLE, "api_count", "Remove the GPU count")
    nodes = task["gpu.kubernetes.node_extended_resources"]["nodes"]
    hosts = {
        name: {"_extender_sharing_host": host_of("gpushare", name, memory)}
        for name, memory in (("has", 32), ("lost", 0))
    }
    record = {"ansible.builtin.set_fact": {"nodes": nodes}, "when": task["when"]}
    assert made("gpushare", hosts, "nodes", record) == {"has": ["lost"], "lost": ["lost"]}


PLAN = {
    "nodes": [
        {"node": "a", "node_absent": ["gpushare"], "drain": "gpu"},
        {"node": "b", "node_absent": ["gpushare", "nano_gpu"], "drain": "none"},
        {"node": "c", "node_absent": [], "drain": "none"},
    ],
    "cluster": {"leaves": ["nano_gpu"], "kept": {"gpushare": ["w9"]}},
}


@pytest.mark.parametrize(
    ("strategy", "leaving", "is_last", "kept"),
    [("gpushare", ["a", "b"], False, ["w9"]), ("nano_gpu", ["b"], True, [])],
)
def test_nodes_leave_as_planned(made, strategy, leaving, is_last, kept):
    expression = "[__extender_sharing_leaving, __extender_sharing_is_last | bool, __extender_sharing_kept]"
    assert made(strategy, {"h": {"gpu_sharing_plan": PLAN}}, expression) == {"h": [leaving, is_last, kept]}


def read(*held):
    return {
        "results": [{"nodes": [{"name": name, "allocated": units} for name, units in each.items()]} for each in held]
    }


#: What pods hold of each resource, by node; variables; and the nodes that stop a removal.
USED = {
    "idle": (read({"a": 0, "b": 0}), {}, []),
    "held": (read({"a": 0, "b": 3}, {"a": 1, "b": 1}), {}, ["b", "a"]),
    "allowed": (read({"a": 1}), {"gpushare_remove_used": True}, []),
}


def test_pods_that_hold_shares_stop_a_removal(made):
    task = task_of(ROLE, "api_node_absent", "Require that no pod holds shares")
    hosts = {
        name: {"__extender_sharing_read": found, "gpu_sharing_plan": PLAN, **variables}
        for name, (found, variables, _nodes) in USED.items()
    }
    found = made("gpushare", hosts, "''", task)
    for name, (_read, _variables, nodes) in USED.items():
        words = (
            f"Node {', '.join(sorted(nodes))}: pods hold aliyun.com/gpu-mem, and would keep GPUs that other pods get;"
        )
        assert (found[name] or "")[: len(words)] == (words if nodes else "")


def test_node_that_reports_no_shares_fails_its_own_host(made):
    good = {"name": "good", "ok": True, "reason": ""}
    bad, uncounted = (
        {"name": name, "ok": False, "reason": f"offers 0 of {amount}"} for name, amount in (("bad", 16), ("odd", 2))
    )
    hosts = {name: {"gpu_node_name": name} for name in ("good", "bad", "odd")}
    more = {
        "bad-left": {"gpu_node_name": "bad", "gpushare_wait_fail": False},
        "odd-reported": {"gpu_node_name": "odd", "_extender_sharing_report_follows": True},
    }
    rows = {
        "__extender_sharing_after": {"nodes": [good, bad, {**good, "name": "odd"}]},
        "__extender_sharing_counted": {"nodes": [good, uncounted]},
    }
    found = made(
        "gpushare",
        {name: {**rows, **host} for name, host in {**hosts, **more}.items()},
        "''",
        {"block": [task_of(ROLE, "report", name) for name in ("Collect the nodes", "Require that this node reports")]},
    )
    words = "Host {0} (node {0}) is not as expected after 300 s: offers 0 of {1}."
    assert {name: why or "" for name, why in found.items()} == {
        "good": "",
        "bad": words.format("bad", 16),
        "odd": words.format("odd", 2),
        "bad-left": "",
        "odd-reported": "",
    }
