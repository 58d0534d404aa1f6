# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Has a function of the plugins more than 50 lines, or an expression of a role or playbook more than three filters? ruff counts statements only."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

import jinja2
import yaml
from jinja2 import nodes

from ._common import ROOT, AnsibleLoader, finish

MOST = 50
MOST_FILTERS = 3
#: They change the type of a value, and decide nothing.
CONVERSIONS = {"bool", "default", "int", "length", "list"}
#: Where the parts of a template have their expressions; the bodies of statements have parts of their own.
EXPRESSIONS: dict[type[nodes.Node], str] = {
    nodes.Output: "nodes",
    nodes.If: "test",
    nodes.For: "iter",
    nodes.Assign: "node",
}
#: The keys whose text is an expression without braces.
CONDITIONS = {"changed_when", "failed_when", "that", "until", "when"}


def find_long_functions() -> Iterator[str]:
    """Functions of plugins/ with more than MOST lines, with their decorators left out."""
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                count = (node.end_lineno or node.lineno) - node.lineno + 1
                if count > MOST:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {count} lines; split it to at most {MOST}"


def find_long_expressions() -> Iterator[str]:
    """Expressions of roles/ and playbooks/ with more than MOST_FILTERS filters that are no conversions."""
    for folder in ("roles", "playbooks"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".yml", ".j2"):
                text = path.read_text(encoding="utf-8")
                documents = [text] if path.suffix == ".j2" else list(yaml.load_all(text, AnsibleLoader))
                for template in _find_templates(documents):
                    for filters in _count_filters(template):
                        yield f"{path.relative_to(ROOT)}: {' '.join(template.split())[:120]} has {filters} filters; name a part of it, or write a filter"


def _find_templates(value: object, condition: bool = False) -> Iterator[str]:
    """The templates in a document."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _find_templates(item, key in CONDITIONS)
    elif isinstance(value, list):
        for item in value:
            yield from _find_templates(item, condition)
    elif isinstance(value, str):
        yield value if "{{" in value or "{%" in value or not condition else "{{" + value + "}}"


def _count_filters(template: str) -> Iterator[int]:
    """The filters of each expression that has too many."""
    try:
        tree = jinja2.Environment(autoescape=True).parse(template)
    except jinja2.TemplateSyntaxError:  # Of another language, such as node-feature-discovery's.
        return
    for part in tree.find_all(tuple(EXPRESSIONS)):
        found = getattr(part, EXPRESSIONS[type(part)])
        for expression in found if isinstance(found, list) else [found]:
            count = sum(each.name not in CONVERSIONS for each in nodes.Output([expression]).find_all(nodes.Filter))
            if count > MOST_FILTERS:
                yield count


def main() -> int:
    """Check the plugins, roles and playbooks."""
    found = [*find_long_functions(), *find_long_expressions()]
    return finish("lengths", found, f"functions of at most {MOST} lines, expressions of at most {MOST_FILTERS} filters")


if __name__ == "__main__":
    sys.exit(main())
