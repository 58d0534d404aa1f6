# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does a task that each host runs read or set the data of all hosts? ``python -m gates.all_hosts``.

Time and memory of such a task grow quadratically with the number of hosts. Two forms are rejected without ``run_once``: any use of ``hostvars`` beyond
the host's own, also through variables; and ``set_fact`` of what a task with ``run_once`` has registered. Group once by host, then look up.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ._common import ROOT, AnsibleLoader, finish

WALK = re.compile(r"\bhostvars\b(?!\[inventory_hostname\])")
#: A variable, but not an attribute or a text in quotes.
NAME = re.compile(r"(?<![\w.'\"])[A-Za-z_]\w*")
#: A whole registered variable or a part of it, without a filter.
COPY = re.compile(r"\{\{\s*(\w+)(?:\.\w+|\[['\"]\w+['\"]\])*\s*\}\}")
FACTS = ("ansible.builtin.set_fact", "set_fact")
INCLUDES = ("ansible.builtin.include_tasks", "ansible.builtin.import_tasks")
SECTIONS = ("block", "rescue", "always", "pre_tasks", "tasks", "post_tasks")
#: Roles of control planes, which are few.
FEW_HOSTS = ("kube_scheduler_extender",)

Task = Mapping[str, Any]


class Place(NamedTuple):
    """A task of a file, with the variables of its play, its blocks and its own, and whether it or a block around it runs once for all hosts."""

    path: Path
    task: Task
    variables: Mapping[str, Any]
    once: bool


def walk_texts(value: Any) -> Iterator[str]:
    """All strings in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for each in value.values() for text in walk_texts(each))
    elif isinstance(value, list):
        yield from (text for each in value for text in walk_texts(each))


def find_names(value: Any) -> set[str]:
    """All names in the strings of a value, and ``hostvars`` only for other hosts."""
    found = {name for text in walk_texts(value) for name in NAME.findall(text)} - {"hostvars"}
    return found | {"hostvars"} if any(map(WALK.search, walk_texts(value))) else found


def find_walks(used: Mapping[str, set[str]]) -> set[str]:
    """Names of the variables that walk ``hostvars``, by themselves or through others, and ``hostvars``; *used* has the names in each."""
    found = {"hostvars"}
    while more := {name for name, names in used.items() if name not in found and found & names}:
        found |= more
    return found


def read_places(
    path: Path, content: Any, around: Mapping[str, Any] | None = None, once: bool = False
) -> Iterator[Place]:
    """The tasks of a file, those of its plays and blocks included."""
    for item in content if isinstance(content, list) else []:
        runs_once = once or item.get("run_once") is True
        variables = {**(around or {}), **item.get("vars", {})}
        yield Place(path, {key: value for key, value in item.items() if key not in SECTIONS}, variables, runs_once)
        for section in SECTIONS:
            yield from read_places(path, item.get(section), variables, runs_once)


def find_includes(places: list[Place]) -> Iterator[tuple[re.Pattern[str], Path, bool]]:
    """Each include of a file: the paths that its name stands for, the including file, and whether it runs once for all hosts."""
    for path, task, _variables, once in places:
        for included in (task[key] for key in INCLUDES if key in task):
            name = included if isinstance(included, str) else included.get("file", "")
            through = name.endswith("_cluster_api/tasks/once.yml")
            name = f"{task.get('vars', {}).get('_cluster_api_tasks', '')}.yml" if "_cluster_api/" in name else name
            pattern = re.sub(r"\\\{\\\{.*?\\\}\\\}", ".*", re.escape((path.parent / name).resolve().as_posix()))
            yield re.compile(pattern), path, once or through


def list_once(places: list[Place]) -> set[Path]:
    """The files of tasks that are included only by tasks with ``run_once``, or through ``_cluster_api/tasks/once.yml``."""
    includes = list(find_includes(places))
    users: dict[Path, list[tuple[Path, bool]]] = {}
    for file in {place.path for place in places}:
        found = [(pattern, path, once) for pattern, path, once in includes if pattern.fullmatch(file.as_posix())]
        # An include of {{ entry_point }}.yml matches all files of a role; includes that name the file have precedence.
        named = [each for each in found if not each[0].pattern.endswith("/.*\\.yml")]
        users[file] = [(path, once) for _pattern, path, once in named or found]
    known: set[Path] = set()
    while (
        more := {file for file, by in users.items() if by and all(once or user in known for user, once in by)} - known
    ):
        known |= more
    return known


def find_problems(places: list[Place], used: Mapping[str, set[str]]) -> Iterator[str]:
    """One sentence for each task of each host that reads or sets the data of all hosts; *used* has the names in each variable."""
    files_once = list_once(places)
    walks_of_roles = find_walks(used)
    each_host = [place for place in places if not place.once and place.path not in files_once]
    each_host_ids = {id(place) for place in each_host}
    registered = {
        place.task["register"] for place in places if "register" in place.task and id(place) not in each_host_ids
    }
    for path, task, own, _once in each_host:
        where = f"{path}: task {task.get('name')!r}"
        walks = (
            find_walks({**used, **{name: find_names(value) for name, value in own.items()}}) if own else walks_of_roles
        )
        if find_names({key: value for key, value in task.items() if key != "vars"}) & walks:
            yield f"{where}: each host reads the variables of all hosts; group them once (run_once), then look up"
        for fact, value in next((task[key] for key in FACTS if key in task), {}).items():
            copied = COPY.fullmatch(str(value).strip())
            if copied and copied[1] in registered:
                yield f"{where}: {fact} is the same data for all hosts; set it once (run_once)"


def load(path: Path) -> Any:
    """The content of a YAML file."""
    return yaml.load(path.read_text(encoding="utf-8"), AnsibleLoader)  # noqa: S506 - a subclass of SafeLoader


def problems(root: Path) -> tuple[list[str], int]:
    """The problems below *root*, and the number of tasks."""
    roles = [role for role in sorted((root / "roles").glob("[!.]*")) if role.name not in FEW_HOSTS]
    files = [
        path for role in roles for folder in ("tasks", "handlers") for path in sorted((role / folder).rglob("*.yml"))
    ]
    files += sorted((root / "playbooks").rglob("*.yml"))
    settings = [
        path for role in roles for folder in ("defaults", "vars") for path in sorted((role / folder).rglob("*.yml"))
    ]
    places = [place for path in files for place in read_places(path, load(path))]
    used: dict[str, set[str]] = {}
    for name, value in (item for path in settings for item in (load(path) or {}).items()):
        # Roles that describe themselves to another role define the same variables.
        used.setdefault(name, set()).update(find_names(value))
    found = [text.removeprefix(f"{root}/") for text in find_problems(places, used)]
    return sorted(found), len(places)


def main() -> int:
    """Check roles and playbooks."""
    found, count = problems(ROOT)
    return finish("all hosts", found, f"{count} tasks")


if __name__ == "__main__":
    sys.exit(main())
