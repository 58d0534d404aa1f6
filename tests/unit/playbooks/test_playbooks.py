# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbooks and the links between roles promise before a host or a cluster is asked."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LOCAL = "ansible_connection=local ansible_become=false"
# This one asks the API server alone.
NO_HOSTS = ("show_gpu_allocation.yml",)
ELSEWHERE = {"patch_kube_scheduler.yml": "kube_control_plane"}
PLAYBOOKS = sorted({path.name for path in (ROOT / "playbooks").glob("*.yml")} - {*NO_HOSTS})
ROLES = ("k8s_device_plugin", "gpu_smoke_test", "gpu_verify")

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")


@pytest.mark.parametrize(
    ("playbook", "inventory"),
    [*((name, "[gpus]\nnode\n") for name in PLAYBOOKS), ("site.yml", "[gpu_nodes]\n[others]\nnode\n")],
)
def test_group_without_hosts_is_an_error(run, playbook, inventory):
    code, said = run(inventory, ROOT / "playbooks" / playbook)
    assert code != 0
    assert f"The inventory has no host in {ELSEWHERE.get(playbook, 'gpu_nodes')}; " in said


@pytest.mark.parametrize(
    "name", ["label_gpu_nodes", "deploy_device_plugin", "smoke_test_gpu_nodes", "remove_gpu_nodes"]
)
def test_missing_kubeconfig_is_told_before_anything_else(run, name):
    inventory = "[gpu_nodes]\nnode ansible_connection=local\n"
    code, said = run(inventory, ROOT / "playbooks" / f"{name}.yml", gpu_kubeconfig="/nonexistent")
    assert code != 0
    assert "node: the kubeconfig /nonexistent does not exist" in " ".join(said.split())


@pytest.mark.parametrize(
    ("name", "play"), [("site", "Label the GPU nodes"), ("remove_gpu_nodes", "Remove the device plugin")]
)
def test_nothing_is_decided_that_a_run_does_not_need(run, name, play):
    playbook = ROOT / "playbooks" / f"{name}.yml"
    code, said = run(f"[gpu_nodes]\nnode {LOCAL}\n", playbook, "--tags", "labels", gpu_kubeconfig="/nonexistent")
    assert code != 0
    assert f"PLAY [{play}" in said.partition("the kubeconfig /nonexistent does not exist")[0]


@pytest.mark.parametrize(("tag", "asked"), [("labels,smoke_test", False), ("device_plugin", True)])
def test_helm_is_asked_for_where_it_is_needed(run, tmp_path, tag, asked):
    helm = tmp_path / "bin" / "helm"
    helm.parent.mkdir()
    helm.write_text("#!/bin/sh\nexit 1\n")
    helm.chmod(0o755)
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text("{}")
    code, said = run(
        f"[gpu_nodes]\nnode {LOCAL}\n",
        ROOT / "playbooks" / "remove_gpu_nodes.yml",
        "--tags",
        tag,
        environment={"PATH": f"{helm.parent}:{os.environ['PATH']}"},
        gpu_kubeconfig=str(kubeconfig),
        k8s_device_plugin_method="helm",
    )
    assert code != 0
    assert ("no helm command that works" in " ".join(said.split())) is asked, said


ALL = ["device_plugin", "gpushare", "nano_gpu", "scheduler"]


@pytest.mark.parametrize(
    ("options", "follows", "tags", "matters"),
    [
        ((), True, ALL, True),
        (("--tags", "verify"), True, [], True),
        (("--tags", "device_plugin"), False, ALL[:1], True),
        (("--tags", "device_plugin,verify"), True, ALL[:1], True),
        (("--tags", "gpushare,device_plugin"), False, ALL[:2], True),
        (("--tags", "runtime"), False, [], True),
        (("--skip-tags", "verify"), False, ALL, True),
        (("--skip-tags", "smoke_test"), True, ALL, True),
        (("--skip-tags", "device_plugin"), True, ALL[1:], True),
        (("--skip-tags", "scheduler"), True, ALL[:3], True),
        (("--tags", "labels"), False, [], False),
        (("--tags", "labels,reserve"), False, [], False),
        (("--tags", "labels,scheduler"), False, ALL[3:], True),
        (("--skip-tags", "all"), False, [], False),
    ],
)
def test_a_run_knows_what_it_is_about(run, tmp_path, options, follows, tags, matters):
    """A verdict is left to the report only if there is one, and the sharing is not changed by half."""
    told = "follows={{ __gpu_report_follows | bool }} tags={{ __gpu_sharing_run_tags | join('+') }}"
    told += " matters={{ __gpu_sharing_matters | bool }}."
    play = {
        "hosts": "all",
        "gather_facts": False,
        "vars_files": [str(ROOT / "playbooks" / "vars" / "hosts.yml")],
        "tasks": [{"ansible.builtin.debug": {"msg": told}, "tags": ["always"]}],
    }
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps([play]))
    code, said = run("node\n", playbook, *options)
    assert code == 0, said
    assert f"follows={follows} tags={'+'.join(tags)} matters={matters}." in said


