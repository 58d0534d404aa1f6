# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role passes parameters of the hosts to the plan, and exports the plan or refuses its blockers."""

from __future__ import annotations

import json

from fakes.kubernetes_api import node, pod
from fakes.loopback_api import LoopbackApi, encode_list, serve_in_thread, write_kubeconfig
from fakes.small_cluster import SmallCluster

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import FAILURE, find_task

ROLE = "gpu.kubernetes.gpu_sharing"
GPUSHARE, NANO_GPU = {"gpushare": "true"}, {"gpu-kubernetes/nano-gpu": "true"}
GPUS = {"nvml": {"source": "nvml", "error": None, "gpus": [{"name": "GPU", "lost": False}] * 2}}
BY_HOST = "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='result', default='')))"


def cluster_of(nodes, *pods):
    """A server of the two lists that the plan reads."""
    return LoopbackApi({"/api/v1/nodes": encode_list(nodes), "/api/v1/pods": encode_list(list(pods))})


def role_play(hosts, entry="main", **more):
    """A play that runs an entry point of the role and records what it exports, or the message of the failed task."""
    names = "from", "to", "cordon", "drain", "node_absent"
    row = "{{ [" + ", ".join(f"gpu_sharing_node_plan['{name}']" for name in names) + ", gpu_sharing_role] }}"
    block = [
        {"ansible.builtin.include_role": {"name": ROLE, "tasks_from": entry}},
        {"ansible.builtin.set_fact": {"result": row}},
    ]
    rescue = [{"ansible.builtin.set_fact": {"result": FAILURE}}]
    tasks = [{"block": block, "rescue": rescue}]
    variables = {"gpu_preflight_gpus": {"ansible_facts": {}}, **more.pop("vars", {})}
    return {"hosts": hosts, "gather_facts": False, "vars": variables, "tasks": tasks, **more}


NOTHING = [[], "exclusive", False, "none", [], "k8s_device_plugin"]
STAYS = [[], "gpushare", False, "none", [], "gpushare"]
#: Variables of a play, and its hosts: their variables, the label of their nodes, and what they export or parts of the message.
PLAYS = (
    # Hosts with a declared strategy, and strategies of their nodes.
    (
        {"vars": {"gpu_sharing_second_scheduler": "nano_gpu"}},
        {
            "stays": ({}, GPUSHARE, STAYS),
            "leaves": (
                {"gpu_sharing_strategy": "nano_gpu", "gpu_sharing_migrate": True},
                GPUSHARE,
                [["gpushare"], "nano_gpu", True, "gpu", ["gpushare"], "nano_gpu"],
            ),
            "enters": (
                {
                    "gpu_sharing_strategy": "gpushare",
                    "gpu_node_name": "named",
                    "k8s_device_plugin_resource_name": "nvidia.com/a100",
                },
                {},
                [["exclusive"], "gpushare", True, "none", [], "gpushare"],
            ),
        },
    ),
    # All blockers are named at once.
    (
        {},
        {
            "in-use": (
                {"gpu_sharing_strategy": "gpushare"},
                {},
                "Host in-use (node in-use): its GPUs are shared as exclusive",
            ),
            "contradicts": (
                {
                    "k8s_device_plugin_config": {"flags": {"migStrategy": "single"}},
                    "gpu_sharing_strategy": "time_slicing",
                },
                {},
                "Host contradicts: gpu_sharing_strategy is time_slicing, which needs the number of pods that share a GPU;",
            ),
        },
    ),
    # A run without the tags of the sharing. In another run, the control planes would block it.
    (
        {"vars": {"gpu_sharing_run_tags": [], "gpu_sharing_control_planes": []}},
        {
            "whole": (
                {"gpu_sharing_strategy": "gpushare"},
                {},
                [["exclusive"], "gpushare", True, "none", [], "gpushare"],
            ),
        },
    ),
    # A removal in check mode; the second batch is planned with the first one.
    (
        {
            "serial": 1,
            "check_mode": True,
            "vars": {"gpu_sharing_state": "absent", "gpu_sharing_second_scheduler": "nano_gpu"},
        },
        {
            "batch-0": ({}, {}, [[], "", False, "none", [], ""]),
            "batch-1": ({}, NANO_GPU, [["nano_gpu"], "", False, "none", ["nano_gpu"], ""]),
        },
    ),
)


def test_role_exports_the_plan_or_refuses_all_blockers(evaluate, tmp_path):
    hosts = {name: host for _play, hosts in PLAYS for name, host in hosts.items()}
    nodes = [
        node(variables.get("gpu_node_name", name), 2, labels=dict(label))
        for name, (variables, label, _expected) in hosts.items()
    ]
    (named,) = (each for each in nodes if each["metadata"]["name"] == "named")
    named["status"] = {**named["status"], "capacity": {"nvidia.com/a100": "2"}}
    with serve_in_thread(cluster_of(nodes, pod("a", on="in-use", gpus=1), pod("b", on="whole", gpus=1))) as server:
        results = evaluate(
            {name: variables for name, (variables, *_more) in hosts.items()},
            [role_play(":".join(names), **play) for play, names in PLAYS],
            BY_HOST,
            facts=GPUS,
            gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
        )
    for name, (_variables, _label, expected) in hosts.items():
        if isinstance(expected, str):
            # The task runs once, for the first host.
            assert expected in results["in-use"]
        else:
            assert results[name] == expected, name
    # One list of the nodes for each batch.
    assert [path for _method, path, _query in server.requests].count("/api/v1/nodes") == len(PLAYS) + 1


