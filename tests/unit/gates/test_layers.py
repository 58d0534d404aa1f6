# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Imports against the direction of the layers."""

from __future__ import annotations

import pytest
from gates import layers

PLUGINS = "ansible_collections.gpu.kubernetes.plugins"


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
    ("allowed", "on_controller", "source", "good"),
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
def test_layers_report_forbidden_imports(file, allowed, on_controller, source, good):
    found = list(
        layers.problems_of_file(file("module_utils/_a/x.py", source), allowed, "why", on_controller=on_controller)
    )
    assert (found == []) is good


@pytest.mark.parametrize(
    ("source", "good"),
    [
        (f"from {PLUGINS}.module_utils._text import read_text\n", False),
        ("from ..module_utils import _text\n", False),
        (f"def f():\n    from {PLUGINS}.module_utils._text import read_text\n", True),
        (f"if TYPE_CHECKING:\n    from {PLUGINS}.module_utils._text import Text\n", True),
        ("from ansible.errors import AnsibleFilterError\n", True),
        ("import yaml\n", False),
    ],
)
def test_layers_report_a_filter_that_imports_more_than_ansible_at_its_top(file, source, good):
    file("filter/x.py", source)
    assert (list(layers.problems_of_filters()) == []) is good


@pytest.mark.parametrize(
    ("sources", "circle"),
    [
        (
            {
                "_a/x.py": "from .._b import y\n",
                "_b/y.py": "from .._c import z\n",
                "_c.py": "from ._text import read\n",
            },
            "",
        ),
        ({"_a/x.py": "from . import z\n", "_a/z.py": "from .x import y\n"}, ""),
        ({"_a/x.py": "from .._b.y import f\n", "_b/z.py": "def f():\n    from .. import _a\n"}, "_a <- _b <- _a"),
        (
            {"_a/x.py": "from .._b.y import f\n", "_b/y.py": "from .._c import z\n", "_c.py": "from ._a import x\n"},
            "_a",
        ),
        ({"_a/x.py": "from .._b import y\n", "_b/y.py": "if TYPE_CHECKING:\n    from .._a.x import z\n"}, ""),
    ],
)
def test_layers_report_a_circle_of_packages(tmp_path, monkeypatch, sources, circle):
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    for name, source in sources.items():
        path = tmp_path / "plugins" / "module_utils" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    found = list(layers.problems_of_circles())
    assert len(found) == bool(circle)
    assert circle in "".join(found)


@pytest.mark.parametrize(
    ("name", "good"),
    [("plugin_utils/_api_action.py", True), ("plugin_utils/x.py", False), ("lookup/_api_action.py", False)],
)
def test_layers_let_one_file_load_all_filters(file, name, good):
    file(name, f"from {PLUGINS} import filter as filters\nimport_module(filters.__name__)\n")
    assert (list(layers.problems_of_other_plugins()) == []) is good


@pytest.mark.parametrize(
    ("name", "good"),
    [("action/x.py", True), ("action/y.py", False), ("lookup/x.py", False), ("plugin_utils/x.py", False)],
)
def test_layers_let_an_action_import_the_module_of_its_name(file, name, good):
    file(name, f"from {PLUGINS}.modules import x\n")
    assert (list(layers.problems_of_other_plugins()) == []) is good


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
