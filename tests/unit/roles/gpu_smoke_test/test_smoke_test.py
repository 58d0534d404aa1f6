# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook on an API server that creates nothing, the reports of the role, and its defaults, which follow other roles."""

from __future__ import annotations

import json

import pytest
from fakes.kubernetes_api import node, pod
from fakes.loopback_api import LoopbackApi, encode_list, serve_in_thread, write_kubeconfig
from fakes.sharing_cluster import CORE, MEMORY, PERCENT, holder, shared_node

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import HERE, ROOT

PLAYBOOK = ROOT / "playbooks" / "smoke_test_gpu_nodes.yml"


@pytest.fixture
def smoke_test(run, tmp_path):
    """Run the playbook on hosts, nodes and pods: exit code and output."""

    # This machine has no GPUs.
    facts = {
        "nvml": {"source": "nvml", "error": None, "gpus": "{{ gpus | default([{}]) }}"},
        "nodename": "{{ inventory_hostname }}",
        "cacheable": True,
    }
    first = {"hosts": "gpu_nodes", "gather_facts": False, "tasks": [{"ansible.builtin.set_fact": facts}]}
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps([first, {"ansible.builtin.import_playbook": str(PLAYBOOK)}]))

    def play(hosts, nodes, pods):
        lists = {
            "/api/v1/nodes": encode_list(nodes),
            "/api/v1/pods": encode_list(pods),
            "/api/v1/namespaces/default/pods": encode_list([]),
        }
        with serve_in_thread(LoopbackApi(lists)) as server:
            kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
            common = {"gpu_preflight_gpus": {"ansible_facts": {}}, "gpu_kubeconfig": kubeconfig}
            code, output = run({"gpu_nodes": {"hosts": hosts, "vars": HERE}}, playbook, **common)
            return code, " ".join(output.split())

    return play


STRATEGIES = {
    "w1": {"gpu_sharing_strategy": "gpushare"},
    "w2": {"gpu_sharing_strategy": "nano_gpu"},
    "w3": {"gpu_sharing_strategy": "exclusive"},
    "w4": {"gpu_sharing_strategy": "gpushare", "gpu_sharing_second_scheduler": "gpushare"},
    "w5": {"gpu_sharing_strategy": "exclusive", "gpus": []},
    "w6": {"gpu_sharing_strategy": "exclusive", "gpus": [{"name": "Tesla K80"}, {"name": "Tesla P100"}]},
}


def offline_node(name):
    """A node of SuperEdge that does not report to the API server."""
    item = node(name, 1, ready=False, labels={"superedge.io/node-edge": "enable"})
    item["status"]["conditions"][0].update(status="Unknown", message="Kubelet stopped posting node status.")
    return item


def test_each_host_is_tested_by_its_own_strategy(smoke_test):
    nodes = [shared_node("w1"), node("w2"), node("w3", 1), node("w4"), node("w5"), offline_node("w6")]
    code, output = smoke_test(STRATEGIES, nodes, [holder("a", 10, 0), pod("b", on="w3", gpus=1)])
    assert code != 0
    assert "SKIPPED: node w1: busy: 10 of 16 aliyun.com/gpu-mem are in use by default/a." in output
    assert (
        "Host w2 (node w2) did not pass the GPU test: has 0 allocatable nano-gpu/gpu-percent, so a device plugin"
        in output
    )
    assert "SKIPPED: node w3: busy: 1 of 1 nvidia.com/gpu are in use by default/b." in output
    assert "NOT VERIFIED: w4: a second scheduler places the pods that share GPUs" in output
    assert "SKIPPED: host w5 has no GPU, so it is not tested." in output
    assert "Host w1 " not in output
    assert "UNEQUAL GPUS: host w6 has GPUs of different kinds (1 x Tesla K80, 1 x Tesla P100)" in output
    assert "SKIPPED: node w6: not judged: its edge framework keeps its pods while it is offline" in output
    assert "UNEQUAL GPUS: host w1" not in output


def runs(*results):
    return {"__gpu_smoke_test_runs": {"results": list(results)}}


