# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does each layer use lower layers only? ``python -m gates.layers``.

playbooks -> roles -> modules -> module_utils -> nothing. module_utils imports the standard library and itself, without circles of packages; only the API client
(``_kube_api``) imports Ansible and the kubernetes client, and only the linter's reader YAML; modules that run on the controller use them. A module
that runs on a node imports the standard library, ``ansible.module_utils`` and module_utils. Other plugins use module_utils, too, and share in
plugin_utils what needs a library of the controller; an action imports the module of its name. Filters import this collection in their functions, and at
their top only what each installation has; one file of plugin_utils loads them all. A
role names no inventory group: it gets its hosts from the play. Tests of scenarios, and what they import from tests/, import no collection: Molecule
runs them without one on their path.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from ._common import ROOT, api_modules, finish, lines, plugin_names, roles

COLLECTION = "ansible_collections.gpu.kubernetes"
UTILS = f"{COLLECTION}.plugins.module_utils"
# The packages that each kind of file may import besides the standard library.
MODULE_UTILS: tuple[str, ...] = (UTILS,)
NODE = ("ansible.module_utils", *MODULE_UTILS)
API = ("ansible_collections.kubernetes.core", "kubernetes", *NODE)
# Files of module_utils that run on the controller only, with what they may import.
ON_CONTROLLER = {"_kube_api": API, "_lint.manifests": ("yaml", *MODULE_UTILS), "_lint.command": MODULE_UTILS}
OTHER_PLUGINS = ("ansible", "jinja2", "ruamel.yaml", "yaml", f"{COLLECTION}.plugins.plugin_utils", *MODULE_UTILS)
# A file that loads all filters for the processes of tasks, by names that it lists.
PRELOADS = {"plugin_utils/_api_action.py": (f"{COLLECTION}.plugins.filter", "?")}
# The variable, not a method of that name or a key; `groups.get(…)` names a group, `groups.items()` reads all.
GROUP = re.compile(r"(?<![\w.])groups\s*(\[|\.\w|\|)|['\"]\s+(not\s+)?in\s+groups\b|\bgroup_names\b")
DYNAMIC = ("import_module", "__import__")


def package_of(path: Path) -> list[str]:
    """Parts of the dotted name of the package of a file of this collection."""
    return [*COLLECTION.split("."), *path.parent.relative_to(ROOT).parts] if path.is_relative_to(ROOT) else []


