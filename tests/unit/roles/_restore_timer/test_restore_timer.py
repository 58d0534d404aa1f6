# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role on a machine with a fake systemd: the timer, and the report of the next run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import snapshot
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.paths import StatePaths

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
    """Run an entry point of the role: exit code and output in one line."""

    def run_play(part, *options, systemd_dir=str(tmp_path)):
        task = {"ansible.builtin.include_role": {"name": "gpu.kubernetes._restore_timer", "tasks_from": part}}
        playbook = tmp_path / "play.yml"
        content = [{"hosts": "all", "gather_facts": False, "vars": machine["variables"], "tasks": [task]}]
        playbook.write_text(json.dumps(content))
        inventory = "w1 ansible_connection=local ansible_become=false\n"
        code, output = run(
            inventory,
            playbook,
            *options,
            environment=machine["environment"],
            _restore_timer_systemd_dir=systemd_dir,
        )
        return code, " ".join(output.split())

    return run_play


def read_calls(machine, name):
    lines = machine["calls"].read_text().splitlines() if machine["calls"].exists() else []
    return [call for call in map(json.loads, lines) if call[0] == name]


def test_interrupted_run_is_reported_by_the_next_one(play, machine):
    code, output = play("main", "--check")
    assert (code, read_calls(machine, "systemd-run")) == (0, []), output
    code, output = play("main")
    assert code == 0, output
    ((*words, archive, plan),) = read_calls(machine, "systemd-run")
    # The restart, the verification, and a minute.
    assert "--on-active=600" in words
    # The timer is not disarmed: the controller has ended.
    environment = machine["environment"]
    subprocess.run([sys.executable, "-E", "-s", archive, plan], env=environment, check=True, capture_output=True)
    assert machine["config"].read_text() == "old"
    assert [call[1:] for call in read_calls(machine, "systemctl")][-2:] == [
        ["reset-failed", "--", "containerd"],
        ["restart", "--", "containerd"],
    ]
    for options in (["--check"], []):
        code, output = play("report", *options)
        assert code == 0, output
        words = f"RESTORED: w1: the node restored {machine['config']} itself at 20"
        assert words in output
        assert "because the change of containerd at 20" in output
    code, output = play("report")
    assert "RESTORED" not in output


def test_verified_change_disarms_the_timer(play, machine, tmp_path):
    play("main")
    code, output = play("disarm")
    assert code == 0, output
    assert ["systemctl", "stop", "gpu-kubernetes-restore-containerd.timer"] in read_calls(machine, "systemctl")
    assert not (tmp_path / "state" / "restore").exists()


def test_change_that_the_node_has_undone_is_not_verified(play, machine):
    """The timer ran before the run has verified the change. After a rollback, the node has what the run restores."""
    play("main")
    ((*_words, archive, plan),) = read_calls(machine, "systemd-run")
    environment = machine["environment"]
    subprocess.run([sys.executable, "-E", "-s", archive, plan], env=environment, check=True, capture_output=True)
    code, output = play("disarm")
    assert code != 0
    assert (
        f"The change of containerd is undone: it was not verified in time, so the node restored {machine['config']}"
        in output
    )
    code, output = play("disarm", "-e", "_restore_timer_rolled_back=true")
    assert code == 0, output
    code, output = play("main")
    assert f"RESTORED: w1: the node restored {machine['config']} itself at 20" in output


def test_host_without_systemd_gets_a_notice(play, machine):
    code, output = play("main", systemd_dir="/nonexistent")
    assert code == 0, output
    assert "NOT ARMED: w1: systemd does not run on this host." in output
    assert read_calls(machine, "systemd-run") == []
