# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Common tasks of strategies with a scheduler extender: hosts that they refuse, and how they use the reports of nodes."""

from __future__ import annotations

import shutil
from itertools import product

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import FAILURE, ROOT, find_task

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


#: Addresses of the extender, and whether they are accepted.
URLS = {
    "none": ("", True),
    "https": ("https://lb.example.com/scheduler", True),
    "http": ("http://10.96.0.20:39999", True),
    "no-scheme": ("10.96.0.9:39999/scheduler", False),
    "no-host": ("http://", False),
    "space": ("http://a b", False),
}
PLAN = {
    "nodes": [
        {"node": "a", "node_absent": ["gpushare"], "drain": "gpu"},
        {"node": "b", "node_absent": ["gpushare", "nano_gpu"], "drain": "none"},
        {"node": "c", "node_absent": [], "drain": "none"},
    ],
    "cluster": {"leaves": ["nano_gpu"], "kept": {"gpushare": ["w9"]}},
}
#: The nodes that leave a strategy by this plan, whether they are the last ones, and those that keep it.
LEAVING = {"gpushare": [["a", "b"], False, ["w9"]], "nano_gpu": [["b"], True, []]}
TOLERATION = {"key": "node-role.kubernetes.io/edge", "operator": "Exists"}
PODS = "[(_extender_sharing_plugin_objects | last).spec.template.spec, _extender_sharing_extender_workload.spec.template.spec]"
#: For each host, as if it were the first one of a run.
ADDRESS = {**find_task(ROLE, "preflight", "Require an address that kube-scheduler can call"), "run_once": False}
TOOLKIT = find_task(ROLE, "preflight", "Require that the container toolkit accepts")


@STRATEGIES
def test_settings_of_each_strategy_are_checked_and_followed(evaluate_role, strategy):
    """One run for all: a host shows a variable of its own, or is refused."""
    hosts = {f"address-{name}": {f"{strategy}_extender_url": url} for name, (url, _is_accepted) in URLS.items()}
    for name, (text, by_environment, _refused) in TOOLKITS.items():
        hosts[name] = {
            "by_environment": by_environment,
            "_extender_sharing_toolkit_file": {"content": "{{ text | b64encode }}"},
            "text": text,
        }
    hosts["edge"] = {
        "gpu_edge_tolerations": [TOLERATION],
        f"{strategy}_extender_node_selector": {"superedge.io/node-cloud": "enable"},
        "shown": "{{ " + PODS + " }}",
    }
    leaving = "[__extender_sharing_leaving, __extender_sharing_is_last | bool, __extender_sharing_kept]"
    hosts["planned"] = {"gpu_sharing_plan": PLAN, "shown": "{{ " + leaving + " }}"}
    tasks = [ADDRESS, {**TOOLKIT, "when": "by_environment | default(false)"}]
    found = evaluate_role(strategy, hosts, "shown | default('')", {"block": tasks})
    assert found["planned"] == LEAVING[strategy]
    for name, (url, is_accepted) in URLS.items():
        words = f"Host address-{name}: {strategy}_extender_url is {url}, which is not a URL; give one such as"
        assert (found[f"address-{name}"] or "")[: len(words)] == ("" if is_accepted else words)
    assert {name for name in TOOLKITS if found[name]} == {"refuses"}
    assert f"Host refuses: {SETTING} is false" in found["refuses"]
    assert f"{strategy} assigns GPUs to containers by that variable" in found["refuses"]
    # The device plugin tolerates the taint of edge nodes, and the extender stays on the cloud side.
    [plugin, extender] = found["edge"]
    assert TOLERATION in plugin["tolerations"]
    assert TOLERATION not in extender["tolerations"]
    assert extender["nodeSelector"] == {"superedge.io/node-cloud": "enable"}


def test_api_servers_proxy_requires_https_and_a_certificate(evaluate_role):
    """What manuals write is refused with the right form, which becomes the setting of kube-scheduler."""
    proxy = "10.0.0.1:6443/api/v1/namespaces/kube-system/services/{}/proxy/scheduler"
    right = "https://" + proxy.format("http:nano-gpu-scheduler:39999")
    files = {"caFile": "/etc/kubernetes/pki/ca.crt", "certFile": "/tls/crt", "keyFile": "/tls/key"}
    hosts = {
        "by-hand": {"nano_gpu_extender_url": "http://" + proxy.format("nano-gpu-scheduler")},
        "right": {"nano_gpu_extender_url": right, "nano_gpu_extender_tls_config": files},
        "none": {},
    }
    task = find_task(ROLE, "settings", "Export the scheduler")
    expression = task["ansible.builtin.set_fact"]["gpu_sharing_extender"]["settings"].strip()[2:-2]
    found = evaluate_role("nano_gpu", hosts, expression, ADDRESS)
    assert f"and at {right}; set that with nano_gpu_extender_tls_config" in found["by-hand"]
    assert found["right"]["tlsConfig"] == files
    assert (found["right"]["urlPrefix"], found["right"]["enableHTTPS"]) == (right, True)
    assert "tlsConfig" not in found["none"]


