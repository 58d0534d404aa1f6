# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates must be able to fail: each is given content that is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gates import action_groups, argument_specs, artifact, floors, licences, matrix, shell, summary

DESCRIBED = {"description": "x", "type": "str"}


@pytest.fixture
def role(tmp_path):
    """A role, made of its documented options and its defaults."""

    def make(options, defaults):
        folder = tmp_path / "demo"
        (folder / "meta").mkdir(parents=True)
        (folder / "defaults").mkdir()
        head = {"short_description": "x", "description": "x", "author": "x", "version_added": "0.1.0"}
        specs = {"argument_specs": {"main": {**head, "options": options}}}
        (folder / "meta" / "argument_specs.yml").write_text(json.dumps(specs))
        (folder / "defaults" / "main.yml").write_text(json.dumps(defaults))
        return folder

    return make


@pytest.mark.parametrize(
    ("option", "defaults", "problem"),
    [
        ({**DESCRIBED, "default": "a"}, {"demo_x": "b"}, "documented default 'a', defaults/main.yml 'b'"),
        ({**DESCRIBED, "default": "a"}, {}, "defaults/main.yml absent"),
        ({**DESCRIBED}, {"demo_x": "a"}, "documented default absent"),
        ({**DESCRIBED, "type": "int", "default": True}, {"demo_x": True}, "default True is no int"),
        ({**DESCRIBED, "type": "int", "default": 1}, {"demo_x": True}, "documented default 1"),
        ({**DESCRIBED, "type": "bool", "default": "true"}, {"demo_x": "true"}, "is no bool"),
        ({**DESCRIBED, "type": "list", "default": []}, {"demo_x": []}, "without elements"),
        ({**DESCRIBED, "type": "text", "default": "a"}, {"demo_x": "a"}, "type is 'text'"),
        ({**DESCRIBED, "choices": ["a"], "default": "b"}, {"demo_x": "b"}, "none of its choices"),
        ({**DESCRIBED, "required": True, "default": "b"}, {"demo_x": "b"}, "required, and yet it has a default"),
        ({"type": "str"}, {}, "no description"),
        ({**DESCRIBED}, {"demo_y": 1}, "demo_y: in defaults/main.yml, not documented"),
    ],
)
def test_argument_specs_see_each_difference(role, option, defaults, problem):
    count, problems = argument_specs.problems_of_role(role({"demo_x": option}, defaults))
    assert count == 1
    assert problem in "\n".join(problems)


def test_argument_specs_accept_what_agrees(role):
    options = {
        "demo_x": {**DESCRIBED, "default": "{{ a }}"},
        "demo_n": {**DESCRIBED, "type": "int"},
        "gpu_kubeconfig": {**DESCRIBED, "type": "path"},
    }
    assert argument_specs.problems_of_role(role(options, {"demo_x": "{{ a }}"})) == (3, [])


def test_argument_specs_want_the_prefix_of_the_role(role):
    _count, problems = argument_specs.problems_of_role(role({"other_x": DESCRIBED}, {}))
    assert problems == ["demo: other_x: public names start with demo_"]


def test_argument_specs_want_a_spec(tmp_path):
    assert argument_specs.problems_of_role(tmp_path) == (
        0,
        [f"{tmp_path.name}: meta/argument_specs.yml has no entry point main"],
    )


@pytest.mark.parametrize(
    ("name", "head", "missing"),
    [
        ("roles/a/tasks/main.yml", [licences.COPYRIGHT, licences.LICENCE], 0),
        ("roles/a/tasks/main.yml", [licences.LICENCE], 1),
        ("plugins/modules/a.py", [licences.COPYRIGHT, licences.LICENCE], 1),
        ("plugins/modules/a.py", [licences.COPYRIGHT, licences.LICENCE, licences.FULL], 0),
        ("plugins/module_utils/_a/__init__.py", [], 2),
    ],
)
def test_licences(name, head, missing):
    assert len(licences.problems(name, head)) == missing


def test_licences_exempt_data_only():
    assert licences.exempt("tests/unit/fixtures/config.toml")
    assert licences.exempt("LICENSE")
    assert not licences.exempt("plugins/modules/fixtures.py")
    assert not licences.exempt("playbooks/site.yml")


