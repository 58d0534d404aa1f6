# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The containerd of k3s, RKE2, k0s and MicroK8s through the role: rolled back, changed, repeated and undone, with a fake unit."""

from __future__ import annotations

import json

import pytest
import yaml
from fakes.distribution_machine import ROWS, Machine

from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import DEBIAN, FAILURE, HERE

#: Hosts, all of them this machine, so that none has facts of another; with the state that each run brings it to.
RUNS = {"fails": "present", "first": "present", "second": "present", "undo": "absent"}


def write_plays(machine, path):
    """Write a playbook with a play for each run, after which the machine is copied; the first one's containerd does not start with the change."""
    plays = []
    for name, state in RUNS.items():
        role = {
            "ansible.builtin.include_role": {"name": "gpu.kubernetes.containerd_nvidia"},
            "vars": {"containerd_nvidia_state": state},
        }
        record = {"ansible.builtin.copy": {"content": FAILURE, "dest": f"{path.parent}/failure", "mode": "0600"}}
        run = {"block": [role], "rescue": [record]} if name == "fails" else role
        copy = {
            "ansible.builtin.command": {"argv": ["cp", "-a", f"{machine.folder}/.", f"{path.parent}/{name}"]},
            "changed_when": False,
        }
        accept = {"ansible.builtin.file": {"path": f"{machine.folder}/rejects", "state": "absent"}}
        facts = {"ansible.builtin.set_fact": {**DEBIAN, "nodename": "node", "cacheable": True}}
        plays.append({"name": name, "hosts": name, "gather_facts": False, "tasks": [facts, run, copy, accept]})
    path.write_text(json.dumps(plays))


def read_runtimes(folder):
    """What the fake containerd runs with."""
    state = json.loads((folder / "state.json").read_text())
    assert state["up"]
    return state["config"]["containerd"]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] if name != "k3s agent" else []) for name in ROWS]
)
def test_change_is_rolled_back_applied_once_and_undone(run, tmp_path, tmp_path_factory, name):
    machine = Machine(tmp_path_factory.mktemp("m"), name)
    row = machine.row
    # Ansible starts a unit that has failed, and restarts one that runs.
    change, rollback = ("reload", "reload") if row.way == "drop_in" else ("restart", "start")
    actions = [f"{action} {row.unit}" for action in (change, rollback, change, change)]
    write_plays(machine, tmp_path / "plays.yml")
    with machine.run():
        before = machine.read_files()
        (machine.folder / "rejects").touch()
        code, output = run(
            {"all": {"hosts": {name: {} for name in RUNS}, "vars": HERE}},
            tmp_path / "plays.yml",
            environment=machine.environment,
            containerd_nvidia_state_dir=str(machine.folder / "state"),
            containerd_nvidia_kernel_modules=[],
            containerd_nvidia_sysctl={},
            containerd_nvidia_runtime_name=row.runtime,
            containerd_nvidia_set_default=True,
            nvidia_container_toolkit_runtime_path=str(machine.runtime),
            container_runtime_restart_probe_timeout=15,
            container_runtime_restart_wait_for_node=False,
        )
    assert code == 0, output
    logs = {each: (tmp_path / each / "units.log").read_text().splitlines() for each in RUNS}
    files = {each: machine.read_files(tmp_path / each / "r") for each in RUNS}

    # containerd does not start with the change: the former file is restored, and the former containerd runs again.
    failure = (tmp_path / "failure").read_text()
    assert f"{row.unit} does not work with the desired configuration" in failure
    assert "the former one was restored and works" in failure
    assert files["fails"].get(row.edited) == before.get(row.edited)
    assert read_runtimes(tmp_path / "fails").get("default_runtime_name") != row.runtime

    assert logs["fails"] == actions[:2]
    assert logs["first"] == actions[:3]
    written = files["first"][row.edited]
    if row.way == "automatic":
        assert yaml.safe_load(written) == {"default-runtime": "nvidia"}
    else:
        assert loads(written)
    present = read_runtimes(tmp_path / "first")
    assert present["default_runtime_name"] == row.runtime
    assert present["runtimes"][row.runtime]["options"]["BinaryName"] == str(machine.runtime)

    assert (files["second"], logs["second"]) == (files["first"], logs["first"])
    second = output.partition("PLAY [second]")[2].partition("PLAY [undo]")[0]
    assert "TASK" in second
    assert "changed: [second]" not in second

    assert logs["undo"] == actions
    assert files["undo"] == before
    assert read_runtimes(tmp_path / "undo").get("default_runtime_name") != row.runtime
