# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks are run as users run them, but for the start of Ansible, which is made once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
HERE = {"ansible_connection": "local", "ansible_become": False, "ansible_python_interpreter": sys.executable}
# What a host is, told instead of gathered: that takes longer than all else.
FACTS = {"distribution": "Debian", "os_family": "Debian", "nodename": "{{ inventory_hostname }}", "cacheable": True}


@pytest.fixture(scope="session")
def forge():
    """A process that runs playbooks for all tests."""
    env = {**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
    command = [sys.executable, str(Path(__file__).with_name("forge.py"))]
    with subprocess.Popen(
        command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        process.stdin.close()


@pytest.fixture
def run(tmp_path, forge):
    """Run a playbook on an inventory: exit code and all that it said."""

    def run_playbook(inventory, playbook, *options, environment=None, **extra):
        hosts = tmp_path / ("inventory" if isinstance(inventory, str) else "inventory.yml")
        hosts.write_text(inventory if isinstance(inventory, str) else json.dumps(inventory))
        output = tmp_path / "output"
        arguments = ["--inventory", str(hosts), "--extra-vars", json.dumps(extra), *options, str(playbook)]
        request = {"arguments": arguments, "environment": environment or {}, "output": str(output)}
        print(json.dumps(request), file=forge.stdin, flush=True)
        return int(forge.stdout.readline()), output.read_text()

    return run_playbook


@pytest.fixture
def hear(run, tmp_path):
    """Run plays on hosts (a mapping to their variables) and return the value of an expression after them."""

    def run_and_hear(hosts, plays, expression, **extra):
        playbook = tmp_path / "play.yml"
        last = {"ansible.builtin.debug": {"msg": "{{ " + expression + " }}"}, "run_once": True}
        first = {"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.set_fact": FACTS}]}
        playbook.write_text(json.dumps([first, *plays, {"hosts": "all", "gather_facts": False, "tasks": [last]}]))
        _code, said = run(
            {"all": {"hosts": hosts, "vars": HERE}},
            playbook,
            environment={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json"},
            **extra,
        )
        told = re.findall(r"^ok: \[\S+\] => (\{.*?^\})$", said, re.MULTILINE | re.DOTALL)
        assert told, said
        return json.loads(told[-1])["msg"]

    return run_and_hear


@pytest.fixture
def refusals(hear):
    """Run files of a role's tasks on hosts, group by group: {host: why it failed, else what a fact is then, or empty}."""

    def run_and_be_refused(role, parts, *groups, variables=None, fact="", extra=None, **keywords):
        block = [
            {"ansible.builtin.include_role": {"name": f"gpu.kubernetes.{role}", "tasks_from": part}} for part in parts
        ]
        block += [{"ansible.builtin.set_fact": {"why": "{{ " + fact + " }}"}}] if fact else []
        rescue = [{"ansible.builtin.set_fact": {"why": "{{ ansible_failed_result.msg }}"}}]
        told = [{"ansible.builtin.set_fact": {"why": ""}}, {"block": block, "vars": variables or {}, "rescue": rescue}]
        plays = [{"hosts": ",".join(group), "gather_facts": False, "tasks": told, **keywords} for group in groups]
        hosts = {name: variables for group in groups for name, variables in group.items()}
        return hear(
            hosts,
            plays,
            "dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'why')))",
            **(extra or {}),
        )

    return run_and_be_refused