def test_results_are_exported_and_each_host_gets_its_own(refusals):
    """In a second play, the module has returned no results."""
    passed = {"node": "w1", "passed": True, "skipped": False, "reason": ""}
    failed = {"node": "w2", "passed": False, "skipped": False, "reason": "the pod failed"}
    results = {**runs({"results": [passed]}, {"results": [failed]}), "gpu_smoke_test_state": "absent"}
    without = runs({"results": []}, {"msg": "The API server does not answer."})
    first = {name: {"gpu_node_name": name, **results} for name in ("w1", "w2", "bare")}
    second = {name: {"gpu_node_name": name, **without} for name in ("x1", "x2")}
    fact = "gpu_smoke_test_results | map(attribute='node') | join(' ')"
    messages = refusals("gpu_smoke_test", ["report"], first, second, fact=fact, facts={"nvml": {"gpus": [{}]}})
    assert messages == {
        "w1": "w1 w2",
        "w2": "Host w2 (node w2) did not pass the GPU test: the pod failed.",
        "bare": "w1 w2",
        **{name: f"{name}: The API server does not answer." for name in second},
    }


#: The newest CUDA of a host's driver, and the tag of the sample that it runs.
TAGS = {
    "current": ("13.0", "vectoradd-cuda12.5.0"),
    "first-of-12": ("12.0", "vectoradd-cuda12.5.0"),
    "kepler": ("11.4", "vectoradd-cuda11.7.1-ubuntu20.04"),
    "old": ("10.2", "vectoradd-cuda10.2"),
    "unknown": (None, "vectoradd-cuda12.5.0"),
}


CLASSES = {
    "k8s_device_plugin_runtime_class": "whole",
    "gpushare_runtime_class": "memory",
    "nano_gpu_runtime_class": "percent",
}
DIGEST = "sha256:" + "0a" * 32
#: The variables of a host, the RuntimeClass of its pods, and the resources that they share.
DEFAULTS = {
    "alone": ({}, "nvidia", []),
    "whole": ({"gpu_sharing_strategy": "mps", **CLASSES}, "whole", []),
    "percent": ({"gpu_sharing_strategy": "nano_gpu", **CLASSES}, "percent", [vars(PERCENT), vars(CORE)]),
    "published": ({"gpu_sharing_strategy": "gpushare", **CLASSES}, "", [vars(MEMORY)]),
    "newer": (
        {"gpu_sharing_strategy": "gpushare", **CLASSES, "gpushare_extender_image_tag": "own"},
        "memory",
        [vars(MEMORY)],
    ),
    "pinned": (
        {"gpu_sharing_strategy": "gpushare", **CLASSES, "gpushare_extender_image_tag": f"1.11-d170d8a@{DIGEST}"},
        "",
        [vars(MEMORY)],
    ),
    "digest": (
        {"gpu_sharing_strategy": "gpushare", **CLASSES, "gpushare_extender_image_tag": DIGEST},
        "",
        [vars(MEMORY)],
    ),
    "declared": (
        {"gpu_sharing_strategy": "gpushare", **CLASSES, "gpushare_extender_keeps_runtime_class": True},
        "memory",
        [vars(MEMORY)],
    ),
    "decided": ({"gpu_sharing_strategy": "", "gpu_sharing_decided": "gpushare"}, "", [vars(MEMORY)]),
}


def test_defaults_and_verdict_follow_the_variables(evaluate_role):
    """One run for all: each host shows a variable of its own. Defaults follow the strategy and the variables of its role."""
    skipped = runs({"results": [{"node": "w1", "passed": False, "skipped": True}]})
    skipped["shown"] = "{{ __gpu_smoke_test_judged | map(attribute='skipped') | list }}"
    hosts = {"accepted": skipped, "not-accepted": {**skipped, "gpu_smoke_test_skip_ok": False}}
    for name, (cuda, _tag) in TAGS.items():
        hosts[f"tag-{name}"] = {"cuda": cuda, "shown": "{{ gpu_smoke_test_image_tag }}"}
    defaults = "{{ [gpu_smoke_test_runtime_class | string, __gpu_smoke_test_row.shared] }}"
    for name, (variables, *_values) in DEFAULTS.items():
        hosts[name] = {**variables, "shown": defaults}
    task = {
        "ansible.builtin.set_fact": {"nvml": {"cuda_driver_version": "{{ cuda | default(none) }}"}, "cacheable": True}
    }
    found = evaluate_role("gpu_smoke_test", hosts, "shown", task)
    assert (found["accepted"], found["not-accepted"]) == ([True], [False])
    assert {name: found[f"tag-{name}"] for name in TAGS} == {name: tag for name, (_cuda, tag) in TAGS.items()}
    assert {name: found[name] for name in DEFAULTS} == {
        name: [runtime_class, shared] for name, (_variables, runtime_class, shared) in DEFAULTS.items()
    }
