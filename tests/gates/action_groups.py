# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does meta/runtime.yml list, in each action group, exactly the modules that document it? ``python -m gates.action_groups``."""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

from ._common import FQCN, ROOT, finish, plugin_names


def documentation(path: Path) -> dict[str, Any]:
    """The DOCUMENTATION of a module as data, read without importing the module."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["DOCUMENTATION"]:
            return dict(yaml.safe_load(ast.literal_eval(node.value)))
    return {}


def read_documented() -> dict[str, set[str]]:
    """Action group -> modules that name it, in ``attributes.action_group.membership`` or by a fragment with it."""
    fragment = ROOT / "plugins" / "doc_fragments" / "attributes.py"
    groups: dict[str, set[str]] = defaultdict(set)
    for name in plugin_names("modules"):
        doc = documentation(ROOT / "plugins" / "modules" / f"{name}.py")
        fragments = doc.get("extends_documentation_fragment") or []
        fragments = [fragments] if isinstance(fragments, str) else fragments
        for used in (each for each in fragments if each.startswith(f"{FQCN}.attributes.")):
            doc = merge_attributes(doc, constant(fragment, used.rsplit(".", 1)[-1].upper()))
        for group in doc.get("attributes", {}).get("action_group", {}).get("membership", []):
            groups[group.removeprefix(f"{FQCN}.")].add(name)
    return groups


def constant(path: Path, name: str) -> dict[str, Any]:
    """One documentation fragment, class attribute *name* of ModuleDocFragment, as data."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == [name]:
            return dict(yaml.safe_load(ast.literal_eval(node.value)))
    return {}


def merge_attributes(doc: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """*doc* with the attributes of a fragment; those of the module override them."""
    return {**doc, "attributes": {**extra.get("attributes", {}), **doc.get("attributes", {})}}


def compare(listed: dict[str, set[str]], documented: dict[str, set[str]]) -> list[str]:
    """Differences between the groups in meta/runtime.yml and those that modules document."""
    found = []
    for group in sorted(listed.keys() | documented.keys()):
        listed_names, documented_names = listed.get(group, set()), documented.get(group, set())
        found += [
            f"{group}: {name} is listed and does not document it" for name in sorted(listed_names - documented_names)
        ]
        found += [f"{group}: {name} documents it and is not listed" for name in sorted(documented_names - listed_names)]
    return found


def main() -> int:
    """Compare; prints the numbers."""
    runtime = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))
    listed = {group: set(names) for group, names in runtime.get("action_groups", {}).items()}
    members = sum(len(names) for names in listed.values())
    return finish("action groups", compare(listed, read_documented()), f"{len(listed)} group(s), {members} modules")


if __name__ == "__main__":
    sys.exit(main())
