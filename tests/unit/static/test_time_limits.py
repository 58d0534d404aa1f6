# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each task that starts a program or waits for the API server has a time limit, which fails a task only where the task may fail."""

from __future__ import annotations

import re

import pytest
import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._restore.script import COMMAND_SECONDS
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

# Modules of this collection have limits of their own, and so have uri, get_url and reboot.
LIMITED = re.compile(
    r"ansible[.]builtin[.](command|shell|systemd_service|service_facts|apt|dnf|rpm_key|package_facts|unarchive)|kubernetes[.]core[.]\w+"
)
#: A command that coreutils' timeout ends.
ENDED = re.compile(r"(\{\{ )?\['timeout', '\d+', |\{\{ \['timeout', '\d+'\] [+]")
FILES = sorted(path for folder in ("tasks", "handlers") for path in (ROOT / "roles").glob(f"*/{folder}/**/*.yml"))
PLAYBOOKS = sorted(path for folder in (".", "tasks", "steps") for path in (ROOT / "playbooks").glob(f"{folder}/*.yml"))


def iterate_tasks(tasks):
    for task in tasks or []:
        yield task
        for part in ("block", "rescue", "always", "pre_tasks", "tasks", "post_tasks"):
            yield from iterate_tasks(task.get(part))


def has_own_limit(task):
    """Whether the task's command ends itself."""
    command = task.get("ansible.builtin.command", {})
    return ENDED.match(str(command.get("argv"))) is not None


@pytest.mark.parametrize("path", [*FILES, *PLAYBOOKS], ids=lambda path: str(path.relative_to(ROOT)))
def test_tasks_that_wait_for_programs_have_a_time_limit(path):
    unlimited = [
        task["name"]
        for task in iterate_tasks(yaml.safe_load(path.read_text()))
        if any(map(LIMITED.fullmatch, task)) and not has_own_limit(task) and "timeout" not in task
    ]
    assert unlimited == []


def test_time_limit_of_a_task_that_must_not_fail_does_not_fail_it():
    """Ansible does not evaluate failed_when after the time limit of a task; ignore_errors counts, and so does the status of a command."""
    failing = [
        f"{path.relative_to(ROOT)}: {task['name']}"
        for path in [*FILES, *PLAYBOOKS]
        for task in iterate_tasks(yaml.safe_load(path.read_text()))
        if task.get("failed_when") is False and "timeout" in task and not task.get("ignore_errors")
    ]
    assert failing == []


@pytest.mark.parametrize("role", ["_container_runtime", "kubelet_reserved"])
def test_restart_has_the_time_that_the_restore_timer_counts(role):
    limits = [
        task["timeout"]
        for path in FILES
        if path.is_relative_to(ROOT / "roles" / role)
        for task in iterate_tasks(yaml.safe_load(path.read_text()))
        if "ansible.builtin.systemd_service" in task
    ]
    assert limits == [COMMAND_SECONDS] * 2
