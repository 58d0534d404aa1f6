# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report of gpu_verify where files cannot be written or read."""

from __future__ import annotations

import json

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

LOCAL = "ansible_connection=local ansible_become=false"


@pytest.fixture
def play(run, tmp_path):
    """Run tasks on the hosts of an inventory, as one play: exit code, and what was said in one line."""

    def run_play(inventory, tasks, **extra):
        playbook = tmp_path / "play.yml"
        playbook.write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]))
        code, said = run(inventory, playbook, **extra)
        return code, " ".join(said.split())

    return run_play


SEEN_NOTHING = {
    "__gpu_verify_asked": {},
    "__gpu_verify_objects": {},
    "gpu_verify_runtime_class": "",
}


VERIFY = [{"ansible.builtin.include_role": {"name": "gpu.kubernetes.gpu_verify", "tasks_from": "report"}}]


def test_a_report_that_cannot_be_written_is_shown_all_the_same(play, tmp_path):
    path = str(tmp_path / "missing" / "report.json")
    code, said = play(f"node {LOCAL}\n", VERIFY, **SEEN_NOTHING, gpu_verify_report_path=path)
    assert code != 0
    assert "GPU report: 0 nodes, 0 GPUs, 1 problem" in said
    assert f"The report could not be written to {path} on the controller (Destination directory" in said


@pytest.mark.parametrize("text", ["", '{"schema": "gpu.kuber'])
def test_a_broken_earlier_report_is_written_anew(play, tmp_path, text):
    path = tmp_path / "report.json"
    path.write_text(text)
    code, said = play(f"node {LOCAL}\n", VERIFY, **SEEN_NOTHING, gpu_verify_report_path=str(path))
    assert code != 0
    assert "node: the host could not be examined; read its errors above." in said
    assert json.loads(path.read_text())["summary"]["problems"] == 1


MINE, SHARED = {"key": "nvidia", "value": "nvidia"}, {"key": "shared", "value": "other"}
#: What hosts need, what the cluster has, and the class that the report tells of: its name, whether it is there, its handler, the one expected.
CLASSES = {
    "all-well": ([MINE, SHARED], {"nvidia": "nvidia", "shared": "other"}, ["nvidia", True, "nvidia", "nvidia"]),
    "one-missing": ([MINE, SHARED], {"nvidia": "nvidia"}, ["shared", False, None, "other"]),
    "one-wrong": ([MINE, SHARED], {"nvidia": "nvidia", "shared": "runc"}, ["shared", True, "runc", "other"]),
    "any-handler": ([{"key": "nvidia", "value": ""}], {"nvidia": "odd"}, ["nvidia", True, "odd", None]),
    "none-asked-for": ([{"key": "", "value": "nvidia"}], {}, ["", False, None, None]),
}


def test_the_report_looks_at_the_runtime_class_of_each_host(hear):
    seen = {"node": "n", "smoke_error": "", "plugin": {"resource_name": "nvidia.com/gpu"}}
    hosts, plays = {}, []
    for case, (needed, there, _wanted) in CLASSES.items():
        its = {
            f"{case}-{number}": {"__gpu_verify_observation": {**seen, "runtime_class": one}}
            for number, one in enumerate(needed)
        }
        hosts.update(its)
        found = [[], *([{"metadata": {"name": name}, "handler": handler}] for name, handler in there.items())]
        asked = "{{ __gpu_verify_class_objects | map(attribute='metadata.name') | list }}"
        plays.append(
            {
                "hosts": ",".join(its),
                "gather_facts": False,
                "vars_files": [str(ROOT / "roles" / "gpu_verify" / "vars" / "main.yml")],
                "vars": {"__gpu_verify_objects": {"found": found}, "__gpu_verify_asked": {}},
                "tasks": [
                    {
                        "ansible.builtin.set_fact": {
                            "told": ["{{ __gpu_verify_cluster.runtime_class }}", asked],
                        }
                    }
                ],
            }
        )
    told = hear(hosts, plays, "dict(groups.all | zip(groups.all | map('extract', hostvars, 'told')))")
    for case, (needed, _there, wanted) in CLASSES.items():
        seen, asked = told[f"{case}-0"]
        # ansible-core 2.18 makes an empty text of nothing.
        assert [seen["name"], seen["found"], seen["handler"] or None, seen["expected_handler"] or None] == wanted, case
        assert asked == [one["key"] for one in needed if one["key"]], case


def test_the_report_knows_what_its_hosts_offer(made):
    names = ("resource_name", "plugin_namespace", "plugin_labels")
    hosts = {
        "nano": {"gpu_sharing_strategy": "nano_gpu", "nano_gpu_namespace": "shared"},
        "elastic": {"gpu_sharing_decided": "nano_gpu", "nano_gpu_api": "elasticgpu"},
        "memory": {"gpu_sharing_strategy": "gpushare"},
    }
    assert made("gpu_verify", hosts, "[" + ", ".join(f"gpu_verify_{name}" for name in names) + "]") == {
        "nano": ["nano-gpu/gpu-percent", "shared", {"app": "nano-gpu-agent"}],
        "elastic": ["elasticgpu.io/gpu-core", "kube-system", {"app": "nano-gpu-agent"}],
        "memory": ["aliyun.com/gpu-mem", "kube-system", {"name": "gpushare-device-plugin-ds"}],
    }
