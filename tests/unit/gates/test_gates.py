# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates that read the collection report wrong content."""

from __future__ import annotations

import json
import re

import pytest
from gates import action_groups, all_hosts, artifact, licences, private_variables, shell, words


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
def test_licences_report_missing_lines(name, head, missing):
    assert len(licences.problems(name, head)) == missing


def test_licences_exempt_data_only():
    assert licences.is_exempt("tests/unit/fixtures/config.toml")
    assert licences.is_exempt("LICENSE")
    assert not licences.is_exempt("plugins/modules/fixtures.py")
    assert not licences.is_exempt("playbooks/site.yml")


def test_action_groups_compare_both_ways():
    assert action_groups.compare({"api": {"a", "b"}}, {"api": {"b", "c"}}) == [
        "api: a is listed and does not document it",
        "api: c documents it and is not listed",
    ]
    assert action_groups.compare({"api": {"a"}}, {"api": {"a"}}) == []


READS = "each host reads the variables of all hosts; group them once (run_once), then look up"
ALL_HOSTS = "{{ ansible_play_hosts | gpu.kubernetes.host_values(hostvars, 'a') }}"
ROLE_VARS = f'rows: "{ALL_HOSTS}"\nnodes: "{{{{ rows | map(attribute=\'node\') }}}}"\nown: "{{{{ hostvars[inventory_hostname].a }}}}"\n'


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        ({"set_fact": {"a": ALL_HOSTS}}, READS),
        ({"set_fact": {"a": ALL_HOSTS}, "run_once": True}, ""),
        ({"debug": {"msg": "{{ ansible_play_hosts | map('extract', hostvars, 'a') | list }}"}}, READS),
        # Through variables of the role, in a condition, in a loop, and in the task's own variables.
        ({"debug": {"msg": "x"}, "when": "nodes | length > 0"}, READS),
        ({"debug": {"msg": "x"}, "loop": "{{ rows }}"}, READS),
        ({"debug": {"msg": "{{ rows_of }}"}, "vars": {"rows_of": "{{ nodes }}"}}, READS),
        ({"debug": {"msg": "{{ nodes }}"}, "vars": {"nodes": []}}, ""),
        ({"debug": {"msg": "x"}, "vars": {"passed": "{{ nodes }}"}}, ""),
        ({"debug": {"msg": "{{ own }} {{ hostvars[inventory_hostname].b }}"}}, ""),
        ({"block": [{"debug": {"msg": "{{ rows }}"}}]}, READS),
        ({"block": [{"debug": {"msg": "{{ rows }}"}}], "run_once": True}, ""),
        ({"set_fact": {"a": "{{ found.nodes }}"}}, "a is the same data for all hosts; set it once (run_once)"),
        ({"set_fact": {"a": "{{ found['nodes'] }}"}, "run_once": True}, ""),
        ({"set_fact": {"a": "{{ found.by_host[inventory_hostname] }}"}}, ""),
        ({"include_tasks": "once.yml", "run_once": True}, ""),
        ({"include_tasks": "once.yml"}, READS),
        ({"block": [{"include_tasks": "{{ x }}.yml"}, {"include_tasks": "once.yml", "run_once": True}]}, ""),
        ({"include_tasks": "../../_cluster_api/tasks/once.yml", "vars": {"_cluster_api_tasks": "on{{ x }}"}}, ""),
    ],
)
def test_all_hosts_data_in_task_of_each_host_is_rejected(tmp_path, task, problem):
    known = ("set_fact", "debug", "include_tasks")
    task = json.loads(re.sub(rf'"({"|".join(known)})":', r'"ansible.builtin.\1":', json.dumps(task)))
    register = {"name": "Query", "ansible.builtin.command": "x", "register": "found", "run_once": True}
    included = [{"name": "Walk", "ansible.builtin.debug": {"msg": "{{ rows }}"}}]
    files = {"tasks/main.yml": [register, {"name": "Task", **task}], "vars/main.yml": None}
    # A file that nothing includes is an entry point.
    if "include_tasks" in json.dumps(task):
        files["tasks/once.yml"] = included
    for name, content in files.items():
        path = tmp_path / "roles" / "role" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content) if content else ROLE_VARS)
    found, _count = all_hosts.problems(tmp_path)
    assert [text.partition(": task ")[2].partition(": ")[2] for text in found] == [problem] * bool(problem)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("when: __role_a is defined", ":2: __role_a is not defined"),
        ("register: __role_a", ""),
        ("loop_var: __role_a", ""),
        ("vars: &own {__role_a: 1}", ""),
        ("msg: '{% set __role_a = 1 %}{{ __role_a }}'", ""),
        ("# __role_a of earlier releases", ""),
        ("when: a  # __role_a", ""),
        ("when: __role_two_a", ":2: __role_two_a is private to role_two"),
        ("when: __other_a", ":2: __other_a is private to the playbooks"),
    ],
)
def test_private_variable_of_another_owner_or_undefined_is_rejected(tmp_path, monkeypatch, text, problem):
    monkeypatch.setattr(private_variables, "ROOT", tmp_path)
    path = tmp_path / "roles" / "role" / "tasks" / "main.yml"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\n{text}\n")
    found = private_variables.find_problems("role", private_variables.find_files("role"), ["role", "role_two"])
    assert [each.removeprefix("roles/role/tasks/main.yml") for each in found] == [problem] * bool(problem)


