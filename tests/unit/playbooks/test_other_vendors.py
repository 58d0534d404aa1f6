# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks on hosts with GPUs of AMD and Intel alone, from fake trees of sysfs: refusals before any change, and check mode without a driver."""

from __future__ import annotations

import pytest
from fakes.gpu_sysfs import CASES

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import HERE, ROOT


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
