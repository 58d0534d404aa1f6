# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role passes parameters and the state of the nodes to the decision, and exports or refuses what comes of it."""

from __future__ import annotations

from fakes.kubernetes_api import node, pod
from fakes.loopback_api import LoopbackApi, listed, serving, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import FAILURE, ROOT

ROLE = "gpu.kubernetes.gpu_sharing"
GPUSHARE, NANO_GPU = {"gpushare": "true"}, {"gpu-kubernetes/nano-gpu": "true"}
HOSTS_FILE = str(ROOT / "playbooks" / "vars" / "hosts.yml")
EXPORTS = (
    "decided",
    "empties",
    "returns",
    "reason",
    "extended_by",
    "leaves_gpushare",
    "leaves_nano_gpu",
    "has_gpushare",
    "has_nano_gpu",
)


def cluster_of(nodes, *pods):
    """A server of the lists that gpu_nodes_info reads."""
    empty = {"/apis/apps/v1/namespaces/kube-system/daemonsets": listed([])}
    return LoopbackApi({"/api/v1/nodes": listed(nodes), "/api/v1/pods": listed(list(pods)), **empty})


def role_play(hosts, **more):
    """A play that runs the role and records its exports, or the message of the failed task."""
    exports = "{{ [" + ", ".join(f"gpu_sharing_{name}" for name in EXPORTS) + "] }}"
    block = [{"ansible.builtin.include_role": {"name": ROLE}}, {"ansible.builtin.set_fact": {"result": exports}}]
    rescue = [{"ansible.builtin.set_fact": {"result": FAILURE}}]
    return {"hosts": hosts, "gather_facts": False, "tasks": [{"block": block, "rescue": rescue}], **more}


REASON = "change of how GPUs are shared"
SECOND = "gpushare, which {} would have, and nano_gpu, which {} would have, each need an extender that binds pods"
NOTHING = ["exclusive", False, False, REASON, [], False, False, False, False]
#: Variables of a play, and its hosts: their variables, the label of their nodes, and what they export or how the message begins.
PLAYS = (
    # What hosts declare, and what their nodes have.
    (
        {},
        {
            "stays": ({}, GPUSHARE, ["gpushare", False, False, REASON, [], False, False, True, False]),
            "leaves": (
                {"gpu_sharing_strategy": "exclusive", "gpu_sharing_migrate": True},
                GPUSHARE,
                ["exclusive", True, True, REASON, ["gpushare"], True, False, True, False],
            ),
            "joins": (
                {
                    "gpu_sharing_strategy": "gpushare",
                    "gpu_node_name": "named",
                    "k8s_device_plugin_resource_name": "nvidia.com/a100",
                },
                {},
                ["gpushare", False, True, REASON, ["gpushare"], False, False, False, False],
            ),
            "held": (
                {"gpu_sharing_strategy": "gpushare"},
                {},
                "Host held (node held): its GPUs are shared as exclusive, time_slicing, mps or mig, gpushare is asked for, and pods hold GPUs; end",
            ),
            "contradicts": (
                {"gpu_sharing_strategy": "exclusive", "k8s_device_plugin_config": {"flags": {"migStrategy": "single"}}},
                {},
                "Host contradicts: gpu_sharing_strategy is exclusive, and k8s_device_plugin_config shares GPUs as mig;",
            ),
        },
    ),
    # The whole run is refused, by its first host; pods that hold GPUs do not matter to it.
    (
        {"vars": {"__gpu_sharing_judged": False}},
        {
            "whole-0": ({"gpu_sharing_strategy": "gpushare"}, {}, SECOND.format("whole-0", "whole-1")),
            "whole-1": ({"gpu_sharing_strategy": "nano_gpu"}, {}, ""),
        },
    ),
    # Two schedulers, in a run with some tags.
    (
        {"vars": {"gpu_sharing_second_scheduler": "nano_gpu", "__gpu_sharing_run_tags": ["device_plugin", "gpushare"]}},
        {
            "tags-0": (
                {"gpu_sharing_strategy": "gpushare"},
                {},
                ["gpushare", False, True, REASON, ["gpushare"], False, False, False, False],
            ),
            "tags-1": (
                {"gpu_sharing_strategy": "nano_gpu"},
                {},
                "Host tags-1 (node tags-1): its sharing strategy changes to nano_gpu, which takes one device plugin off the node and brings another one,",
            ),
            "tags-2": ({}, NANO_GPU, ["nano_gpu", False, False, REASON, [], False, False, False, True]),
        },
    ),
    # In check mode the same; a second batch is refused for what the first one has.
    (
        {"serial": 2, "check_mode": True},
        {
            "batch-0": ({}, {}, NOTHING),
            "batch-1": (
                {"gpu_sharing_strategy": "nano_gpu"},
                {},
                ["nano_gpu", False, True, REASON, ["nano_gpu"], False, False, False, False],
            ),
            "batch-2": ({"gpu_sharing_strategy": "gpushare"}, {}, SECOND.format("batch-2", "batch-1")),
        },
    ),
)