def make_control_plane(address):
    return {"metadata": {"name": "cp"}, "status": {"addresses": [{"type": "InternalIP", "address": address}]}}


POD_PEER = {"podSelector": {"matchLabels": {"component": "second-scheduler"}}}
CILIUM = make_control_plane("192.0.2.11")
CILIUM["status"]["conditions"] = [{"type": "NetworkUnavailable", "status": "False", "reason": "CiliumIsUp"}]
#: The control planes that the cluster has by their present and former label, variables, and the allowed sources of the extender's port; None is all.
PEERS = {
    "one": ([[make_control_plane("192.0.2.11")], []], {}, [{"ipBlock": {"cidr": "192.0.2.11/32"}}]),
    "both-labels": ([[make_control_plane("192.0.2.11")]] * 2, {}, [{"ipBlock": {"cidr": "192.0.2.11/32"}}]),
    "more": ([[], []], {"nano_gpu_extender_network_policy_peers": [POD_PEER]}, [POD_PEER]),
    "cilium": ([[CILIUM], []], {}, None),
    "cilium-and-more": ([[CILIUM], []], {"nano_gpu_extender_network_policy_peers": [POD_PEER]}, [POD_PEER]),
    # A rule without sources would reject kube-scheduler too.
    "hidden": ([[], []], {}, None),
}


