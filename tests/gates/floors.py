# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does every floor of the house lean on lower floors only? ``python -m gates.floors``.

playbooks -> roles -> modules -> module_utils -> nothing. The ground floor, module_utils, imports the standard library and itself; only
the door to the API server (``_kube_api``) imports Ansible and the kubernetes client, and only modules that run on the controller go
through it. What runs on a node imports the standard library, ``ansible.module_utils`` and the ground floor; action and filter plugins
are other faces of the same ground floor, and share what needs a library of the controller in plugin_utils. A role names no inventory
group, for it gets its hosts from the play.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from ._common import ROOT, api_modules, finish, lines, plugin_names

COLLECTION = "ansible_collections.gpu.kubernetes"
UTILS = f"{COLLECTION}.plugins.module_utils"
DOOR = "_kube_api"
# What each kind of file may import besides the standard library.
GROUND: tuple[str, ...] = (UTILS,)
NODE = ("ansible.module_utils", *GROUND)
API = ("ansible_collections.kubernetes.core", "kubernetes", *NODE)
FACES = ("ansible", "jinja2", "ruamel.yaml", "yaml", f"{COLLECTION}.plugins.plugin_utils", *GROUND)
# The variable, and not a method of that name or a key; `groups.get(…)` names a group, `groups.items()` would go through all.
GROUP = re.compile(r"(?<![\w.])groups\s*(\[|\.\w|\|)|['\"]\s+(not\s+)?in\s+groups\b|\bgroup_names\b")
DYNAMIC = ("import_module", "__import__")


def package_of(path: Path) -> list[str]:
    """Parts of the dotted name of the package that a file of this collection lies in."""
    return [*COLLECTION.split("."), *path.parent.relative_to(ROOT).parts] if path.is_relative_to(ROOT) else []


def is_type_checking(test: ast.expr) -> bool:
    """Whether a condition is TYPE_CHECKING itself, and nothing with or against it."""
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def imported(node: ast.AST, package: list[str]) -> Iterator[str]:
    """Absolute dotted names of what one node of a file in *package* imports; "?" for a name that only the run knows."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = package[: len(package) - node.level + 1] if node.level else []
        whole = ".".join([*base, *filter(None, [node.module])])
        yield from (f"{whole}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in DYNAMIC:
        name = node.args[0] if node.args else None
        yield str(name.value) if isinstance(name, ast.Constant) else "?"


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of each thing that a file imports, those for type checkers left out.

    Relative imports are resolved, and names that are imported from a package are returned with it: ``from . import x`` may be a file.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and is_type_checking(node.test)
        for statement in node.body
        for child in ast.walk(statement)
    }
    package = package_of(path)
    for node in ast.walk(tree):
        if id(node) not in typing_only:
            yield from ((getattr(node, "lineno", 0), name) for name in imported(node, package))


def is_below(name: str, places: tuple[str, ...]) -> bool:
    """Whether a dotted name is one of *places* or lies in one of them."""
    return any(name == place or name.startswith(f"{place}.") for place in places)


def is_standard(name: str) -> bool:
    """Whether a dotted name belongs to the standard library."""
    return name.partition(".")[0] in sys.stdlib_module_names


def problems_of_file(path: Path, allowed: tuple[str, ...], why: str, *, door: bool = False) -> Iterator[str]:
    """Imports of a file beyond the standard library and what is *allowed*; through the *door* only where it is open."""
    for line, name in imports(path):
        if is_standard(name):
            continue
        closed = is_below(name, (f"{UTILS}.{DOOR}",)) and not door
        if closed or not is_below(name, allowed):
            yield f"{path.relative_to(ROOT)}:{line}: imports {name}; {why}"


def module_utils() -> list[Path]:
    """All files of module_utils."""
    return sorted((ROOT / "plugins" / "module_utils").rglob("*.py"))


def problems_of_ground_floor() -> Iterator[str]:
    """Imports that make the ground floor lean on something."""
    for path in module_utils():
        if path.name == f"{DOOR}.py":
            yield from problems_of_file(path, API, "the door to the API server leads there only", door=True)
        else:
            yield from problems_of_file(path, GROUND, "this floor has the standard library alone")


def problems_of_modules() -> Iterator[str]:
    """Imports that a node cannot serve, and modules that reach past module_utils."""
    on_controller = set(api_modules())
    for name in plugin_names("modules"):
        path, inside = ROOT / "plugins" / "modules" / f"{name}.py", name in on_controller
        yield from problems_of_file(
            path, API if inside else NODE, "it is not at hand where the module runs", door=inside
        )


def faces() -> list[Path]:
    """Plugins other than modules: they run in Ansible's own process."""
    folders = ("action", "filter", "lookup", "test", "callback", "inventory", "doc_fragments", "plugin_utils")
    return [path for folder in folders for path in sorted((ROOT / "plugins" / folder).glob("*.py"))]


def problems_of_faces() -> Iterator[str]:
    """Other plugins that lean on something but Ansible, its own libraries and the ground floor."""
    for path in faces():
        yield from problems_of_file(path, FACES, "a plugin has Ansible and the ground floor")


def problems_of_roles() -> Iterator[str]:
    """Roles that know the inventory."""
    for path in sorted((ROOT / "roles").rglob("*.y*ml")) + sorted((ROOT / "roles").rglob("*.j2")):
        for number, text in lines(path):
            if GROUP.search(text) and not text.lstrip().startswith("#"):
                yield f"{path.relative_to(ROOT)}:{number}: names an inventory group; give the hosts by variable or by the play"


def main() -> int:
    """Check all floors; prints the numbers."""
    found = [*problems_of_ground_floor(), *problems_of_modules(), *problems_of_faces(), *problems_of_roles()]
    counts = f"{len(module_utils())} files of module_utils, {len(plugin_names('modules'))} modules, {len(faces())} other plugins"
    return finish("floors", found, f"{counts}, the roles")


if __name__ == "__main__":
    sys.exit(main())