def test_plan_is_printed_as_one_line_for_programs(run, tmp_path):
    with serve_in_thread(cluster_of([node("h")])) as server:
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
        path = tmp_path / "play.yml"
        path.write_text(json.dumps([role_play("all", vars={"gpu_kubeconfig": kubeconfig})]))
        inventory = "h gpu_node_name=h ansible_connection=local ansible_become=false\n"
        code, output = run(inventory, path, gpu_sharing_plan_format="json")
    assert code == 0, output
    [line] = [each for each in output.splitlines() if each.startswith('{"schema"')]
    plan = json.loads(line)
    assert (plan["schema"], [row["to"] for row in plan["nodes"]]) == ("gpu.kubernetes/plan/v1", ["exclusive"])
    assert "STEPS" not in output


def test_record_of_replaced_files_is_found_on_the_host(evaluate, tmp_path):
    record = tmp_path / "recorded" / "state" / "nano-gpu-programs.json"
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    with serve_in_thread(cluster_of([node("recorded"), node("plain")])) as server:
        results = evaluate(
            {name: {"nano_gpu_state_dir": str(tmp_path / name)} for name in ("recorded", "plain")},
            [role_play("all", "plan")],
            BY_HOST,
            facts=GPUS,
            gpu_kubeconfig=str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
        )
    assert results == {
        "recorded": [["nano_gpu"], "exclusive", True, "none", ["nano_gpu"], "k8s_device_plugin"],
        "plain": NOTHING,
    }


def test_variables_of_roles_that_change_nodes_allow_their_removal(evaluate_role):
    allowed = {"mps_remove_used": True, "nano_gpu_remove_used": True, "k8s_device_plugin_remove_used": True}
    [found] = evaluate_role("gpu_sharing", {"h": allowed}, "__gpu_sharing_remove_used").values()
    assert found == {"mps": True, "mig": False, "gpushare": False, "nano_gpu": True}


#: Entries of a layout after one for all GPUs, and whether a GPU stays whole.
LAYOUTS = {"each": ([], False), "all-but-one": ([{"gpus": [0], "profiles": {}}], True)}


def test_last_entry_of_the_layout_decides_whether_a_gpu_stays_whole(evaluate_role):
    gpus = [{"name": "GPU", "lost": False, "index": index, "mig_mode": "disabled"} for index in (0, 1)]
    hosts = {
        name: {
            "gpu_sharing_mig_layout": [{"gpus": "all", "profiles": {"1g.10gb": 7}}, *more],
            "__gpu_sharing_records": {"files": {}},
        }
        for name, (more, _whole) in LAYOUTS.items()
    }
    task = find_task("gpu_sharing", "plan", "Collect the parameters")
    facts = {"nvml": {"source": "nvml", "error": None, "gpus": gpus}}
    found = evaluate_role("gpu_sharing", hosts, "__gpu_sharing_request.has_whole", task, facts=facts)
    assert found == {name: whole for name, (_more, whole) in LAYOUTS.items()}


#: Labels of the node of a host, what it declares, and the strategy and role in a playbook that only reads.
OBSERVED = {
    "by-memory": (GPUSHARE, {}, ["gpushare", "gpushare"]),
    "by-percent": (NANO_GPU, {}, ["nano_gpu", "nano_gpu"]),
    "by-both": ({**GPUSHARE, **NANO_GPU}, {}, ["gpushare", "gpushare"]),
    "whole": ({}, {}, ["exclusive", "k8s_device_plugin"]),
    "label-false": ({"gpushare": "false"}, {}, ["exclusive", "k8s_device_plugin"]),
    "declared": (GPUSHARE, {"gpu_sharing_strategy": "mps"}, ["mps", "k8s_device_plugin"]),
}


def test_observe_exports_the_strategy_and_accepts_an_unreachable_api_server(evaluate, tmp_path):
    nodes = [
        {"apiVersion": "v1", "kind": "Node"} | node(name, labels=dict(labels))
        for name, (labels, *_more) in OBSERVED.items()
    ]

    def read(result, url):
        record = {"ansible.builtin.set_fact": {result: ["{{ gpu_sharing_decided }}", "{{ gpu_sharing_role }}"]}}
        include = {"ansible.builtin.include_role": {"name": ROLE, "tasks_from": "observe"}}
        kubeconfig = str(write_kubeconfig(url, tmp_path / result))
        return {
            "hosts": "all",
            "gather_facts": False,
            "vars": {"gpu_kubeconfig": kubeconfig},
            "tasks": [include, record],
        }

    with serve_in_thread(SmallCluster(*nodes)) as server:
        results = evaluate(
            {name: declared for name, (_labels, declared, _strategy) in OBSERVED.items()},
            [read("unreachable", "http://127.0.0.1:1"), read("reachable", server.url)],
            "dict(groups.all | zip(groups.all | map('extract', hostvars, 'unreachable')"
            " | zip(groups.all | map('extract', hostvars, 'reachable'))))",
        )
    assert {name: both[1] for name, both in results.items()} == {name: row[2] for name, row in OBSERVED.items()}
    assert results["by-memory"][0] == ["", "k8s_device_plugin"]
    assert results["declared"][0] == ["mps", "k8s_device_plugin"]
