# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook on an API server that creates nothing, what the role makes of results, and whose variables its defaults follow."""

from __future__ import annotations

import json

import pytest
import yaml
from fakes.gpushare import share_pod
from fakes.gpushare_cluster import shared_node
from fakes.kubernetes_api import node, pod
from fakes.loopback_api import LoopbackApi, listed, serving, write_kubeconfig

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

LOCAL = "ansible_connection=local ansible_become=false"
INVENTORY = f"[gpu_nodes]\nw1 {LOCAL} gpu_node_name=w1\nw2 {LOCAL} gpu_node_name=w2\n"
LABELS = {"app.kubernetes.io/name": "gpushare-smoke-test", "app.kubernetes.io/managed-by": "gpu.kubernetes"}


@pytest.fixture
def prove(run, tmp_path):
    """Run the playbook on nodes and pods: exit code and all that it said."""

    # What the hosts have of GPUs is told, for this machine has none.
    told = {"nvml": {"source": "nvml", "error": None, "gpus": "{{ gpus | default([{}]) }}"}, "cacheable": True}
    facts = {"hosts": "gpu_nodes", "gather_facts": False, "tasks": [{"ansible.builtin.set_fact": told}]}
    playbook = tmp_path / "play.yml"
    role = {"hosts": "gpu_nodes", "gather_facts": False, "roles": ["gpu.kubernetes.gpushare_smoke_test"]}
    playbook.write_text(json.dumps([facts, role]))

    def play(nodes, pods, *options, ours=(), inventory=INVENTORY, **variables):
        lists = {
            "/api/v1/nodes": listed(nodes),
            "/api/v1/pods": listed(pods),
            "/api/v1/namespaces/default/pods": listed(list(ours)),
        }
        with serving(LoopbackApi(lists)) as server:
            kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
            known = {"gpu_preflight_gpus": {"ansible_facts": {}}, "gpu_kubeconfig": kubeconfig}
            code, said = run(inventory, playbook, *options, **known, **variables)
            return code, " ".join(said.split())

    return play


def test_nodes_that_cannot_be_tried_fail_or_are_skipped(prove):
    code, said = prove([shared_node("w1"), node("w2", 1)], [share_pod("a", amounts=[9])])
    assert code != 0
    assert "SKIPPED: node w1: busy: no GPU has 8 GiB free; it is in use by default/a." in said
    assert "Host w2 (node w2) did not pass the test of shared GPUs: offers 0 aliyun.com/gpu-mem, so" in said
    assert "Host w1 " not in said


def test_skipped_nodes_count_as_failed_where_that_is_asked_for(made):
    seen = {"__gpushare_smoke_test_run": {"results": [{"node": "w1", "passed": False, "skipped": True}]}}
    hosts = {"borne": seen, "not-borne": {**seen, "gpushare_smoke_test_skip_ok": False}}
    told = made("gpushare_smoke_test", hosts, "__gpushare_smoke_test_judged | map(attribute='skipped') | list")
    assert told == {"borne": [True], "not-borne": [False]}


def test_a_host_without_a_gpu_is_left_out_with_a_word(prove):
    code, said = prove([node("w1")], [], inventory=f"[gpu_nodes]\nw1 {LOCAL} gpu_node_name=w1\n", gpus=[])
    assert code == 0, said
    assert "SKIPPED: host w1 has no GPU, so there is nothing to test." in said


def test_amounts_and_unit_are_heeded(prove):
    nodes = [shared_node("w1", 141), shared_node("w2", 141)]
    code, said = prove(nodes, [], gpushare_smoke_test_amounts=[100, 42], gpu_sharing_strategy="gpushare")
    assert code == 0, said
    assert "SKIPPED: node w2: has GPUs of 141 GiB, and the pods ask for 142 GiB together; ask for less." in said


def test_check_mode_proves_nothing_and_is_no_failure(prove):
    code, said = prove([shared_node("w1"), shared_node("w2")], [], "--check", gpushare_smoke_test_skip_ok=False)
    assert code == 0, said
    assert "SKIPPED: node w1: check mode: no pod was created, nothing was proved." in said
    assert "changed=0" in said


def test_absent_tells_what_it_would_remove(prove):
    left = pod("left", labels=LABELS)
    code, said = prove([shared_node("w1")], [], "--check", ours=[left], gpushare_smoke_test_state="absent")
    assert code == 0, said
    assert "changed=1" in said


PASSED = {
    "node": "w1",
    "passed": True,
    "skipped": False,
    "reason": "",
    "unit": "GiB",
    "gpu_index": 0,
    "percent": [0, 18, 50],
    "pods": [{"name": "a", "amount": 3}, {"name": "b", "amount": 5}],
    "pending_reason": "1 Insufficient aliyun.com/gpu-mem.",
}
FAILED = {**PASSED, "node": "w2", "passed": False, "reason": "the pod of 5 GiB is on GPU 1", "percent": [0, 18]}


