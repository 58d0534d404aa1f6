# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of the other hosts when one fails: those of its batch finish, and no further batch is begun."""

from __future__ import annotations

import json

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

HOSTS = ("a", "b", "c", "d", "e")


@pytest.fixture
def play(run, tmp_path):
    """Run the play of a playbook that has batches, with other work in it: exit code and output."""

    def run_play(name, bad="none", lost="none", **extra):
        plays = yaml.safe_load((ROOT / "playbooks" / f"{name}.yml").read_text())
        (play,) = (play for play in plays if "serial" in play)
        lose = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
        work = [
            {"ansible.builtin.fail": {"msg": "no luck"}, "when": "inventory_hostname == bad"},
            {"ansible.builtin.ping": {}, "when": "inventory_hostname == lost", "vars": lose},
            {"ansible.builtin.debug": {"msg": "[{{ inventory_hostname }}]: restarted"}},
        ]
        playbook = tmp_path / "play.yml"
        play.pop("vars_files")
        play["post_tasks"][0]["ansible.builtin.import_tasks"] = str(ROOT / "playbooks" / "tasks" / "batch.yml")
        later = {
            "hosts": "all",
            "gather_facts": False,
            "tasks": [{"ansible.builtin.debug": {"msg": "[{{ inventory_hostname }}]: later play"}}],
        }
        playbook.write_text(json.dumps([{**play, "hosts": "all", "become": False, "roles": [], "tasks": work}, later]))
        inventory = "".join(f"{host} ansible_connection=local\n" for host in HOSTS)
        return run(inventory, playbook, bad=bad, lost=lost, **{"gpu_nodes_serial": [1, 2, 2], **extra})

    return run_play


@pytest.mark.parametrize("name", ["prepare_gpu_nodes", "remove_gpu_nodes"])
def test_a_batch_is_finished_and_the_next_one_not_begun(play, name):
    code, said = play(name, "b")
    assert code != 0
    words = " ".join(said.split())
    assert "[c]: restarted" in words
    assert "c: this host is finished, but b failed, so the next batch is not begun" in words
    assert "[d]" not in said
    assert "later play" not in said


def test_without_a_failure_all_batches_and_plays_follow(play):
    code, said = play("prepare_gpu_nodes", "none")
    assert code == 0, said
    assert [said.count(f"[{host}]: {what}") for host in HOSTS for what in ("restarted", "later play")] == [1] * 10


def test_batch_with_an_unreachable_host_within_the_limit_is_followed_by_the_next(play):
    code, said = play("prepare_gpu_nodes", lost="b", gpu_nodes_max_unreachable="20%")
    assert code == 4, said
    assert [said.count(f"[{host}]: restarted") for host in HOSTS] == [1, 0, 1, 1, 1]
    assert "[b]: later play" not in said
    assert "[e]: later play" in said


def test_batch_with_more_unreachable_hosts_than_allowed_ends_the_run(play):
    code, said = play("prepare_gpu_nodes", lost="b")
    assert code != 0
    assert "1 of 5 GPU hosts are unreachable, and gpu_nodes_max_unreachable allows 0: b;" in " ".join(said.split())
    assert "[d]" not in said
    assert "later play" not in said


def test_failed_host_ends_the_run_where_unreachable_ones_are_allowed(play):
    code, said = play(
        "prepare_gpu_nodes", bad="c", lost="b", gpu_nodes_max_unreachable="20%", gpu_nodes_serial=[1, 3, 1]
    )
    assert code != 0
    assert "d: this host is finished, but c failed, so the next batch is not begun" in " ".join(said.split())
    assert "[e]" not in said
    assert "later play" not in said
