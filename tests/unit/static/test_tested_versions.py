# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of support name the versions that the tests run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from gates import _support, table, versions
from lab.settings import VERSIONS

ROOT = Path(__file__).resolve().parents[3]
VERSION = re.compile(r"\b\d+\.\d+")
#: What the lab takes from its Debian, whose packages have these versions.
DEBIAN = {"bookworm": {"release": "12", "containerd": "1.6", "docker": "20.10", "python": "3.11"}}[VERSIONS["debian"]]
CONTAINERDS = (VERSIONS["containerd"], *table.OTHER_CONTAINERDS, DEBIAN["containerd"])
#: The row of README and the tested versions, X.Y.
TESTED = {
    "ansible-core": set(versions.CONTROLLERS),
    "Kubernetes": set(VERSION.findall(VERSIONS["kubernetes"])),
    "Container runtime": {*VERSION.findall(" ".join(CONTAINERDS)), DEBIAN["docker"]},
    "Python on nodes": {*versions.NODE_PYTHONS, DEBIAN["python"]},
}
#: The rows of the guide on support for the same, where they have other names.
ROWS = {"Container runtime": ("containerd", "Docker")}


def read_readme() -> dict[str, str]:
    """The column *Tested* of README by the first one."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").partition("\n## Support\n")[2].splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line.startswith("| ")]
    return {row[1]: row[2] for row in cells}


def read_guide() -> dict[str, str]:
    """Both other cells of each row of the first table of the guide, by the first cell."""
    text = (ROOT / "docs" / "docsite" / "rst" / "guide_support.rst").read_text(encoding="utf-8")
    table_text = text.partition(".. list-table::")[2].partition(".. list-table::")[0]
    return {title: cells for title, _end, cells in (row.partition("\n") for row in table_text.split("    * - ")[1:])}


@pytest.mark.parametrize("row", TESTED)
def test_readme_names_exactly_the_tested_versions(row: str) -> None:
    assert set(VERSION.findall(read_readme()[row])) == TESTED[row]


@pytest.mark.parametrize("row", TESTED)
def test_guide_names_the_tested_versions(row: str) -> None:
    guide = read_guide()
    text = " ".join(guide[each] for each in ROWS.get(row, (row,)))
    assert TESTED[row] - set(VERSION.findall(text)) == set()


def test_tables_name_the_tested_system() -> None:
    tested = [f"{name} {releases}" for name, releases, *_others in _support.list_platforms() if releases]
    assert tested == [f"Debian {DEBIAN['release']}"]
    assert read_readme()["Nodes"].startswith(f"{tested[0]},")
    assert read_guide()["Operating system of nodes"].startswith(f"      - {tested[0]}\n")


@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_requirements_of_the_controller_are_the_versions_of_the_tests(name: str) -> None:
    cores, pythons = list(versions.CONTROLLERS), sorted(versions.CONTROLLERS.values())
    found = re.search(
        r"Python (\S+) \w+ ([\d.]+)\W+ansible-core (\S+) \w+ (\d+\.\d+)", (ROOT / name).read_text(encoding="utf-8")
    )
    assert found
    assert found.groups() == (pythons[0], pythons[-1], cores[0], cores[-1])
