# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task files of the role on a fake machine, and its plans on hosts."""

from __future__ import annotations

import re

import pytest
import yaml
from fakes.driver_machine import INVENTORY, Machine

from ansible_collections.gpu.kubernetes.tests.unit.roles.nvidia_driver.platform_hosts import ROLE


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def apply(run, machine):
    """Run task files of the role: exit code, number of changed tasks, output in one line."""

    def play(files, *options, hosts=INVENTORY, **variables):
        code, output = run(hosts, machine.write_play(*files.split(), **variables), *options)
        return code, int(re.findall(r"\bchanged=(\d+)", output)[-1]), " ".join(output.split())

    return play


@pytest.fixture
def read_plans(evaluate):
    """Run tasks on hosts with these variables: the fact ``plan`` by host."""

    def run_tasks(hosts, *tasks):
        defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text(encoding="utf-8"))
        return evaluate(
            {name: {**defaults, **variables} for name, variables in hosts.items()},
            [{"hosts": "all", "gather_facts": False, "tasks": list(tasks)}],
            "dict(ansible_play_hosts | zip(ansible_play_hosts | map('extract', hostvars, 'plan')))",
        )

    return run_tasks