def test_role_exports_the_decision_or_refuses_the_host(hear, tmp_path):
    hosts = {name: host for _play, hosts in PLAYS for name, host in hosts.items()}
    nodes = [
        node(given.get("gpu_node_name", name), 2, labels=dict(label)) for name, (given, label, _want) in hosts.items()
    ]
    (named,) = (each for each in nodes if each["metadata"]["name"] == "named")
    named["status"] = {**named["status"], "capacity": {"nvidia.com/a100": "2"}}
    with serving(cluster_of(nodes, pod("a", on="held", gpus=1), pod("b", on="whole-0", gpus=1))) as server:
        results = hear(
            {name: given for name, (given, *_more) in hosts.items()},
            [role_play(":".join(names), **play) for play, names in PLAYS],
            "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='result', default='')))",
            gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
        )
    for name, (_given, _label, expected) in hosts.items():
        begins = isinstance(expected, str) and expected
        assert (results[name][: len(expected)] if begins else results[name]) == expected, results[name]
    # One list of the nodes for each batch.
    assert [path for _method, path, _query in server.requests].count("/api/v1/nodes") == len(PLAYS) + 1


#: Nodes as hosts see them, whether programs are kept there, and whether gpushare and nano-gpu are on them.
NODES = {
    "plain": (node("plain"), False, [False, False]),
    "labelled": (node("labelled", labels=dict(GPUSHARE)), False, [True, False]),
    "nano-labelled": (node("nano-labelled", labels=dict(NANO_GPU)), False, [False, True]),
    "kept": (node("kept"), True, [False, True]),
}


def test_look_exports_the_strategies_on_the_nodes(hear, tmp_path):
    program = tmp_path / "program"
    program.write_text("")
    keep = {
        "gpu.kubernetes.kept_files": {
            "name": "nano-gpu",
            "paths": [str(program)],
            "state": "kept",
            "state_dir": "{{ nano_gpu_state_dir }}",
        },
        "when": "kept",
    }
    look = {"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "look"}}
    with serving(cluster_of([found for found, *_more in NODES.values()])) as server:
        results = hear(
            {
                name: {"kept": kept, "nano_gpu_state_dir": str(tmp_path / name)}
                for name, (_node, kept, *_want) in NODES.items()
            },
            [{"hosts": "all", "gather_facts": False, "tasks": [keep, look]}],
            "dict(groups.all | zip(groups.all | map('extract', hostvars, 'gpu_sharing_has_gpushare')"
            " | zip(groups.all | map('extract', hostvars, 'gpu_sharing_has_nano_gpu'))))",
            gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
        )
    assert results == {name: there for name, (_found, _kept, there) in NODES.items()}


def join_play(hosts, way, emptied=(), **more):
    """A play that runs ``join`` for its first host as the roles do: once, where the API server is read. Its second host has failed."""
    capacity = {"example.com/gpu": 1, "nvidia.com/gpu": 1}
    row = {"name": hosts[0], "known": True, "gpu_operator": False, "gpu_capacity": capacity, "gpu_allocated": capacity}
    join = {
        "ansible.builtin.include_role": {"name": ROLE, "tasks_from": "join"},
        "vars": {
            "__gpu_sharing_way": way,
            "__gpu_sharing_joining": [{"host": hosts[0], "node": hosts[0], "expected": 100}],
            "__gpu_sharing_seen": [{**row, "foreign_plugins": ["kube-system/gpushare-device-plugin-ds"]}],
            "__gpu_sharing_emptied": list(emptied),
        },
    }
    once = {
        "run_once": True,
        "delegate_to": "localhost",
        "module_defaults": {"group/gpu.kubernetes.api": {"kubeconfig": "{{ gpu_kubeconfig }}"}},
        "block": [join, {"ansible.builtin.set_fact": {"result": "{{ gpu_sharing_whole_resources }}"}}],
        "rescue": [{"ansible.builtin.set_fact": {"result": FAILURE}}],
    }
    fail = {"ansible.builtin.fail": {"msg": "no"}, "when": f"inventory_hostname == '{hosts[-1]}'"}
    return {"hosts": ":".join(hosts), "gather_facts": False, "tasks": [*([fail] if hosts[1:] else []), once], **more}


def test_join_refuses_nodes_with_conflicts_or_exports_the_resources(hear, tmp_path):
    def labelled(name, labels):
        return {"apiVersion": "v1", "kind": "Node"} | node(name, labels=dict(labels))

    sliced = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": "slice"},
        "spec": {"driver": "gpu.nvidia.com", "nodeName": "claimed"},
    }
    leaving = {"gpu_sharing_leaves_gpushare": True}
    hosts = {"changes": leaving, "failed": leaving, "refused": {}, "claimed": {}}
    plays = [
        # The label is still on both nodes, and goes from them in this run.
        join_play(
            ["changes", "failed"],
            "nano_gpu",
            emptied=["changes"],
            vars={"k8s_device_plugin_resource_name": "example.com/gpu"},
        ),
        join_play(["refused"], "gpushare"),
        join_play(["claimed"], "gpushare", vars={"gpu_sharing_second_scheduler": "nano_gpu"}),
    ]
    objects = [*(labelled(name, GPUSHARE) for name in ("changes", "failed")), labelled("other", NANO_GPU), sliced]
    with serving(SmallCluster(*objects)) as server:
        results = hear(
            {name: {**given, "__gpu_sharing_host": name} for name, given in hosts.items()},
            plays,
            "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='result', default='')))",
            gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
        )
    assert results["changes"] == ["example.com/gpu", "nvidia.com/gpu"]
    assert results["refused"].startswith("Node other: shares its GPUs by nano_gpu, and a kube-scheduler takes only one")
    assert results["claimed"].startswith("Node claimed: NVIDIA's DRA driver hands out the same GPUs")


