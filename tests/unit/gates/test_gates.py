# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The gates that read the collection report wrong content."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from gates import action_groups, all_hosts, argument_specs, artifact, layers, licences, private_variables, shell, words

OPTION = {"description": "x", "type": "str"}
PLUGINS = "ansible_collections.gpu.kubernetes.plugins"
LIST = {"description": "x", "type": "list", "elements": "str"}
DICT = {"description": "x", "type": "dict", "options": {"a": {"description": "x", "type": "int", "required": True}}}
HEAD = {"short_description": "x", "description": "x", "author": "x", "version_added": "0.1.0"}


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Write a file of the plugins in a checkout for the test."""
    monkeypatch.setattr(layers, "ROOT", tmp_path)

    def make(name, source):
        path = tmp_path / "plugins" / name
        path.parent.mkdir(parents=True)
        path.write_text(source)
        return path

    return make


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


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import os\nfrom . import x\n", ["os", f"{PLUGINS}.module_utils._a.x"]),
        ("from .x import y\n", [f"{PLUGINS}.module_utils._a.x.y"]),
        ("from ..._kube_api import call\n", [f"{PLUGINS}._kube_api.call"]),
        ("from .. import _kube_api\n", [f"{PLUGINS}.module_utils._kube_api"]),
        ("from ansible.module_utils.basic import AnsibleModule\n", ["ansible.module_utils.basic.AnsibleModule"]),
        ("def f():\n    import kubernetes.client\n", ["kubernetes.client"]),
        ("if TYPE_CHECKING:\n    import yaml\nimport re\n", ["re"]),
        ("if typing.TYPE_CHECKING:\n    import yaml\nelse:\n    import json\n", ["json"]),
        ("if not TYPE_CHECKING:\n    import yaml\n", ["yaml"]),
        ("if TYPE_CHECKING or True:\n    import yaml\n", ["yaml"]),
        ("importlib.import_module('yaml')\n", ["yaml"]),
        ("__import__('yaml')\n", ["yaml"]),
        ("import_module(name)\n", ["?"]),
    ],
)
def test_layers_read_imports(file, source, expected):
    assert [name for _line, name in layers.imports(file("module_utils/_a/x.py", source))] == expected


@pytest.mark.parametrize(
    ("allowed", "allow_api", "source", "good"),
    [
        (layers.MODULE_UTILS, False, "from . import journal\n", True),
        (layers.MODULE_UTILS, False, "from .._files import read_bytes\n", True),
        (layers.MODULE_UTILS, False, "from ...modules import nvml_facts\n", False),
        (layers.MODULE_UTILS, False, "from ansible.module_utils.basic import AnsibleModule\n", False),
        (layers.MODULE_UTILS, False, "from .. import _kube_api\n", False),
        (layers.MODULE_UTILS, False, "from .._kube_api import call\n", False),
        (layers.MODULE_UTILS, False, "import importlib\nimportlib.import_module(name)\n", False),
        (layers.NODE, False, "from ansible.module_utils.basic import AnsibleModule\n", True),
        (layers.NODE, False, f"from {layers.UTILS}._kube_api import call\n", False),
        (layers.NODE, False, "import kubernetes\n", False),
        (layers.API, True, f"from {layers.UTILS}._kube_api import call\n", True),
        (layers.API, True, "import requests\n", False),
        (layers.OTHER_PLUGINS, False, "from ansible.plugins.action import ActionBase\n", True),
        (layers.OTHER_PLUGINS, False, "import kubernetes\n", False),
    ],
)
def test_layers_report_forbidden_imports(file, allowed, allow_api, source, good):
    found = list(layers.problems_of_file(file("module_utils/_a/x.py", source), allowed, "why", allow_api=allow_api))
    assert (found == []) is good


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("when: inventory_hostname in groups['gpu_nodes']", True),
        ("{{ groups.kube_control_plane | first }}", True),
        ("when: \"'gpu_nodes' in group_names\"", True),
        ("name: Ask for the groups of the user", False),
        ("groups: [video]", False),
        ("hosts: {{ groups.get('gpu_nodes') }}", True),
        ("{{ groups | length }}", True),
        ("when: \"'gpu_nodes' in groups\"", True),
        ("when: \"'gpu_nodes' not in groups\"", True),
        ("description: Pods come in groups of five, the groups. Each has one.", False),
        ("{{ match.groups() }}", False),
    ],
)
def test_layers_find_inventory_groups(text, named):
    assert bool(layers.GROUP.search(text)) is named


@pytest.mark.parametrize(
    ("test", "fake", "importer"),
    [
        ("import pytest\nfrom lab.wait import until\nfrom fakes.cases import CASES\n", "import json\n", ""),
        (f"from {PLUGINS}.module_utils import _text\n", "", "molecule/demo/present/test_demo.py:1"),
        ("from fakes.cases import CASES\n", f"\nfrom {PLUGINS} import x\n", "tests/fakes/cases.py:2"),
        ("from lab import wait\n", f"from {PLUGINS} import x\n", "tests/fakes/cases.py:1"),
        # The check follows imports within functions; those for type checkers have no effect.
        (f"def test():\n    import {PLUGINS}.x\n", "", "molecule/demo/present/test_demo.py:2"),
        (f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from {PLUGINS} import x\n", "", ""),
    ],
)
def test_layers_report_scenario_tests_that_import_the_collection(tmp_path, monkeypatch, test, fake, importer):
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    files = {
        "molecule/demo/present/test_demo.py": test,
        "molecule/demo/files/program.py": f"import {PLUGINS}\n",
        "tests/lab/__init__.py": "",
        "tests/lab/wait.py": "from . import shell\n",
        "tests/lab/shell.py": "from fakes import cases\nfrom . import wait\n",
        "tests/fakes/cases.py": fake,
        "tests/fakes/machine.py": f"import {PLUGINS}\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    found = list(layers.problems_of_scenarios())
    assert [problem.partition(": ")[0] for problem in found] == [importer] * bool(importer)


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


def test_artifact_content():
    good = [*artifact.REQUIRED, "roles/a/meta/argument_specs.yml", "docs/docsite/links.yml"]
    assert artifact.problems_of_content(good, ["a"]) == []
    wrong = [
        "tests/unit/x.py",
        "pyproject.toml",
        ".config/molecule/config.yml",
        ".lab/key",
        "plugins/__pycache__/x.pyc",
        "plugins/filter/x.yml",
    ]
    bad = artifact.problems_of_content([*good, *wrong], ["a", "b"])
    assert [problem.split(":")[0] for problem in bad] == [
        "tests/unit/x.py",
        "pyproject.toml",
        ".config/molecule/config.yml",
        ".lab/key",
        "plugins/__pycache__/x.pyc",
        "plugins/filter/x.yml",
        "roles/b/meta/argument_specs.yml",
    ]


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
