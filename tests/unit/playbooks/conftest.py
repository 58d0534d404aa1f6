# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks are run as users run them, but for the start of Ansible, which is made once."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from lab.forge import Forge

from ansible_collections.gpu.kubernetes.tests.unit.effort import PROFILE

HERE = {"ansible_connection": "local", "ansible_become": False}
# What a host is, told instead of gathered: that takes longer than all else.
FACTS = {"distribution": "Debian", "os_family": "Debian", "nodename": "{{ inventory_hostname }}", "cacheable": True}

# Of a loop, what its items said.
FAILURE = "{{ (ansible_failed_result.results | default([ansible_failed_result])) | map(attribute='msg', default='') | join(' ') }}"


def pytest_collection_modifyitems(config, items):
    """In a quick run, the last case of each test: the tasks are the same ones, and values are Python's."""
    here = Path(__file__).parent
    last = {(item.path, item.originalname): item for item in items}
    left_out = {item for item in items if here in item.path.parents and last[item.path, item.originalname] is not item}
    if PROFILE == "quick" and left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def forge():
    """A process that runs playbooks for all tests."""
    process = Forge()
    yield process
    process.close()


@pytest.fixture
def run(tmp_path, forge):
    """Run a playbook on an inventory: exit code and all that it said."""

    def run_playbook(inventory, playbook, *options, environment=None, **extra):
        hosts = tmp_path / ("inventory" if isinstance(inventory, str) else "inventory.yml")
        hosts.write_text(inventory if isinstance(inventory, str) else json.dumps(inventory))
        arguments = ["--inventory", str(hosts), "--extra-vars", json.dumps(extra), *options, str(playbook)]
        return forge.run(*arguments, environment=environment)

    return run_playbook


@pytest.fixture
def hear(run, tmp_path):
    """Run plays on hosts (a mapping to their variables) and return the value of an expression after them."""

    def run_and_hear(hosts, plays, expression, facts=None, environment=None, **extra):
        playbook = tmp_path / "play.yml"
        last = {"ansible.builtin.debug": {"msg": "{{ " + expression + " }}"}, "run_once": True}
        first = {
            "hosts": "all",
            "gather_facts": False,
            "tasks": [{"ansible.builtin.set_fact": {**FACTS, **(facts or {})}}],
        }
        playbook.write_text(json.dumps([first, *plays, {"hosts": "all", "gather_facts": False, "tasks": [last]}]))
        _code, said = run(
            {"all": {"hosts": hosts, "vars": HERE}},
            playbook,
            environment={"ANSIBLE_CALLBACK_RESULT_FORMAT": "json", **(environment or {})},
            **extra,
        )
        told = re.findall(r"^ok: \[\S+\] => (\{.*?^\})$", said, re.MULTILINE | re.DOTALL)
        assert told, said
        return json.loads(told[-1])["msg"]

    return run_and_hear


@pytest.fixture
def refusals(hear):
    """Run files of a role's tasks on hosts, group by group: {host: why it failed, else what a fact is then, or empty}."""

    def run_and_be_refused(role, parts, *groups, variables=None, fact="", extra=None, facts=None, **keywords):
        block = [
            {"ansible.builtin.include_role": {"name": f"gpu.kubernetes.{role}", "tasks_from": part}} for part in parts
        ]
        block += [{"ansible.builtin.set_fact": {"why": "{{ " + fact + " }}"}}] if fact else []
        rescue = [{"ansible.builtin.set_fact": {"why": FAILURE}}]
        told = [{"ansible.builtin.set_fact": {"why": ""}}, {"block": block, "vars": variables or {}, "rescue": rescue}]
        plays = [{"hosts": ",".join(group), "gather_facts": False, "tasks": told, **keywords} for group in groups]
        hosts = {name: variables for group in groups for name, variables in group.items()}
        return hear(
            hosts,
            plays,
            "dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'why')))",
            facts=facts,
            **(extra or {}),
        )

    return run_and_be_refused