@pytest.mark.parametrize(("result", "problems"), [("__role_found", 1), ("role_given", 1), ("__role_read", 0)])
def test_result_with_the_name_of_a_variable_of_the_role_is_rejected(tmp_path, monkeypatch, result, problems):
    monkeypatch.setattr(private_variables, "ROOT", tmp_path)
    texts = {"vars": "__role_found: []", "defaults": "role_given: 1", "tasks": f"- stat:\n  register: {result}"}
    for folder, text in texts.items():
        path = tmp_path / "roles" / "role" / folder / "main.yml"
        path.parent.mkdir(parents=True)
        path.write_text(f"{text}\n")
    found = list(private_variables.find_overridden(private_variables.find_files("role")))
    assert [each.partition(": ")[0] for each in found] == ["roles/role/tasks/main.yml:2"] * problems


def test_artifact_content():
    good = [
        *artifact.REQUIRED,
        "roles/a/meta/argument_specs.yml",
        "docs/docsite/links.yml",
        "plugins/module_utils/_a/__init__.py",
        "plugins/plugin_utils/_a/a.html.j2",
    ]
    assert artifact.problems_of_content(good, ["a"]) == []
    wrong = [
        "tests/unit/x.py",
        "pyproject.toml",
        ".config/molecule/config.yml",
        ".lab/key",
        "plugins/__pycache__/x.pyc",
        "plugins/filter/x.yml",
        "plugins/module_utils/_a/__main__.py",
    ]
    bad = artifact.problems_of_content([*good, *wrong], ["a", "b"])
    assert [problem.split(":")[0] for problem in bad] == [*wrong, "roles/b/meta/argument_specs.yml"]


def test_shell_finds_scripts_by_their_first_line():
    names = shell.scripts()
    assert ".ci/run" in names
    assert not [name for name in names if name.endswith(".py")]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("seen.py", "", "write observed or reported"),
        ("a.py", "def plan(asked): return asked\n", "a.py:1: the name asked has 'asked'"),
        ("a.py", "class Wish: ...\n", "a.py:1: the name Wish"),
        ("a.py", "class A:\n    def __init__(self): self._told = 1\n", "a.py:2: the name _told"),
        ("a.py", "def determine(): return {'task': 'told', 'x': unseen.surface}\n", None),
        ("a.yml", "__demo_told: 1\n", "a.yml:1: the name __demo_told"),
        ("a.yml", "- name: Mend a scheduler\n", "a.yml:1: the name 'Mend a scheduler' has 'Mend'"),
        ("a.yml", "- name: Check | Look at the nodes\n", "has 'Look'"),
        ("a.yml", "- name: Check | Read the nodes\n  vars: {look: 1}\n", None),
    ],
)
def test_words_of_each_name_are_checked(tmp_path, name, content, problem):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / name).write_text(content)
    found, count = words.problems(tmp_path, ("plugins",), ())
    assert count == 1
    assert any(problem in text for text in found) if problem else found == []


def test_words_in_tests_are_checked(tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("def test_file_of_somebody_stays(): ...\n")
    (found,), _count = words.problems(tmp_path, words.FOLDERS, ())
    assert found.startswith("tests/test_a.py:1: the name test_file_of_somebody_stays has 'somebody'")


def test_words_with_pending_place_ignores_it_until_it_is_clean(tmp_path):
    (tmp_path / "plugins" / "_a").mkdir(parents=True)
    (tmp_path / "plugins" / "_a" / "x.py").write_text("told = 1\n")
    assert words.problems(tmp_path, ("plugins",), ("plugins/_a",)) == ([], 1)
    (tmp_path / "plugins" / "_a" / "x.py").write_text("reported = 1\n")
    (found,), _count = words.problems(tmp_path, ("plugins",), ("plugins/_a",))
    assert "plugins/_a has no such names; remove it" in found
