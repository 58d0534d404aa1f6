# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commands of the table of requirements in docs/publishing.md exist, and the short ones show what it says."""

from __future__ import annotations

import re
import shlex
import subprocess

import pytest
from gates.table import GATES

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

PAGE = (ROOT / "docs" / "publishing.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("## The requirements of the Ansible package")[2].partition("\n## ")[0]
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in TABLE.splitlines() if line.startswith("|")][2:]
COMMANDS = [command for row in ROWS for command in re.findall(r"`([^`]+)`", row[2])]
TARGETS = {*GATES, *re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)}
TEMPLATE = [
    "Description",
    "Requirements",
    "Installation",
    "Use Cases",
    "Testing",
    "Contributing",
    "Support",
    "Release Notes and Roadmap",
    "Related Information",
    "License Information",
]


def test_each_requirement_has_a_command() -> None:
    assert len(ROWS) > 20
    assert [row for row in ROWS if len(row) != 3 or not re.search(r"`[^`]+`", row[2])] == []


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.startswith("make ")])
def test_target_of_make_exists_and_so_does_the_named_test(command: str) -> None:
    _make, *words = shlex.split(command)
    names = [word for word in words if "=" not in word]
    assert names
    assert set(names) <= TARGETS
    assert all((ROOT / word.removeprefix("ARGS=")).is_file() for word in words if "=" in word)


@pytest.mark.parametrize("command", [each for each in COMMANDS if each.startswith(("grep ", "find "))])
def test_grep_finds_and_find_finds_nothing(command: str) -> None:
    result = subprocess.run(shlex.split(command), cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, command + result.stderr
    assert bool(result.stdout) == command.startswith("grep "), command + result.stdout


def test_readme_has_the_headings_of_the_template_in_their_order() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == TEMPLATE
