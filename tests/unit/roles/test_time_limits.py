# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each task that starts a program or waits for the API server has a time limit."""

from __future__ import annotations

import re

import pytest
import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

# Modules of this collection have limits of their own, and so have uri, get_url and reboot.
LIMITED = re.compile(r"ansible[.]builtin[.](command|shell|systemd_service)|kubernetes[.]core[.]\w+")
FILES = sorted(path for folder in ("tasks", "handlers") for path in (ROOT / "roles").glob(f"*/{folder}/**/*.yml"))


def iterate_tasks(tasks):
    for task in tasks or []:
        yield task
        for part in ("block", "rescue", "always"):
            yield from iterate_tasks(task.get(part))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT / "roles")))
def test_tasks_that_wait_for_programs_have_a_time_limit(path):
    unlimited = [
        task["name"]
        for task in iterate_tasks(yaml.safe_load(path.read_text()))
        if any(map(LIMITED.fullmatch, task)) and "timeout" not in task
    ]
    assert unlimited == []
