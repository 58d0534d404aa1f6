# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Unreachable hosts: too many end the run before any change. Others are left out of the later plays, and the exit status is 4."""

from __future__ import annotations

import json

import pytest

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import HERE, ROOT

# Nothing listens on this port.
UNREACHABLE = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
TOO_MANY = (
    "2 of 5 GPU hosts are unreachable, and gpu_nodes_max_unreachable allows 1: alone, lost; restore their connection"
)


@pytest.fixture
def connect(run, tmp_path):
    """Run the play that connects, twice as in site, and a later play with any_errors_fatal: exit code and output in one line."""

    def run_plays(hosts, **extra):
        later_play = {
            "hosts": "{{ __gpu_nodes }}",
            "roles": ["gpu.kubernetes._hosts"],
            "gather_facts": False,
            "any_errors_fatal": True,
            "tasks": [
                {
                    "ansible.builtin.debug": {
                        "msg": "[{{ inventory_hostname }}]: left out {{ groups.gpu_nodes_left_out | default([]) | join(',') }}."
                    }
                },
                {
                    "ansible.builtin.debug": {"msg": "all hosts {{ ansible_play_hosts_all | join(',') }}."},
                    "run_once": True,
                },
            ],
        }
        connect_play = {"ansible.builtin.import_playbook": str(ROOT / "playbooks" / "steps" / "connect.yml")}
        playbook = tmp_path / "play.yml"
        playbook.write_text(json.dumps([connect_play, connect_play, later_play]))
        code, output = run({"gpu_nodes": {"hosts": hosts, "vars": HERE}}, playbook, **extra)
        return code, " ".join(output.split())

    return run_plays


HOSTS = {"a": {}, "lost": UNREACHABLE, "b": {}, "alone": UNREACHABLE, "c": {}}


def test_more_unreachable_hosts_than_allowed_end_the_run(connect):
    code, output = connect(HOSTS, gpu_nodes_max_unreachable="39%")
    assert code == 2, output
    assert TOO_MANY in output
    assert "left out" not in output


def test_unreachable_hosts_within_the_limit_are_left_out_with_exit_status_4(connect):
    code, output = connect(HOSTS, gpu_nodes_max_unreachable="40%")
    assert code == 4, output
    for host in "abc":
        assert f"[{host}]: left out alone,lost." in output
    assert "all hosts a,b,c." in output
    # The second play does not connect again.
    assert output.count("UNREACHABLE!") == 2


def test_failed_host_ends_the_run_with_any_limit(connect):
    failing = {"ansible_python_interpreter": "/nonexistent/python"}
    code, output = connect({"a": {}, "b": failing}, gpu_nodes_max_unreachable="100%")
    assert code == 2, output
    assert "left out" not in output
