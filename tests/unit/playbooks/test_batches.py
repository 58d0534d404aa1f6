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

    def run_play(name, failing_host="none", unreachable_host="none", **extra):
        plays = yaml.safe_load((ROOT / "playbooks" / f"{name}.yml").read_text())
        (play,) = (play for play in plays if "serial" in play)
        unreachable_connection = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
        work = [
            {"ansible.builtin.fail": {"msg": "failed on purpose"}, "when": "inventory_hostname == failing_host"},
            {
                "ansible.builtin.ping": {},
                "when": "inventory_hostname == unreachable_host",
                "vars": unreachable_connection,
            },
            {"ansible.builtin.debug": {"msg": "[{{ inventory_hostname }}]: restarted"}},
        ]
        playbook = tmp_path / "play.yml"
        play["post_tasks"][0]["ansible.builtin.import_tasks"] = str(ROOT / "playbooks" / "tasks" / "batch.yml")
        later_play = {
            "hosts": "all",
            "gather_facts": False,
            "tasks": [{"ansible.builtin.debug": {"msg": "[{{ inventory_hostname }}]: later play"}}],
        }
        playbook.write_text(
            json.dumps([{**play, "hosts": "all", "become": False, "roles": [], "tasks": work}, later_play])
        )
        inventory = "".join(f"{host} ansible_connection=local\n" for host in HOSTS)
        variables = {"gpu_nodes_serial": [1, 2, 2], **extra}
        return run(inventory, playbook, failing_host=failing_host, unreachable_host=unreachable_host, **variables)

    return run_play


def test_batch_with_a_failed_host_finishes_and_the_next_does_not_start(play):
    code, output = play("remove_gpu_nodes", "b")
    assert code != 0
    words = " ".join(output.split())
    assert "[c]: restarted" in words
    assert "c: this host is finished, but b failed, so the next batch is not begun" in words
    assert "[d]" not in output
    assert "later play" not in output


def test_batch_with_an_unreachable_host_within_the_limit_is_followed_by_the_next(play):
    code, output = play("prepare_gpu_nodes", unreachable_host="b", gpu_nodes_max_unreachable="20%")
    assert code == 4, output
    assert [output.count(f"[{host}]: restarted") for host in HOSTS] == [1, 0, 1, 1, 1]
    assert "[b]: later play" not in output
    assert "[e]: later play" in output


def test_batch_with_more_unreachable_hosts_than_allowed_ends_the_run(play):
    code, output = play("prepare_gpu_nodes", unreachable_host="b")
    assert code != 0
    words = " ".join(output.split())
    assert "1 of 5 GPU hosts are unreachable, and gpu_nodes_max_unreachable allows 0: b;" in words
    assert "[d]" not in output
    assert "later play" not in output


def test_failed_host_ends_the_run_where_unreachable_ones_are_allowed(play):
    limits = {"gpu_nodes_max_unreachable": "20%", "gpu_nodes_serial": [1, 3, 1]}
    code, output = play("prepare_gpu_nodes", failing_host="c", unreachable_host="b", **limits)
    assert code != 0
    assert "d: this host is finished, but c failed, so the next batch is not begun" in " ".join(output.split())
    assert "[e]" not in output
    assert "later play" not in output
