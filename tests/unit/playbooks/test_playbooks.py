# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbooks and the links between roles promise before a host or a cluster is asked."""

from __future__ import annotations

import os
import shutil

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

LOCAL = "ansible_connection=local ansible_become=false"
# This one asks the API server alone.
NO_HOSTS = ("show_gpu_allocation.yml",)
ELSEWHERE = {"patch_kube_scheduler.yml": "kube_control_plane"}
PLAYBOOKS = sorted({path.name for path in (ROOT / "playbooks").glob("*.yml")} - {*NO_HOSTS})
ROLES = ("k8s_device_plugin", "gpu_smoke_test", "gpu_verify")


def plays(name):
    return yaml.safe_load((ROOT / "playbooks" / name).read_text())


@pytest.mark.parametrize("playbook", PLAYBOOKS)
def test_hosts_of_a_first_play_are_a_group_that_must_have_hosts(playbook):
    first = plays(playbook)[0]
    group = ELSEWHERE.get(playbook, "gpu_nodes")
    assert (first["hosts"], first["vars_files"]) == (f"{{{{ __{group} }}}}", ["vars/hosts.yml"])


@pytest.mark.parametrize(
    ("playbook", "inventory"),
    [
        ("label_gpu_nodes.yml", "[gpus]\nnode\n"),
        ("patch_kube_scheduler.yml", "[gpus]\nnode\n"),
        ("site.yml", "[gpu_nodes]\n[others]\nnode\n"),
    ],
)
def test_group_without_hosts_is_an_error(run, playbook, inventory):
    code, said = run(inventory, ROOT / "playbooks" / playbook)
    assert code != 0
    assert f"The inventory has no host in {ELSEWHERE.get(playbook, 'gpu_nodes')}; " in said


@pytest.mark.parametrize(
    "name",
    [
        "label_gpu_nodes",
        "deploy_device_plugin",
        "smoke_test_gpu_nodes",
        "remove_gpu_nodes",
        "show_gpu_allocation",
    ],
)
def test_the_kubeconfig_is_checked_before_anything_else(name):
    """Nothing comes before it but the end of hosts that the run is not about."""
    first = next(task for task in plays(f"{name}.yml")[0]["pre_tasks"] if "ansible.builtin.meta" not in task)
    assert first["ansible.builtin.import_role"] == {"name": "gpu.kubernetes.gpu_preflight", "tasks_from": "controller"}
    assert "when" not in first


def test_missing_kubeconfig_is_told(run):
    inventory = "[gpu_nodes]\nnode ansible_connection=local\n"
    code, said = run(inventory, ROOT / "playbooks" / "label_gpu_nodes.yml", gpu_kubeconfig="/nonexistent")
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


#: Tags that are asked for and skipped; whether the report follows, which tags change the sharing, and whether it matters to the run.
RUNS = {
    "everything": (["all"], [], True, ALL, True),
    "verify": (["verify"], [], True, [], True),
    "one": (["device_plugin"], [], False, ALL[:1], True),
    "one-and-verify": (["device_plugin", "verify"], [], True, ALL[:1], True),
    "two": (["gpushare", "device_plugin"], [], False, ALL[:2], True),
    "runtime": (["runtime"], [], False, [], True),
    "not-verify": (["all"], ["verify"], False, ALL, True),
    "not-smoke-test": (["all"], ["smoke_test"], True, ALL, True),
    "not-one": (["all"], ["device_plugin"], True, ALL[1:], True),
    "not-scheduler": (["all"], ["scheduler"], True, ALL[:3], True),
    "labels": (["labels"], [], False, [], False),
    "labels-and-reserve": (["labels", "reserve"], [], False, [], False),
    "labels-and-scheduler": (["labels", "scheduler"], [], False, ALL[3:], True),
    "nothing": (["all"], ["all"], False, [], False),
}


def test_a_run_knows_what_it_is_about(hear, tmp_path):
    """A verdict is left to the report only if there is one, and the sharing is not changed by half."""
    text = (ROOT / "playbooks" / "vars" / "hosts.yml").read_text()
    # Ansible's own names have one value in a run; each host has its own here.
    for name in ("ansible_run_tags", "ansible_skip_tags"):
        assert name in text
        text = text.replace(name, f"its_{name}")
    (tmp_path / "hosts.yml").write_text(text)
    told = "[__gpu_report_follows | bool, __gpu_sharing_run_tags, __gpu_sharing_matters | bool]"
    play = {
        "hosts": "all",
        "gather_facts": False,
        "vars_files": [str(tmp_path / "hosts.yml")],
        "tasks": [{"ansible.builtin.set_fact": {"told": "{{ " + told + " }}"}}],
    }
    found = hear(
        {
            name: {"its_ansible_run_tags": tags, "its_ansible_skip_tags": skipped}
            for name, (tags, skipped, *_told) in RUNS.items()
        },
        [play],
        "dict(groups.all | zip(groups.all | map('extract', hostvars, 'told')))",
    )
    assert found == {name: list(expected) for name, (_tags, _skipped, *expected) in RUNS.items()}


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


#: The variables of a host, and the values of defaults there.
HOSTS = {
    "alone": ({}, {name: values[0] for name, values in DEFAULTS.items()}),
    "linked": (LINKED, {name: values[1] for name, values in DEFAULTS.items()}),
    "shared": ({**LINKED, **SHARED}, SHARED_DEFAULTS),
}


def test_defaults_follow_what_was_declared_for_other_roles(hear, tmp_path):
    # As role defaults, not play variables: whatever the inventory says goes before.
    for role in ROLES:
        for folder in ("defaults", "vars"):
            shutil.copytree(ROOT / "roles" / role / folder, tmp_path / "roles" / role / folder)
    tasks = [
        {"ansible.builtin.set_fact": {"told": "{{ {" + ", ".join(f"'{name}': {name}" for name in DEFAULTS) + "} }}"}}
    ]
    play = {"hosts": "all", "gather_facts": False, "roles": list(ROLES), "tasks": tasks}
    told = hear(
        {name: variables for name, (variables, _values) in HOSTS.items()},
        [play],
        "dict(groups.all | zip(groups.all | map('extract', hostvars, 'told')))",
    )
    for name, (_variables, values) in HOSTS.items():
        assert {key: told[name][key] for key in values} == values, name
