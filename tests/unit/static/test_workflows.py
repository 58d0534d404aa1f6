# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The workflows of GitHub name actions by commit, and run what the gates define and nothing of their own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from gates import versions
from gates.table import GATES, PARTS

ROOT = Path(__file__).resolve().parents[3]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"^\s*(?:- )?uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+$", re.MULTILINE)
COMMAND = re.compile(r"(\.ci/run|make [a-z]+)\b|apt-get update && apt-get install ")


def list_steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_commit_with_their_version(path: Path) -> None:
    uses = sum("uses" in step for step in list_steps(path))
    assert uses == len(PINNED.findall(path.read_text()))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_steps_run_make_or_the_script_of_ci(path: Path) -> None:
    commands = [step["run"] for step in list_steps(path) if "run" in step]
    assert commands
    assert [command for command in commands if not COMMAND.match(command) or "\n" in command] == []


def test_ci_runs_sanity_of_each_ansible_core() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert workflow["jobs"]["sanity"]["strategy"]["matrix"]["core"] == list(versions.CONTROLLERS)


def test_ci_runs_each_part_of_test_all_each_day() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert {"pull_request", "schedule"} <= set(workflow["on"])
    parts = re.search(r"'schedule' && '(\[.*?\])'", workflow["jobs"]["gates"]["strategy"]["matrix"]["part"])
    assert parts is not None
    assert json.loads(parts[1]) == list(PARTS)


def test_each_gate_is_in_one_part_of_test_all() -> None:
    gates = [gate for part in PARTS.values() for gate in part]
    assert sorted(gates) == sorted(name for name, gate in GATES.items() if "test-all" in gate.tiers)
    assert PARTS["lab"] == ["cluster"]


def test_ci_runs_units_of_each_ansible_core_and_of_the_pythons_of_nodes() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    gates = workflow["jobs"]["units"]["strategy"]["matrix"]["gate"]
    # `make test` has the units of the ansible-core in .venv.
    assert gates == ["nodes", *(f"core-{each}" for each in versions.CONTROLLERS if each != versions.own_core())]
    assert set(gates) <= set(GATES)
