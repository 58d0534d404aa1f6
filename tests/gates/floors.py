# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does every floor of the house lean on lower floors only? ``python -m gates.floors``.

playbooks -> roles -> modules -> module_utils -> nothing. Packages of module_utils import no Ansible; what runs on a node imports the
standard library, ``ansible.module_utils`` and this collection; a role names no inventory group, for it gets its hosts from the play.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from ._common import ROOT, api_modules, finish, lines, plugin_names

OURS = "ansible_collections.gpu.kubernetes.plugins.module_utils"
# Single files that are packages in all but name: no Ansible either.
ALONE = {"_files.py", "_snapshot.py"}
GROUP = re.compile(r"\bgroups\s*(\[|\.(?!\w+\())|\bgroup_names\b")


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of each import in a file, relative imports and those for type checkers left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.lineno, node.module


def is_standard(name: str) -> bool:
    """Whether a dotted name belongs to the standard library."""
    return name.partition(".")[0] in sys.stdlib_module_names


def ground_floor() -> list[Path]:
    """Files of module_utils that may import nothing of Ansible."""
    base = ROOT / "plugins" / "module_utils"
    return sorted(path for path in base.rglob("*.py") if path.parent != base or path.name in ALONE)


def problems_of_ground_floor() -> Iterator[str]:
    """Imports that make the ground floor lean on something."""
    for path in ground_floor():
        for line, name in imports(path):
            if not is_standard(name) and not name.startswith(OURS):
                yield f"{path.relative_to(ROOT)}:{line}: imports {name}; this floor has the standard library alone"


def problems_of_modules() -> Iterator[str]:
    """Imports that a node cannot serve, and modules that reach past module_utils."""
    on_controller = set(api_modules())
    for name in plugin_names("modules"):
        path = ROOT / "plugins" / "modules" / f"{name}.py"
        allowed = ("ansible.module_utils", OURS) + (
            ("ansible_collections.kubernetes.core",) if name in on_controller else ()
        )
        for line, imported in imports(path):
            if not is_standard(imported) and not imported.startswith(allowed):
                yield f"{path.relative_to(ROOT)}:{line}: imports {imported}, which is not at hand where the module runs"


def problems_of_roles() -> Iterator[str]:
    """Roles that know the inventory."""
    for path in sorted((ROOT / "roles").rglob("*.y*ml")) + sorted((ROOT / "roles").rglob("*.j2")):
        for number, text in lines(path):
            if GROUP.search(text) and not text.lstrip().startswith("#"):
                yield f"{path.relative_to(ROOT)}:{number}: names an inventory group; give the hosts by variable or by the play"


def main() -> int:
    """Check all floors; prints the numbers."""
    found = [*problems_of_ground_floor(), *problems_of_modules(), *problems_of_roles()]
    seen = f"{len(ground_floor())} files of module_utils, {len(plugin_names('modules'))} modules, the roles"
    return finish("floors", found, seen)


if __name__ == "__main__":
    sys.exit(main())
