# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences between the documented options of a role, its defaults and its tasks."""

from __future__ import annotations

import json

import pytest
from gates import argument_specs

OPTION = {"description": "x", "type": "str"}
LIST = {"description": "x", "type": "list", "elements": "str"}
DICT = {"description": "x", "type": "dict", "options": {"a": {"description": "x", "type": "int", "required": True}}}
HEAD = {"short_description": "x", "description": "x", "author": "x", "version_added": "0.1.0"}


@pytest.fixture
def role(tmp_path):
    """Write a role from its documented options, its defaults and its tasks; without tasks it reads every option."""

    def make(options, defaults, tasks=None, **entry_points):
        folder = tmp_path / "demo"
        for name in ("meta", "defaults", "tasks"):
            (folder / name).mkdir(parents=True)
        specs = {"argument_specs": {"main": {**HEAD, "options": options}, **entry_points}}
        (folder / "meta" / "argument_specs.yml").write_text(json.dumps(specs))
        (folder / "defaults" / "main.yml").write_text(json.dumps(defaults))
        (folder / "tasks" / "main.yml").write_text(f"- debug: {{var: {list(options)}}}" if tasks is None else tasks)
        return folder

    return make


@pytest.mark.parametrize(
    ("option", "defaults", "problem"),
    [
        ({**OPTION, "default": "a"}, {"demo_x": "b"}, "documented default 'a', defaults/main.yml 'b'"),
        ({**OPTION, "default": "a"}, {}, "defaults/main.yml absent"),
        ({**OPTION}, {"demo_x": "a"}, "documented default absent"),
        ({**OPTION, "type": "int", "default": True}, {"demo_x": True}, "default True is not of type int"),
        ({**OPTION, "type": "int", "default": 1}, {"demo_x": True}, "documented default 1"),
        ({**OPTION, "type": "bool", "default": "true"}, {"demo_x": "true"}, "is not of type bool"),
        ({**OPTION, "type": "list", "default": []}, {"demo_x": []}, "without elements"),
        ({**OPTION, "type": "text", "default": "a"}, {"demo_x": "a"}, "type is 'text'"),
        ({**OPTION, "choices": ["a"], "default": "b"}, {"demo_x": "b"}, "not one of its choices"),
        ({**OPTION, "required": True, "default": "b"}, {"demo_x": "b"}, "is required and has a default"),
        ({"type": "str"}, {}, "no description"),
        ({**OPTION}, {"demo_y": 1}, "demo_y: in defaults/main.yml, not documented"),
        ({**OPTION, "type": "raw", "default": [1]}, {"demo_x": [True]}, "documented default [1]"),
        ({**OPTION, "type": "float", "default": 1}, {"demo_x": 1.0}, "documented default 1"),
        ({**OPTION, "type": "bool", "default": "{{ a }}"}, {"demo_x": "{{ a }}"}, "computed and not text"),
        ({**LIST, "default": ["a", 1]}, {"demo_x": ["a", 1]}, "default element 1 is not of type str"),
        ({**LIST, "choices": ["a"], "default": ["b"]}, {"demo_x": ["b"]}, "default 'b' is not one of its choices"),
        ({**LIST, "elements": "text"}, {}, "no type of elements: 'text'"),
        ({**DICT, "default": {"a": "1"}}, {"demo_x": {"a": "1"}}, "demo_x.a: default '1' is not of type int"),
        ({**DICT, "default": {}}, {"demo_x": {}}, "demo_x.a: required, and missing from the default"),
        (
            {**DICT, "default": {"a": 1, "b": 2}},
            {"demo_x": {"a": 1, "b": 2}},
            "demo_x.b: in the default, not documented",
        ),
        ({**DICT, "options": {"a": {"type": "int"}}}, {}, "demo_x.a: no description"),
        ({**DICT, "options": {"a": {**OPTION, "type": "text"}}}, {}, "demo_x.a: type is 'text'"),
        ({**DICT, "type": "str"}, {}, "has suboptions and is not a dict"),
    ],
)
def test_argument_specs_report_each_difference(role, option, defaults, problem):
    count, problems = argument_specs.problems_of_role(role({"demo_x": option}, defaults))
    assert count == 1
    assert problem in "\n".join(problems)


def test_argument_specs_that_agree_are_accepted(role):
    options = {
        "demo_x": {**OPTION, "default": "{{ a }}"},
        "demo_n": {**OPTION, "type": "int"},
        "gpu_kubeconfig": {**OPTION, "type": "path"},
    }
    again = {**HEAD, "options": {"demo_n": options["demo_n"]}}
    assert argument_specs.problems_of_role(role(options, {"demo_x": "{{ a }}"}, check=again)) == (3, [])


@pytest.mark.parametrize("name", ["other_x", "gpu_kubeconfig_x"])
def test_argument_specs_require_the_prefix_of_the_role(role, name):
    _count, problems = argument_specs.problems_of_role(role({name: OPTION}, {}))
    assert problems == [f"demo: {name}: public names start with demo_"]


@pytest.mark.parametrize(
    ("tasks", "problems"),
    [
        ("- debug:\n    var: demo_x\n", []),
        ("- debug:\n    msg: '{{ demo_x }}{{ __demo_a }}'\n", []),
        ("- set_fact:\n    demo_out: '{{ demo_x }}'\n- debug:\n    var: demo_out\n", []),
        ("# demo_x\n- set_fact:\n    demo_x: 1\n", ["demo: demo_x: nothing in the role reads it"]),
        (
            "- debug:\n    msg: '{{ demo_x + demo_y }}'\n",
            ["demo: demo_y: the role reads it, and it is neither documented nor set"],
        ),
    ],
)
def test_argument_specs_report_options_that_are_not_read(role, tasks, problems):
    assert argument_specs.problems_of_role(role({"demo_x": OPTION}, {}, tasks)) == (1, problems)


@pytest.mark.parametrize(
    ("tasks", "problems"),
    [
        ("- include_tasks: ../../_inner/tasks/main.yml\n", []),
        ("- include_role: {name: gpu.kubernetes._inner}\n", []),
        ("- include_role: {name: gpu.kubernetes.other}\n", ["demo: gpu_kubeconfig: nothing in the role reads it"]),
    ],
)
def test_argument_specs_option_of_an_included_internal_role_is_read(role, tasks, problems):
    folder = role({"gpu_kubeconfig": {**OPTION, "type": "path"}}, {}, tasks)
    inner = folder.parent / "_inner" / "tasks" / "main.yml"
    inner.parent.mkdir(parents=True)
    inner.write_text("- debug:\n    var: gpu_kubeconfig\n")
    assert argument_specs.problems_of_role(folder) == (1, problems)


def test_argument_specs_check_every_entry_point(role):
    check = {
        "description": "x",
        "author": "x",
        "version_added": "0.1.0",
        "options": {"demo_x": {**OPTION, "type": "int"}},
    }
    assert argument_specs.problems_of_role(role({"demo_x": OPTION}, {}, check=check))[1] == [
        "demo: entry point check: demo_x is not what it is in main",
        "demo: entry point check: no short_description",
    ]


def test_argument_specs_require_a_main_entry_point(tmp_path):
    assert argument_specs.problems_of_role(tmp_path) == (
        0,
        [f"{tmp_path.name}: meta/argument_specs.yml has no entry point main"],
    )
