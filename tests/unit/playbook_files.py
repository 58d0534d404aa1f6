# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the plays and tasks of playbooks, with those of the files that they import."""

from __future__ import annotations

import yaml

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT


def iterate_plays(path):
    """All plays of a playbook and of those that it imports, in their order."""
    for play in yaml.safe_load(path.read_text()):
        imported = play.get("ansible.builtin.import_playbook")
        yield from iterate_plays(path.parent / imported) if imported else [play]


def read_plays(name):
    """The plays of a playbook without the first one of many, which only connects to the hosts."""
    return [play for play in iterate_plays(ROOT / "playbooks" / name) if play["name"] != "Connect to the GPU hosts"]


def iterate_tasks(tasks):
    """The tasks of a play of playbooks/ in order, with those of blocks and imported files."""
    for task in tasks:
        if "block" in task:
            yield from iterate_tasks([*task["block"], *task.get("rescue", []), *task.get("always", [])])
        elif (imported := ROOT / "playbooks" / task.get("ansible.builtin.import_tasks", "/")).is_file():
            yield from iterate_tasks(yaml.safe_load(imported.read_text()))
        else:
            yield task


def find_included_role(task):
    """Name and entry point of the role that a task includes; None if it includes none."""
    included = next((task[key] for key in task if key.endswith(("import_role", "include_role"))), None)
    return included and (included["name"].removeprefix("gpu.kubernetes."), included.get("tasks_from", "main"))
