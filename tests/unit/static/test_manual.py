# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The guides that lead here from manuals and other projects, the commands of all pages, and the example inventories: they name what exists."""

from __future__ import annotations

import re
from functools import cache

import pytest
import yaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._monitoring.alerts import ALERTS
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT

GUIDES = ("guide_from_manual", "guide_from_manual_zh")
#: Guides from other projects, and the least number of their steps.
OTHER_PROJECTS = {"guide_from_deepops": 15, "guide_from_gpu_operator": 20, "guide_from_kubespray": 14}
PAGES = sorted((ROOT / "docs" / "docsite" / "rst").glob("guide_*.rst"))
WITH_COMMANDS = [*PAGES, *(ROOT / name for name in ("AGENTS.md", "README.md", "README.zh-CN.md"))]
#: An assignment in a command, or the first key of JSON.
EXTRA_VARIABLE = re.compile(r"""(?:-e|--extra-vars)[ =]'?(?:\{")?(\w+)"?[=:]""")
#: Tags of plays that are not those of site.
MORE_TAGS = {"dashboards", "exporter", "prometheus"}
EXAMPLES = sorted(path.name for path in ROOT.glob("inventory*.example.yml"))
#: Variables of Ansible and of the playbooks, which no argument spec has.
OTHERS = {"ansible_ssh_common_args", "gpu_nodes_max_unreachable"}
#: The same in the second column of a guide.
OF_PLAYBOOKS = {"container_runtime", "gpu_alert_node", "gpu_nodes_group", "nvidia_driver_upgrade_max_unavailable"}
#: Groups of the inventory, and strategies, which the second column of the guide names too.
WORDS = {"kube_control_plane"}


def read_rows(guide):
    """The rows of all tables of a guide: a list of cells each, without the headings."""
    text = (ROOT / "docs" / "docsite" / "rst" / f"{guide}.rst").read_text(encoding="utf-8")
    rows = re.split(r"^    \* - ", text, flags=re.MULTILINE)[1:]
    cells = [re.split(r"^      - ", row.split("\n\n")[0], flags=re.MULTILINE) for row in rows]
    return [row for row in cells if "``" in row[1] or "``" in row[0]]


@cache
def list_options():
    found = set()
    for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"):
        for spec in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            found |= set(spec.get("options") or {})
    return found


def names_of(cell):
    return re.findall(r"``([A-Za-z0-9_]+)``", cell)


@pytest.mark.parametrize(("guide", "least"), [*((guide, 50) for guide in GUIDES), *OTHER_PROJECTS.items()])
def test_second_column_names_options_playbooks_roles_and_alerts(guide, least):
    known = list_options() | WORDS | OF_PLAYBOOKS | {alert.name for alert in ALERTS}
    known |= {path.stem for path in (ROOT / "playbooks").glob("*.yml")} | {
        path.name for path in (ROOT / "roles").iterdir()
    }
    rows = read_rows(guide)
    assert len(rows) >= least
    assert {len(row) for row in rows} == {3}
    assert {name for row in rows for name in names_of(row[1])} - known == set()


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_commands_of_pages_name_playbooks_tags_and_variables_that_exist(page):
    text = page.read_text(encoding="utf-8").replace("\\\n", "")
    commands = re.findall(r"ansible-playbook (gpu\.kubernetes\.\w+.*)", text)
    tags = yaml.safe_load((ROOT / "roles" / "_hosts" / "vars" / "main.yml").read_text(encoding="utf-8"))["__gpu_tags"]
    for command in commands:
        assert (ROOT / "playbooks" / f"{command.split()[0].split('.')[2]}.yml").is_file()
        named = {tag for found in re.findall(r"--(?:skip-)?tags[ =](\S+)", command) for tag in found.split(",")}
        assert named <= {*tags, *MORE_TAGS}
        assert set(EXTRA_VARIABLE.findall(command)) - list_options() - OTHERS - OF_PLAYBOOKS == set()
    assert commands or page.suffix == ".rst"


def test_pages_are_all_in_the_table_of_contents():
    contents = yaml.safe_load((ROOT / "docs" / "docsite" / "extra-docs.yml").read_text(encoding="utf-8"))
    listed = [name for section in contents["sections"] for name in section["toctree"]]
    assert sorted(listed) == [page.stem for page in PAGES]


def test_both_languages_have_the_same_steps_and_names():
    english, chinese = map(read_rows, GUIDES)
    assert [names_of(row[1]) for row in english] == [names_of(row[1]) for row in chinese]
    assert [len(row) for row in english + chinese] == [3] * len(english) * 2


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_inventory_has_only_variables_that_exist(name):
    def find_variables(group):
        found = set(group.get("vars") or {})
        for host in (group.get("hosts") or {}).values():
            found |= set(host or {})
        for child in (group.get("children") or {}).values():
            found |= find_variables(child or {})
        return found

    inventory = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    assert find_variables(inventory["all"]) - list_options() - OTHERS == set()