def test_results_are_exported_and_each_host_gets_its_own(refusals):
    hosts = {name: {"gpu_node_name": name} for name in ("w1", "w2", "bare")}
    variables = {
        "__gpushare_smoke_test_run": {"results": [PASSED, FAILED]},
        "gpu_node_name": "{{ inventory_hostname }}",
        "__gpushare_smoke_test_host": "{{ inventory_hostname if inventory_hostname != 'bare' else '' }}",
    }
    fact = "gpushare_smoke_test_results | map(attribute='percent') | list | string"
    why = refusals("gpushare_smoke_test", ["report"], hosts, variables=variables, fact=fact)
    assert str(why["w1"]) == str(why["bare"]) == "[[0, 18, 50], [0, 18]]"
    assert why["w2"] == "Host w2 (node w2) did not pass the test of shared GPUs: the pod of 5 GiB is on GPU 1."


def test_a_module_that_gave_no_results_is_told_to_each_host(refusals):
    hosts = {name: {"gpu_node_name": name} for name in ("w1", "w2")}
    variables = {"__gpushare_smoke_test_run": {"msg": "The API is away."}}
    why = refusals("gpushare_smoke_test", ["report"], hosts, variables=variables)
    assert why == {name: f"{name}: The API is away." for name in hosts}


LINKED = {
    "gpushare_memory_unit": "MiB",
    "gpu_smoke_test_image_registry": "registry.example.com",
    "gpu_smoke_test_image_tag": "mine",
    "gpu_smoke_test_image_pull_secrets": ["secret"],
    "gpu_smoke_test_command": ["/run"],
    "gpu_smoke_test_expected_output": "fine",
    "gpu_smoke_test_runtime_class": "other-class",
    "gpushare_extender_image_tag": "mine",
    "gpu_smoke_test_namespace": "tests",
    "gpu_smoke_test_tolerations": [{"operator": "Exists"}],
    "gpu_smoke_test_run_as_user": 0,
}
DEFAULTS = {
    "__gpushare_smoke_test_image": (
        "nvcr.io/nvidia/k8s/cuda-sample:vectoradd-cuda12.5.0",
        "registry.example.com/nvidia/k8s/cuda-sample:mine",
    ),
    "gpushare_smoke_test_unit": ("", "MiB"),
    "gpushare_smoke_test_image_pull_secrets": ([], ["secret"]),
    "gpushare_smoke_test_command": ([], ["/run"]),
    "gpushare_smoke_test_expected_output": ("Test PASSED", "fine"),
    "gpushare_smoke_test_runtime_class": ("", "other-class"),
    "gpushare_smoke_test_namespace": ("default", "tests"),
    "gpushare_smoke_test_tolerations": ([], [{"operator": "Exists"}]),
    "gpushare_smoke_test_run_as_user": (65534, 0),
}


#: What a host knows of the deployment, and the unit that is taken for granted.
UNITS = {
    "of-somebody-else": ({}, ""),
    "declared": ({"gpu_sharing_strategy": "gpushare"}, "GiB"),
    "decided-by-site": ({"gpu_sharing_strategy": "", "gpu_sharing_decided": "gpushare"}, "GiB"),
    "deployed-by-this-run": ({"gpushare_shares": True}, "GiB"),
    "said": ({"gpu_sharing_strategy": "gpushare", "gpushare_memory_unit": "MiB"}, "MiB"),
}


def test_the_unit_is_known_where_the_deployment_is_ours(hear):
    unit = yaml.safe_load((ROOT / "roles" / "gpushare_smoke_test" / "defaults" / "main.yml").read_text())
    tasks = [{"ansible.builtin.set_fact": {"told": unit["gpushare_smoke_test_unit"]}}]
    play = {"hosts": "all", "gather_facts": False, "tasks": tasks}
    told = "dict(groups.all | zip(groups.all | map('extract', hostvars, 'told')))"
    found = hear({name: host for name, (host, _unit) in UNITS.items()}, [play], told)
    # ansible-core 2.18 makes nothing of an empty text.
    assert {name: unit or "" for name, unit in found.items()} == {name: unit for name, (_host, unit) in UNITS.items()}


def test_defaults_follow_what_was_declared_for_other_roles(made):
    told = "{" + ", ".join(f"'{name}': {name} | string" for name in DEFAULTS) + "}"
    assert made("gpushare_smoke_test", {"alone": {}, "linked": LINKED}, told) == {
        host: {name: str(values[index]) for name, values in DEFAULTS.items()}
        for index, host in enumerate(("alone", "linked"))
    }