#: Labels of the node of a host, what it declares, and the strategy that a playbook that only reads takes it for.
FOUND = {
    "by-memory": (GPUSHARE, {}, "gpushare"),
    "by-percent": (NANO_GPU, {}, "nano_gpu"),
    "by-both": ({**GPUSHARE, **NANO_GPU}, {}, "gpushare"),
    "whole": ({}, {}, "open"),
    "not-any-more": ({"gpushare": "false"}, {}, "open"),
    "declared": (GPUSHARE, {"gpu_sharing_strategy": "exclusive"}, "open"),
}


def test_found_exports_the_strategy_of_labelled_nodes_and_ignores_an_api_server_that_is_away(hear, tmp_path):
    nodes = [
        {"apiVersion": "v1", "kind": "Node"} | node(name, labels=dict(labels))
        for name, (labels, *_more) in FOUND.items()
    ]
    include = {"ansible.builtin.include_tasks": str(ROOT / "playbooks" / "tasks" / "found.yml")}

    def read(result, url):
        record = {"ansible.builtin.set_fact": {result: "{{ gpu_sharing_decided | default('open') }}"}}
        kubeconfig = str(write_kubeconfig(url, tmp_path / result))
        return {
            "hosts": "gpu_nodes",
            "gather_facts": False,
            "vars_files": [HOSTS_FILE],
            "vars": {"gpu_kubeconfig": kubeconfig},
            "tasks": [include, record],
        }

    grouped = {"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.group_by": {"key": "gpu_nodes"}}]}
    with serving(SmallCluster(*nodes)) as server:
        results = hear(
            {name: declared for name, (_labels, declared, _strategy) in FOUND.items()},
            [grouped, read("away", "http://127.0.0.1:1"), read("answers", server.url)],
            "dict(groups.all | zip(groups.all | map('extract', hostvars, 'away')"
            " | zip(groups.all | map('extract', hostvars, 'answers'))))",
        )
    assert results == {name: ["open", strategy] for name, (*_node, strategy) in FOUND.items()}


def test_only_nodes_that_are_drained_count_as_drained(hear):
    """In either order of the hosts: the first one's variables are those of a task that runs once."""
    hosts = {"a-stays": False, "a-changes": True, "b-changes": True, "b-stays": False}
    once = {"ansible.builtin.set_fact": {"result": "{{ __gpu_sharing_emptying }}"}, "run_once": True}
    group = {"ansible.builtin.group_by": {"key": "group_{{ inventory_hostname[0] }}"}}
    plays = [
        {
            "hosts": name,
            "gather_facts": False,
            "vars": {"gpu_nodes_group": name},
            "vars_files": [HOSTS_FILE],
            "tasks": [once],
        }
        for name in ("group_a", "group_b")
    ]
    results = hear(
        {
            name: {"gpu_sharing_empties": empties, "__gpu_sharing_host": f"node-{name}"}
            for name, empties in hosts.items()
        },
        [{"hosts": "all", "gather_facts": False, "tasks": [group]}, *plays],
        "dict(groups.all | zip(groups.all | map('extract', hostvars, 'result')))",
    )
    assert results == {name: [f"node-{name[0]}-changes"] for name in hosts}