def is_type_checking(test: ast.expr) -> bool:
    """Whether a condition is TYPE_CHECKING alone."""
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def read_node_imports(node: ast.AST, package: list[str]) -> Iterator[str]:
    """Absolute dotted names that one node of a file in *package* imports; "?" for a name that is computed at run time."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = package[: len(package) - node.level + 1] if node.level else []
        whole = ".".join([*base, *filter(None, [node.module])])
        yield from (f"{whole}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in DYNAMIC:
        name = node.args[0] if node.args else None
        yield str(name.value) if isinstance(name, ast.Constant) else "?"


def imports(path: Path, package: list[str] | None = None) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of each import of a file, without those for type checkers.

    Relative imports are resolved in the *package*; left out, it is that of this collection. A name that is imported from a package includes the
    package: ``from . import x`` may be a file.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and is_type_checking(node.test)
        for statement in node.body
        for child in ast.walk(statement)
    }
    package = package_of(path) if package is None else package
    for node in ast.walk(tree):
        if id(node) not in typing_only:
            yield from ((getattr(node, "lineno", 0), name) for name in read_node_imports(node, package))


def is_below(name: str, places: tuple[str, ...]) -> bool:
    """Whether a dotted name is one of *places* or in one of them."""
    return any(name == place or name.startswith(f"{place}.") for place in places)


def is_standard(name: str) -> bool:
    """Whether a dotted name belongs to the standard library."""
    return name.partition(".")[0] in sys.stdlib_module_names


def problems_of_file(path: Path, allowed: tuple[str, ...], why: str, *, on_controller: bool = False) -> Iterator[str]:
    """Imports of a file beyond the standard library and the *allowed* ones; files of ON_CONTROLLER only with *on_controller*."""
    for line, name in imports(path):
        if is_standard(name):
            continue
        closed = is_below(name, tuple(f"{UTILS}.{each}" for each in ON_CONTROLLER)) and not on_controller
        if closed or not is_below(name, allowed):
            yield f"{path.relative_to(ROOT)}:{line}: imports {name}; {why}"


def module_utils() -> list[Path]:
    """All files of module_utils."""
    return sorted((ROOT / "plugins" / "module_utils").rglob("*.py"))


def problems_of_module_utils() -> Iterator[str]:
    """Forbidden imports of module_utils."""
    for path in module_utils():
        name = ".".join(path.relative_to(ROOT / "plugins" / "module_utils").with_suffix("").parts)
        if name in ON_CONTROLLER:
            yield from problems_of_file(path, ON_CONTROLLER[name], "see ON_CONTROLLER", on_controller=True)
        else:
            yield from problems_of_file(path, MODULE_UTILS, "module_utils use the standard library only")


def problems_of_circles() -> Iterator[str]:
    """A circle of packages of module_utils (a folder or a file there) that import each other; the first one found."""
    uses: dict[str, set[str]] = {}
    for path in module_utils():
        own = path.relative_to(ROOT / "plugins" / "module_utils").with_suffix("").parts[0]
        names = (name[len(UTILS) + 1 :].partition(".")[0] for _line, name in imports(path) if is_below(name, (UTILS,)))
        uses.setdefault(own, set()).update(set(names) - {own, ""})
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        yield f"plugins/module_utils: packages import each other: {' <- '.join(error.args[1])}; move what both use below them"


def problems_of_modules() -> Iterator[str]:
    """Imports that a node does not have, and imports of modules beyond module_utils."""
    on_controller = set(api_modules())
    for name in plugin_names("modules"):
        path, inside = ROOT / "plugins" / "modules" / f"{name}.py", name in on_controller
        yield from problems_of_file(
            path, API if inside else NODE, "it is not available where the module runs", on_controller=inside
        )


def list_other_plugins() -> list[Path]:
    """Plugins other than modules, which run in the process of Ansible."""
    folders = ("action", "filter", "lookup", "test", "callback", "inventory", "doc_fragments", "plugin_utils")
    return [path for folder in folders for path in sorted((ROOT / "plugins" / folder).glob("*.py"))]


def problems_of_other_plugins() -> Iterator[str]:
    """Imports of other plugins beyond Ansible, its libraries and module_utils."""
    for path in list_other_plugins():
        # An inventory plugin reads the API on the controller, and so does an action with the module of its name.
        on_controller = path.parent.name in ("inventory", "plugin_utils")
        own_module = (f"{COLLECTION}.plugins.modules.{path.stem}",) if path.parent.name == "action" else ()
        yield from problems_of_file(
            path,
            (*OTHER_PLUGINS, *own_module, *PRELOADS.get(f"{path.parent.name}/{path.name}", ())),
            "a plugin uses Ansible and module_utils, an action also the module of its name",
            on_controller=on_controller,
        )


def problems_of_filters() -> Iterator[str]:
    """Imports at the top of a filter's file beyond the standard library and Ansible: every run loads all filters, and fails with any of them."""
    for path in sorted((ROOT / "plugins" / "filter").glob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            for name in read_node_imports(node, package_of(path)):
                if not is_standard(name) and not is_below(name, ("ansible",)):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: imports {name} at its top, for each run with any filter; import it in the function"


def problems_of_roles() -> Iterator[str]:
    """Roles that name an inventory group."""
    for path in sorted(path for role in roles() for ending in ("*.y*ml", "*.j2") for path in role.rglob(ending)):
        for number, text in lines(path):
            if GROUP.search(text) and not text.lstrip().startswith("#"):
                yield f"{path.relative_to(ROOT)}:{number}: names an inventory group; give the hosts by variable or by the play"


def find_test_files(name: str) -> Iterator[Path]:
    """Files of tests/ that an import of *name* loads."""
    parts = name.split(".")
    for number in range(1, len(parts) + 1):
        path = ROOT.joinpath("tests", *parts[:number])
        yield from (each for each in (path.with_name(f"{path.name}.py"), path / "__init__.py") if each.is_file())


def problems_of_scenarios() -> Iterator[str]:
    """Tests of scenarios, and files of tests/ that they import, that import a collection."""
    waiting = [path for path in sorted((ROOT / "molecule").rglob("*.py")) if path.parent.name != "files"]
    known = set(waiting)
    for path in waiting:
        inside = path.is_relative_to(ROOT / "tests")
        for line, name in imports(path, [*path.parent.relative_to(ROOT / "tests").parts] if inside else []):
            if is_below(name, ("ansible_collections",)):
                yield f"{path.relative_to(ROOT)}:{line}: imports {name}; tests of scenarios have no collection on their path"
            new = [each for each in find_test_files(name) if each not in known]
            known.update(new)
            waiting += new


def main() -> int:
    """Check all layers; prints the numbers."""
    found = [*problems_of_module_utils(), *problems_of_circles(), *problems_of_modules(), *problems_of_other_plugins()]
    found += [*problems_of_filters(), *problems_of_roles(), *problems_of_scenarios()]
    counts = f"{len(module_utils())} files of module_utils, {len(plugin_names('modules'))} modules, {len(list_other_plugins())} other plugins"
    return finish("layers", found, f"{counts}, the roles, tests of scenarios")


if __name__ == "__main__":
    sys.exit(main())
