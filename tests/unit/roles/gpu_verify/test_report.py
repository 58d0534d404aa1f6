# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of gpu_verify where files cannot be written or read."""

from __future__ import annotations

import json

import pytest

LOCAL = "ansible_connection=local ansible_become=false"


@pytest.fixture
def play(run, tmp_path):
    """Run tasks on the hosts of an inventory, as one play: exit code, and output in one line."""

    def run_play(inventory, tasks, **extra):
        playbook = tmp_path / "play.yml"
        playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
        code, output = run(inventory, playbook, **extra)
        return code, " ".join(output.split())

    return run_play


NO_OBSERVATIONS = {
    "__gpu_verify_observations": [],
    "__gpu_verify_nodes": {},
    "__gpu_verify_objects": {},
    "gpu_verify_runtime_class": "",
}


VERIFY = [{"ansible.builtin.include_role": {"name": "gpu.kubernetes.gpu_verify", "tasks_from": "report"}}]


def test_report_that_cannot_be_written_is_shown(play, tmp_path):
    path = str(tmp_path / "missing" / "report.json")
    code, output = play(f"node {LOCAL}\n", VERIFY, **NO_OBSERVATIONS, gpu_verify_report_path=path)
    assert code != 0
    assert "GPU report: 0 nodes, 0 GPUs, 1 problem" in output
    assert f"The report could not be written to {path} on the controller (Destination directory" in output


def test_broken_earlier_report_is_replaced_and_that_of_an_earlier_job_not_exported_again(play, tmp_path):
    # AWX passes the artifacts of a workflow's earlier jobs as extra variables.
    path = tmp_path / "report.json"
    path.write_text('{"schema": "gpu.kuber')
    stale = {"summary": {"problems": 0}, "problems": []}
    variables = {**NO_OBSERVATIONS, "gpu_verify_report_path": str(path), "gpu_verify_report": stale}
    code, output = play(f"node {LOCAL}\n", VERIFY, environment={"ANSIBLE_SHOW_CUSTOM_STATS": "1"}, **variables)
    assert code != 0
    assert "node: the host could not be examined; read its errors above." in output
    assert "GPU report: 0 nodes, 0 GPUs, 1 problem" in output
    # The artifact of this job.
    assert "problems: 1" in output.partition("CUSTOM STATS")[2]
    assert json.loads(path.read_text())["summary"]["problems"] == 1


def test_defaults_follow_the_strategy_of_each_host(evaluate_role):
    names = ("resource_name", "plugin_namespace", "plugin_labels", "runtime_name")
    operator = {"namespace": "nvidia", "plugin_labels": {"app": "plugin"}}
    operated = {"gpu_sharing_plan": {"cluster": {"operator": operator}}, "k8s_device_plugin_namespace": "other"}
    hosts = {
        "nano": {"gpu_sharing_strategy": "nano_gpu", "nano_gpu_namespace": "shared"},
        "elastic": {"gpu_sharing_decided": "nano_gpu", "nano_gpu_api": "elasticgpu"},
        "memory": {"gpu_sharing_strategy": "gpushare"},
        # NVIDIA's GPU Operator deploys both, and on the other node neither.
        "operated": {**operated, "gpu_sharing_node_plan": {"operated": ["toolkit", "device_plugin"]}},
        "hands-off": {**operated, "gpu_sharing_node_plan": {"operated": []}},
    }
    expression = "[" + ", ".join(f"gpu_verify_{name}" for name in names) + "]"
    # No file is written in a job of AWX.
    hosts["job"] = {"shown": "{{ gpu_verify_report_path }}"}
    awx = {"AWX_HOST": "https://awx.example.com"}
    found = evaluate_role("gpu_verify", hosts, f"shown | default({expression})", environment=awx)
    assert found == {
        "job": "",
        "nano": ["nano-gpu/gpu-percent", "shared", {"app": "nano-gpu-agent"}, "nvidia"],
        "elastic": ["elasticgpu.io/gpu-core", "kube-system", {"app": "nano-gpu-agent"}, "nvidia"],
        "memory": ["aliyun.com/gpu-mem", "kube-system", {"name": "gpushare-device-plugin-ds"}, "nvidia"],
        "operated": ["nvidia.com/gpu", "nvidia", {"app": "plugin"}, ""],
        "hands-off": ["nvidia.com/gpu", "other", {"name": "nvidia-device-plugin-ds"}, "nvidia"],
    }


MIXED = {"flags": {"migStrategy": "mixed"}}
SLICED = {
    "mig_mode": "enabled",
    "mig_devices": [{"name": f"NVIDIA A100 MIG {name}"} for name in ("3g.40gb", *["1g.10gb"] * 4)],
}
SHARED = {
    "sharing": {"timeSlicing": {"renameByDefault": True, "resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}}
}
#: The variables of a host with a sliced and a whole GPU, and what its node has to offer.
EXPECTED = {
    "default": ({}, {"nvidia.com/gpu": 2}),
    "mixed": (
        {"k8s_device_plugin_config": MIXED},
        {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 4, "nvidia.com/mig-3g.40gb": 1},
    ),
    "single": ({"k8s_device_plugin_config": {"flags": {"migStrategy": "single"}}}, {"nvidia.com/gpu": 6}),
    "renamed": ({"k8s_device_plugin_config": SHARED}, {"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 8}),
    "own": (
        {"k8s_device_plugin_config": MIXED, "gpu_sharing_node_plan": {"config": SHARED}},
        {"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 8},
    ),
    "fixed": ({"k8s_device_plugin_config": MIXED, "k8s_device_plugin_expected_gpus": 3}, 3),
    "other-resource": ({"gpu_verify_resource_name": "example.com/gpu"}, 0),
    "memory": ({"gpu_sharing_strategy": "gpushare", "k8s_device_plugin_config": MIXED}, 158),
    "memory-in-mib": ({"gpu_sharing_strategy": "gpushare", "gpushare_memory_unit": "MiB"}, 2 * 81559),
}


def test_node_has_to_offer_what_the_layout_of_its_gpus_has(evaluate_role):
    gpus = [{"memory_total_bytes": 81559 * 1024**2, **state} for state in (SLICED, {"mig_mode": "disabled"})]
    facts = {"ansible.builtin.set_fact": {"nvml": {"source": "nvml", "gpus": gpus}, "cacheable": True}}
    hosts = {name: variables for name, (variables, _expected) in EXPECTED.items()}
    # No file is written in a job of AWX.
    hosts["job"] = {"shown": "{{ gpu_verify_report_path }}"}
    awx = {"AWX_PRIVATE_DATA_DIR": "/runner"}
    found = evaluate_role("gpu_verify", hosts, "shown | default(__gpu_verify_expected)", facts, environment=awx)
    assert found.pop("job") == ""
    assert {name: units if isinstance(units, dict) else int(units) for name, units in found.items()} == {
        name: expected for name, (_variables, expected) in EXPECTED.items()
    }


def test_report_as_json_is_one_line_and_no_table(run, tmp_path):
    playbook, path = tmp_path / "play.yml", tmp_path / "report.json"
    playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": VERIFY}]))
    settings = {**NO_OBSERVATIONS, "gpu_verify_report_path": str(path), "gpu_verify_fail": False}
    _code, output = run(f"nöde {LOCAL}\n", playbook, **settings, gpu_verify_format="json")
    [line] = [line for line in output.splitlines() if line.startswith('{"schema"')]
    assert json.loads(line) == json.loads(path.read_text())
    assert "nöde" in json.dumps(json.loads(line), ensure_ascii=False)
    assert "GPU report:" not in output
