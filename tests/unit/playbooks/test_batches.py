# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of the other hosts when one fails: those of its batch finish, and no further batch is begun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HOSTS = ("a", "b", "c", "d", "e")

pytest.importorskip("ansible.playbook", reason="only ansible.module_utils is here")
yaml = pytest.importorskip("yaml")


@pytest.fixture
def run(tmp_path):
    """Run the play of a playbook that has batches, with other work in it: recap by host, and all that was said."""

    def run_play(name, bad):
        plays = yaml.safe_load((ROOT / "playbooks" / f"{name}.yml").read_text())
        (play,) = (play for play in plays if "serial" in play)
        work = [
            {"ansible.builtin.fail": {"msg": "no luck"}, "when": "inventory_hostname == bad"},
            {"ansible.builtin.debug": {"msg": "[{{ inventory_hostname }}]: restarted"}},
        ]
        playbook = tmp_path / "play.yml"
        play.pop("vars_files")
        later = {
            "hosts": "all",
            "gather_facts": False,
            "tasks": [{"ansible.builtin.debug": {"msg": "[{{ inventory_hostname }}]: later play"}}],
        }
        playbook.write_text(json.dumps([{**play, "hosts": "all", "become": False, "roles": [], "tasks": work}, later]))
        inventory = tmp_path / "inventory"
        inventory.write_text("".join(f"{host} ansible_connection=local\n" for host in HOSTS))
        extra = json.dumps({"bad": bad, "gpu_nodes_serial": [1, 2, 2], "ansible_python_interpreter": sys.executable})
        command = ["-m", "ansible", "playbook", "--inventory", inventory, "--extra-vars", extra, playbook]
        environment = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
        done = subprocess.run(
            [sys.executable, *command], cwd=str(ROOT), env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    return run_play


@pytest.mark.parametrize("name", ["prepare_gpu_nodes", "remove_gpu_nodes"])
def test_a_batch_is_finished_and_the_next_one_not_begun(run, name):
    code, said = run(name, "b")
    assert code != 0
    words = " ".join(said.split())
    assert "[c]: restarted" in words
    assert "c: this host is done, but b failed, so that the next hosts are not begun" in words
    assert "[d]" not in said
    assert "later play" not in said


def test_without_a_failure_all_batches_and_plays_follow(run):
    code, said = run("prepare_gpu_nodes", "none")
    assert code == 0, said
    assert [said.count(f"[{host}]: {what}") for host in HOSTS for what in ("restarted", "later play")] == [1] * 10
