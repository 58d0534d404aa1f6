# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the playbooks and the links between roles promise before a host or a cluster is asked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PLAYBOOKS = sorted(path.name for path in (ROOT / "playbooks").glob("*.yml"))
ROLES = ("k8s_device_plugin", "gpu_smoke_test", "gpu_verify")

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")


@pytest.fixture
def run(tmp_path):
    """Run a playbook on an inventory: exit code and all that it said."""

    def run_playbook(inventory, playbook, **extra):
        hosts = tmp_path / "inventory"
        hosts.write_text(inventory)
        command = ["-m", "ansible", "playbook", "--inventory", hosts, "--extra-vars", json.dumps(extra), playbook]
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
        done = subprocess.run(
            [sys.executable, *command], cwd=str(ROOT), env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    return run_playbook


@pytest.mark.parametrize("playbook", PLAYBOOKS)
@pytest.mark.parametrize("inventory", ["[gpus]\nnode\n", "[gpu_nodes]\n[others]\nnode\n"], ids=["misspelt", "empty"])
def test_group_without_hosts_is_an_error(run, playbook, inventory):
    code, said = run(inventory, ROOT / "playbooks" / playbook)
    assert code != 0
    assert "The inventory has no host in gpu_nodes; " in said


@pytest.mark.parametrize(
    "name", ["label_gpu_nodes", "deploy_device_plugin", "smoke_test_gpu_nodes", "remove_gpu_nodes"]
)
def test_missing_kubeconfig_is_told_before_anything_else(run, name):
    inventory = "[gpu_nodes]\nnode ansible_connection=local\n"
    code, said = run(inventory, ROOT / "playbooks" / f"{name}.yml", gpu_kubeconfig="/nonexistent")
    assert code != 0
    assert "node: the kubeconfig /nonexistent does not exist" in " ".join(said.split())


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
    "gpu_verify_containerd": ({}, {"path": "/etc/other.toml"}),
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


@pytest.mark.parametrize("linked", [False, True], ids=["alone", "linked"])
def test_defaults_follow_what_was_declared_for_other_roles(run, tmp_path, linked):
    # As role defaults, not play variables: whatever the inventory says goes before.
    for role in ROLES:
        defaults = tmp_path / "roles" / role / "defaults"
        defaults.mkdir(parents=True)
        (defaults / "main.yml").write_text((ROOT / "roles" / role / "defaults" / "main.yml").read_text())
    told = tmp_path / "told.json"
    tasks = [
        {
            "ansible.builtin.copy": {
                "content": "{{ {" + ", ".join(f"'{name}': {name}" for name in DEFAULTS) + "} | to_json }}",
                "dest": str(told),
                "mode": "0600",
            }
        }
    ]
    play = {"hosts": "all", "gather_facts": False, "roles": list(ROLES), "tasks": tasks}
    playbook = tmp_path / "play.yml"
    playbook.write_text(json.dumps([play]))
    code, said = run(
        f"node ansible_connection=local ansible_python_interpreter={sys.executable}\n",
        playbook,
        **(LINKED if linked else {}),
    )
    assert code == 0, said
    assert json.loads(told.read_text()) == {name: values[linked] for name, values in DEFAULTS.items()}
