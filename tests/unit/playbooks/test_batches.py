# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When one host fails, the other hosts of its batch finish, and no further batch starts."""

from __future__ import annotations

import json

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

HOSTS = ("a", "b", "c", "d", "e")


@pytest.fixture
def play(run, tmp_path):
    """Run the play of a playbook that has batches, with other tasks: exit code and output."""

    def run_play(name, failing_host):
        plays = yaml.safe_load((ROOT / "playbooks" / f"{name}.yml").read_text())
        (play,) = (play for play in plays if "serial" in play)
        work = [
            {"ansible.builtin.fail": {"msg": "failed on purpose"}, "when": "inventory_hostname == failing_host"},
            {"ansible.builtin.debug": {"msg": "[{{ inventory_hostname }}]: restarted"}},
        ]
        playbook = tmp_path / "play.yml"
        play.pop("vars_files")
        later_play = {
            "hosts": "all",
            "gather_facts": False,
            "tasks": [{"ansible.builtin.debug": {"msg": "[{{ inventory_hostname }}]: later play"}}],
        }
        playbook.write_text(
            json.dumps([{**play, "hosts": "all", "become": False, "roles": [], "tasks": work}, later_play])
        )
        inventory = "".join(f"{host} ansible_connection=local\n" for host in HOSTS)
        return run(inventory, playbook, failing_host=failing_host, gpu_nodes_serial=[1, 2, 2])

    return run_play


@pytest.mark.parametrize("name", ["prepare_gpu_nodes", "remove_gpu_nodes"])
def test_batch_with_a_failed_host_finishes_and_the_next_does_not_start(play, name):
    code, output = play(name, "b")
    assert code != 0
    words = " ".join(output.split())
    assert "[c]: restarted" in words
    assert "c: this host is finished, but b failed, so the next batch is not begun" in words
    assert "[d]" not in output
    assert "later play" not in output


def test_run_without_a_failure_runs_all_batches_and_plays(play):
    code, output = play("prepare_gpu_nodes", "none")
    assert code == 0, output
    assert [output.count(f"[{host}]: {text}") for host in HOSTS for text in ("restarted", "later play")] == [1] * 10