def test_action_groups_compare_both_ways():
    assert action_groups.compare({"api": {"a", "b"}}, {"api": {"b", "c"}}) == [
        "api: a is listed and does not document it",
        "api: c documents it and is not listed",
    ]
    assert action_groups.compare({"api": {"a"}}, {"api": {"a"}}) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import os\nfrom . import x\n", ["os"]),
        ("from ansible.module_utils.basic import AnsibleModule\n", ["ansible.module_utils.basic"]),
        ("if TYPE_CHECKING:\n    import yaml\nimport re\n", ["re"]),
        ("def f():\n    import kubernetes.client\n", ["kubernetes.client"]),
    ],
)
def test_floors_read_imports(tmp_path, source, expected):
    path = tmp_path / "x.py"
    path.write_text(source)
    assert [name for _line, name in floors.imports(path)] == expected


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("when: inventory_hostname in groups['gpu_nodes']", True),
        ("{{ groups.kube_control_plane | first }}", True),
        ("when: \"'gpu_nodes' in group_names\"", True),
        ("name: Ask for the groups of the user", False),
        ("groups: [video]", False),
        ("{{ match.groups() }}", False),
    ],
)
def test_floors_see_inventory_groups(text, named):
    assert bool(floors.GROUP.search(text)) is named


def test_artifact_content():
    good = [*artifact.REQUIRED, "roles/a/meta/argument_specs.yml", "docs/docsite/links.yml"]
    assert artifact.problems_of_content(good, ["a"]) == []
    bad = artifact.problems_of_content([*good, "tests/unit/x.py", ".lab/key", "plugins/__pycache__/x.pyc"], ["a", "b"])
    assert [problem.split(":")[0] for problem in bad] == [
        "tests/unit/x.py",
        ".lab/key",
        "plugins/__pycache__/x.pyc",
        "roles/b/meta/argument_specs.yml",
    ]


def test_matrix_takes_its_versions_from_the_developer_requirements():
    assert {pin.split("==")[0] for pin in matrix.pins()} == set(matrix.TOOLS)
    assert not [pin for pin in matrix.pins() if pin.startswith("ansible")]


def test_matrix_sees_deprecations():
    assert matrix.DEPRECATION.match("[DEPRECATION WARNING]: x is deprecated. This feature will be removed")
    assert not matrix.DEPRECATION.match("ok: [DEPRECATION WARNING]")


def test_shell_finds_scripts_by_their_first_line():
    names = shell.scripts()
    assert ".ci/run" in names
    assert not [name for name in names if name.endswith(".py")]


def write_reports(folder, sessions, junit=None):
    folder.mkdir(exist_ok=True)
    (folder / "nox.json").write_text(json.dumps({"sessions": sessions}))
    for name, attributes in (junit or {}).items():
        (folder / name).write_text(f"<testsuites><testsuite {attributes}/></testsuites>")


PASSED = {"name": "units", "result": "success", "duration": 2.0}
FAILED = {"name": "lint", "result": "failed", "duration": 1.0}


@pytest.mark.parametrize(
    ("sessions", "junit", "line", "status"),
    [
        ([PASSED], {"units.xml": 'tests="5" failures="0" errors="0" skipped="1"'}, "4 passed, 0 failed", 0),
        ([PASSED, FAILED], {"units.xml": 'tests="5" failures="0" errors="0" skipped="0"'}, "5 passed, 1 failed", 1),
        (
            [{**PASSED, "result": "failed"}],
            {"units.xml": 'tests="5" failures="2" errors="1" skipped="0"'},
            "2 passed, 3 failed",
            1,
        ),
        (
            [{**PASSED, "result": "failed"}],
            {"units.xml": 'tests="5" failures="0" errors="0" skipped="0"'},
            "5 passed, 1 failed",
            1,
        ),
        ([PASSED], {"units-3.8.xml": "tests="}, "0 passed, 1 failed", 1),
        ([], {}, "0 passed, 0 failed", 1),
    ],
)
def test_summary_counts_and_exits(tmp_path, capsys, sessions, junit, line, status):
    write_reports(tmp_path, sessions, junit)
    assert summary.main(tmp_path) == status
    assert capsys.readouterr().out.splitlines()[-1] == line


@pytest.mark.parametrize(("ci", "status"), [("1", 1), ("", 0)])
def test_summary_says_what_was_not_run(tmp_path, capsys, monkeypatch, ci, status):
    monkeypatch.setenv("CI", ci)
    write_reports(tmp_path, [PASSED])
    (tmp_path / summary.NOT_RUN).write_text("matrix: no Python 3.13\n")
    assert summary.main(tmp_path) == status
    assert "NOT RUN: matrix: no Python 3.13" in capsys.readouterr().out


def test_summary_without_a_report(tmp_path, capsys):
    assert summary.main(tmp_path) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "0 passed, 1 failed"
