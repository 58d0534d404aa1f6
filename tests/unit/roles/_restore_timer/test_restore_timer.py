# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on a machine with a fake systemd: the timer, and the report of the next run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import jinja2
import pytest
import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import snapshot
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.paths import StatePaths
from ansible_collections.gpu.kubernetes.plugins.module_utils._restore.timer import Programs, Timer
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

# Records its name and arguments, one call a line.
PROGRAM = """#!{python}
import json, pathlib, sys
calls = pathlib.Path({calls!r})
with calls.open("a") as file:
    file.write(json.dumps([pathlib.Path(sys.argv[0]).name, *sys.argv[1:]]) + "\\n")
"""


@pytest.fixture
def machine(tmp_path):
    """Programs of systemd, a configuration with a snapshot, and the variables of the role."""
    programs = tmp_path / "bin"
    programs.mkdir()
    calls = tmp_path / "calls"
    for name in ("systemctl", "systemd-run"):
        (programs / name).write_text(PROGRAM.format(python=sys.executable, calls=str(calls)))
        (programs / name).chmod(0o755)
    config, state = tmp_path / "config.toml", StatePaths(str(tmp_path / "state"))
    config.write_text("old")
    snapshot.apply(snapshot.Snapshot(str(config), state).take(), state)
    config.write_text("new")
    return {
        "calls": calls,
        "config": config,
        "environment": {"PATH": f"{programs}:{os.environ['PATH']}"},
        "variables": {
            "_restore_timer_name": "containerd",
            "_restore_timer_state_dir": state.state_dir,
            "_restore_timer_verify_seconds": 240,
            "_restore_timer_source": {"snapshots": [str(config)], "service": "containerd"},
        },
    }


@pytest.fixture
def play(run, machine, tmp_path):
    """Run entry points of the role: exit code and output in one line."""

    def run_play(parts, *options, systemd_dir=str(tmp_path), rolled_back=False):
        name = "gpu.kubernetes._restore_timer"
        tasks = [{"ansible.builtin.include_role": {"name": name, "tasks_from": part}} for part in parts.split()]
        playbook = tmp_path / "play.yml"
        content = [{"hosts": "all", "gather_facts": False, "vars": machine["variables"], "tasks": tasks}]
        playbook.write_text(json.dumps(content))
        inventory = "w1 ansible_connection=local ansible_become=false\n"
        code, output = run(
            inventory,
            playbook,
            *options,
            environment=machine["environment"],
            _restore_timer_systemd_dir=systemd_dir,
            _restore_timer_rolled_back=rolled_back,
        )
        return code, " ".join(output.split())

    return run_play


def read_calls(machine, name):
    lines = machine["calls"].read_text().splitlines() if machine["calls"].exists() else []
    return [call for call in map(json.loads, lines) if call[0] == name]


def fire(machine):
    """Run what the latest timer runs: the controller has ended, and nothing has disarmed the timer."""
    *_words, archive, plan = read_calls(machine, "systemd-run")[-1]
    command = [sys.executable, "-E", "-s", archive, plan]
    subprocess.run(command, env=machine["environment"], check=True, capture_output=True)


def test_change_that_the_node_has_undone_fails_its_run_and_is_reported_by_the_next(play, machine):
    code, output = play("main")
    assert code == 0, output
    # The restart, the verification, and a minute.
    assert "--on-active=600" in read_calls(machine, "systemd-run")[0]
    fire(machine)
    assert machine["config"].read_text() == "old"
    assert [call[1:] for call in read_calls(machine, "systemctl")][-2:] == [
        ["reset-failed", "--", "containerd"],
        ["restart", "--", "containerd"],
    ]
    restored = f"RESTORED: w1: the node restored {machine['config']} itself at 20"

    # The timer ran before the run has verified the change. After a rollback, the node has what the run restores.
    code, output = play("disarm")
    assert code != 0
    assert (
        f"The change of containerd is undone: it was not verified in time, so the node restored {machine['config']}"
        in output
    )
    code, output = play("disarm report main", "--check", rolled_back=True)
    assert (code, len(read_calls(machine, "systemd-run"))) == (0, 1), output
    assert restored in output
    assert "because the change of containerd at 20" in output
    code, output = play("disarm main", rolled_back=True)
    assert (code, len(read_calls(machine, "systemd-run")), restored in output) == (0, 2, True), output


def test_restored_state_is_reported_once_and_a_verified_change_disarms_the_timer(play, machine, tmp_path):
    play("main")
    fire(machine)
    machine["config"].write_text("new")
    code, output = play("report report main disarm")
    assert code == 0, output
    assert output.count("RESTORED: w1: ") == 1
    assert ["systemctl", "stop", "gpu-kubernetes-restore-containerd.timer"] in read_calls(machine, "systemctl")
    assert not (tmp_path / "state" / "restore").exists()


def test_host_without_systemd_gets_a_notice(play, machine):
    code, output = play("main", systemd_dir="/nonexistent")
    assert code == 0, output
    assert "NOT ARMED: w1: systemd does not run on this host." in output
    assert read_calls(machine, "systemd-run") == []


def test_container_runtime_looks_for_the_files_of_the_timer() -> None:
    """With other paths, what a node has restored would never be reported."""
    timer = Timer("docker", StatePaths("/state"), Programs("", "", ""), subprocess.run)
    variables = yaml.safe_load((ROOT / "roles/_container_runtime/vars/main.yml").read_text(encoding="utf-8"))
    daemon = {"state_dir": "/state", "name": "docker"}
    paths = [
        jinja2.Template(path).render(_container_runtime_daemon=daemon)
        for path in variables["__container_runtime_restore_files"]
    ]
    assert paths == [timer.record_file, timer.plan_file]