LINKED = {
    "containerd_nvidia_config_path": "/etc/other.toml",
    "containerd_nvidia_runtime_name": "other",
    "gpu_preflight_require_gpu": False,
    "k8s_device_plugin_config": {"flags": {"nvidiaDriverRoot": "/driver"}},
    "k8s_device_plugin_method": "helm",
    "k8s_device_plugin_namespace": "plugins",
    "k8s_device_plugin_release_name": "ours",
    "k8s_device_plugin_resource_name": "nvidia.com/gpu.shared",
    "k8s_device_plugin_runtime_class": "other-class",
}
DEFAULTS = {
    "k8s_device_plugin_driver_root": ("/", "/driver"),
    "k8s_device_plugin_runtime_handler": ("nvidia", "other"),
    "gpu_smoke_test_resource_name": ("nvidia.com/gpu", "nvidia.com/gpu.shared"),
    "gpu_smoke_test_runtime_class": ("nvidia", "other-class"),
    "gpu_verify_configuration": ({}, {"path": "/etc/other.toml"}),
    "gpu_verify_plugin_labels": (
        {"name": "nvidia-device-plugin-ds"},
        {"app.kubernetes.io/name": "nvidia-device-plugin", "app.kubernetes.io/instance": "ours"},
    ),
    "gpu_verify_plugin_namespace": ("kube-system", "plugins"),
    "gpu_verify_report_path": (f"{os.environ.get('PWD', '')}/gpu-report.json",) * 2,
    "gpu_verify_require_gpu": (True, False),
    "gpu_verify_resource_name": ("nvidia.com/gpu", "nvidia.com/gpu.shared"),
    "gpu_verify_runtime_class": ("nvidia", "other-class"),
    "gpu_verify_runtime_handler": ("nvidia", "other"),
    "gpu_verify_runtime_name": ("nvidia", "other"),
}
SHARED = {
    "gpu_sharing_strategy": "gpushare",
    "gpushare_namespace": "shared",
    "gpushare_runtime_class": "shared-class",
    "gpushare_runtime_handler": "shared-handler",
}
SHARED_DEFAULTS = {
    "gpu_verify_plugin_namespace": "shared",
    "gpu_verify_resource_name": "aliyun.com/gpu-mem",
    "gpu_verify_runtime_class": "shared-class",
    "gpu_verify_runtime_handler": "shared-handler",
}


@pytest.mark.parametrize(
    ("variables", "values"),
    [
        ({}, {name: values[0] for name, values in DEFAULTS.items()}),
        (LINKED, {name: values[1] for name, values in DEFAULTS.items()}),
        ({**LINKED, **SHARED}, SHARED_DEFAULTS),
    ],
    ids=["alone", "linked", "shared"],
)
def test_defaults_follow_what_was_declared_for_other_roles(hear, tmp_path, variables, values):
    # As role defaults, not play variables: whatever the inventory says goes before.
    for role in ROLES:
        for folder in ("defaults", "vars"):
            shutil.copytree(ROOT / "roles" / role / folder, tmp_path / "roles" / role / folder)
    tasks = [
        {"ansible.builtin.set_fact": {"told": "{{ {" + ", ".join(f"'{name}': {name}" for name in values) + "} }}"}}
    ]
    play = {"hosts": "all", "gather_facts": False, "roles": list(ROLES), "tasks": tasks}
    assert hear({"node": {}}, [play], "told", **variables) == values