def test_only_control_planes_reach_an_extender_behind_a_service(evaluate_role):
    hosts = {
        name: {"__extender_sharing_control_planes": {"found": found}, **variables}
        for name, (found, variables, _peers) in PEERS.items()
    }
    found = evaluate_role(
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
SERVICE = {
    "gpushare_extender_topology": "service",
    "__extender_sharing_service": {"found": [[{"spec": {"clusterIP": "10.96.0.9"}}]]},
}
#: Variables of gpushare, and the address that has to answer on each control plane before kube-scheduler calls it, with a part of the remedy.
ENDPOINTS = {
    "beside": ({}, "http://127.0.0.1:12345/version", "gpushare_extender_tolerations"),
    "service": (SERVICE, "http://10.96.0.9:12345/version", "gpushare_extender_network_policy_peers"),
    "no-service-yet": ({**SERVICE, "__extender_sharing_service": {"found": [[]]}}, "", ""),
    "own": ({"gpushare_extender_url": "https://lb.example.com/x"}, "", ""),
}


#: Variables of two hosts of a strategy, and whether they are refused.
AGREEMENTS = {
    "same": ({"gpushare_memory_unit": "MiB"}, {"gpushare_memory_unit": "MiB"}, False),
    "own": ({}, {"gpushare_allow_unequal_gpus": True, "gpu_node_name": "other"}, False),
    "unit": ({}, {"gpushare_memory_unit": "MiB"}, True),
    "namespace": ({}, {"gpushare_namespace": "other"}, True),
    "policy": ({}, {"gpushare_admission_policy": False}, True),
    "kubeconfig": ({}, {"gpu_kubeconfig": "/other"}, True),
}


def test_hosts_with_different_cluster_wide_variables_are_refused(evaluate, tmp_path):
    """The role's file of tasks, with the variables of a strategy."""
    for role, folder in product([ROLE, "gpushare"], ["defaults", "vars"]):
        shutil.copytree(ROOT / "roles" / role / folder, tmp_path / "roles" / role / folder)
    include = {"ansible.builtin.include_tasks": str(ROOT / "roles" / ROLE / "tasks" / "agree.yml")}
    rescue = [{"ansible.builtin.set_fact": {"message": FAILURE}}]
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
    found = evaluate(
        hosts,
        plays,
        "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='message', default='')))",
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


def test_policies_endpoint_and_counts_follow_the_variables(evaluate_role):
    """One run for all: each host shows a variable of its own. Hosts of another strategy are not counted."""
    task = find_task(ROLE, "settings", "Export the scheduler")
    endpoint = task["ansible.builtin.set_fact"]["gpu_sharing_extender"]["endpoint"]
    numbers = "{{ [__extender_sharing_guards | length, __extender_sharing_unused_guards | length] }}"
    hosts = {f"guards-{name}": {**variables, "shown": numbers} for name, (variables, _numbers) in GUARDS.items()}
    for name, (variables, _url, _hint) in ENDPOINTS.items():
        hosts[f"endpoint-{name}"] = {**variables, "shown": endpoint}
    hosts |= {
        "a": {"_extender_sharing_host": host_of("gpushare", "a", 32, 2)},
        "b": {"_extender_sharing_host": host_of("nano_gpu", "b", 200)},
        "c": {"_extender_sharing_host": host_of("gpushare", "c", 0)},
        "d": {"shown": "{{ [__extender_sharing_expected, __extender_sharing_counts] }}"},
    }
    found = evaluate_role("gpushare", hosts, "shown | default('')")
    for name, (_variables, expected) in GUARDS.items():
        assert found[f"guards-{name}"] == list(expected), name
    for name, (_variables, url, hint) in ENDPOINTS.items():
        answer = found[f"endpoint-{name}"] or {}
        assert answer.get("url", "") == url
        assert hint in answer.get("hint", "")
    assert found["d"] == [{"a": 32, "c": 0}, {"a": 2}]


def make_row(name, ready=True, ok=True, plugin_pod="p"):
    return {"name": name, "ready": ready, "ok": ok, "plugin_pod": plugin_pod}


def test_wrong_counts_restart_the_plugin_and_lost_gpus_remove_the_count(evaluate_role):
    """The loop of one task, and the nodes of another, as Ansible evaluates them."""
    nodes = [
        make_row("good"),
        make_row("zero", ok=False),
        make_row("not-ready", ok=False, ready=False),
        make_row("new", ok=False, plugin_pod=""),
    ]
    restart, remove = (
        find_task(ROLE, "api_count", words) for words in ("Restart the device plugin", "Remove the GPU count")
    )
    lost = remove["gpu.kubernetes.node_extended_resources"]["nodes"]
    record = [
        {"ansible.builtin.set_fact": {"restarted": restart["loop"]}},
        {"ansible.builtin.set_fact": {"lost": lost}, "when": remove["when"]},
    ]
    hosts = {
        name: {
            "_extender_sharing_host": host_of("gpushare", name, memory),
            "__extender_sharing_counts_before": {"nodes": nodes},
        }
        for name, memory in (("has", 32), ("lost", 0))
    }
    expression = "[restarted | map(attribute='name') | list, lost]"
    found = evaluate_role("gpushare", hosts, expression, {"block": record})
    assert found == {name: [["zero"], ["lost"]] for name in hosts}


def read_results(*readings):
    return {
        "results": [
            {"nodes": [{"name": name, "allocated": units} for name, units in each.items()]} for each in readings
        ]
    }


#: Allocated units of each resource by node, variables, and the nodes that block a removal.
USED = {
    "idle": (read_results({"a": 0, "b": 0}), {}, []),
    "in-use": (read_results({"a": 0, "b": 3}, {"a": 1, "b": 1}), {}, ["b", "a"]),
    "allowed": (read_results({"a": 1}), {"gpushare_remove_used": True}, []),
}


def test_pods_that_hold_shares_block_a_removal(evaluate_role):
    task = find_task(ROLE, "api_node_absent", "Require that no pod holds shares")
    hosts = {
        name: {"__extender_sharing_read": found, "gpu_sharing_plan": PLAN, **variables}
        for name, (found, variables, _nodes) in USED.items()
    }
    found = evaluate_role("gpushare", hosts, "''", task)
    for name, (_read, _variables, nodes) in USED.items():
        words = (
            f"Node {', '.join(sorted(nodes))}: pods hold aliyun.com/gpu-mem, and would keep GPUs that other pods get;"
        )
        assert (found[name] or "")[: len(words)] == (words if nodes else "")


def test_node_that_reports_no_shares_fails_its_own_host(evaluate_role):
    good = {"name": "good", "ok": True, "judged": True, "reason": ""}
    bad, uncounted = (
        {**good, "name": name, "ok": False, "reason": f"has 0 of {amount}"}
        for name, amount in (("bad", 16), ("odd", 2))
    )
    # An edge node that is offline is not at fault.
    offline = {"name": "offline", "ok": False, "judged": False, "reason": "is not judged"}
    hosts = {name: {"gpu_node_name": name} for name in ("good", "bad", "odd", "offline")}
    more = {
        "bad-accepted": {"gpu_node_name": "bad", "gpushare_wait_fail": False},
        "odd-reported": {"gpu_node_name": "odd", "_extender_sharing_report_follows": True},
    }
    rows = {
        "__extender_sharing_after": {"nodes": [good, bad, {**good, "name": "odd"}, offline]},
        "__extender_sharing_counted": {"nodes": [good, uncounted]},
    }
    found = evaluate_role(
        "gpushare",
        {name: {**rows, **host} for name, host in {**hosts, **more}.items()},
        "''",
        {
            "block": [
                find_task(ROLE, "report", name) for name in ("Collect the nodes", "Require that this node reports")
            ]
        },
    )
    words = "Host {0} (node {0}) is not as expected after 300 s: has 0 of {1}."
    assert {name: message or "" for name, message in found.items()} == {
        "good": "",
        "bad": words.format("bad", 16),
        "odd": words.format("odd", 2),
        "offline": "",
        "bad-accepted": "",
        "odd-reported": "",
    }
