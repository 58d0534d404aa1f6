# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks on hosts with GPUs of AMD and Intel alone, from fake trees of sysfs: refusals before any change, and check mode without a driver."""

from __future__ import annotations

import pytest
import yaml
from fakes.gpu_sysfs import CASES

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import HERE, ROOT
from ansible_collections.gpu.kubernetes.tests.unit.playbook_files import iterate_tasks


@pytest.fixture
def play(run, tmp_path):
    """Run a playbook on hosts, given as the cases of their trees: exit code and output in one line."""

    def run_playbook(name, cases, *options, **extra):
        hosts = {}
        for host, case in cases.items():
            CASES[case](tmp_path / host)
            hosts[host] = {"gpu_devices_root": str(tmp_path / host)}
        variables = {**HERE, "gpu_node_name": "{{ inventory_hostname }}"}
        inventory = {"gpu_nodes": {"hosts": hosts, "vars": variables}}
        code, output = run(inventory, ROOT / "playbooks" / f"{name}.yml", *options, **extra)
        return code, " ".join(output.split())

    return run_playbook


def test_driver_that_does_not_work_ends_the_run_before_the_first_host_is_prepared(play):
    cases = {"works": "amd", "broken": "intel-no-driver"}
    code, output = play("prepare_gpu_nodes", cases, "--tags", "driver", gpu_nodes_serial=1)
    assert code == 2, output
    assert "broken: GPU 0000:03:00.0" in output
    assert "has no driver" in output
    assert "Prepare the GPU hosts" not in output


def test_check_of_a_host_whose_driver_a_run_installs_first_predicts(play):
    code, output = play("deploy_device_plugin", {"new": "amd-no-driver"}, "--check", gpu_driver_awaited=True)
    assert code == 0, output
    assert "failed=0" in output
    assert "Deploy the device plugin of each vendor" not in output


def test_removal_finds_the_drivers_of_other_vendors_by_their_records(evaluate, tmp_path):
    """Also those whose removal or maintenance was interrupted."""
    path = ROOT / "playbooks" / "tasks" / "remove_host.yml"
    tasks = {task["name"]: task for task in iterate_tasks(yaml.safe_load(path.read_text()))}
    find, remove = (
        tasks["Find the drivers that a run has installed, or has begun to remove"],
        tasks["Remove the driver of the vendor"],
    )
    role = remove.pop("ansible.builtin.include_role")["name"]
    append = {"ansible.builtin.set_fact": {"removed": "{{ removed | default([]) + [role] }}"}, "vars": {"role": role}}
    hosts = {}
    for host in (
        "packages-amdgpu-driver",
        "removal-amdgpu-driver",
        "maintenance-intel-gpu-driver",
        "packages-nvidia-driver",
    ):
        (tmp_path / host / "state").mkdir(parents=True)
        (tmp_path / host / "state" / f"{host}.json").touch()
        hosts[host] = {f"{role}_state_dir": str(tmp_path / host) for role in ("amdgpu_driver", "intel_gpu_driver")}
    found = evaluate(
        hosts,
        [{"hosts": "all", "gather_facts": False, "tasks": [find, {**remove, **append}]}],
        "dict(groups.all | zip(groups.all | map('extract', hostvars) | map(attribute='removed', default=[])))",
    )
    amd, intel = ["gpu.kubernetes.amdgpu_driver"], ["gpu.kubernetes.intel_gpu_driver"]
    assert [found[host] for host in hosts] == [amd, amd, intel, []]
