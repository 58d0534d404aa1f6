# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guides as Markdown: the documentation tab of Galaxy shows ``docs/*.md``, and nothing in reStructuredText."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from docutils import nodes
from docutils.core import publish_doctree

from .sentences import QUIET

#: The guides that a release has as pages of its own, and their files in ``docs``.
PAGES = {"guide_quickstart": "quickstart.md", "guide_troubleshooting": "troubleshooting.md"}
GUIDES = Path("docs") / "docsite" / "rst"
HEAD = """<!--
Copyright (c) 2026, the gpu.kubernetes authors
SPDX-License-Identifier: GPL-3.0-or-later
-->
"""
LABEL = re.compile(r"^\.\. _(\S+):$", re.MULTILINE)
TITLE = re.compile(r"^(.+)\n(?:=+|-+)$", re.MULTILINE)
REFERENCE = re.compile(r":ref:`(?:(?P<text>[^`]+?)\s+<)?(?P<label>[\w.-]+)>?`")
SPECIAL = re.compile(r"([\\*<|])")
DROPPED = (nodes.comment, nodes.target, nodes.topic)
Labels = Mapping[str, tuple[str, str]]


def read_labels(guides: Path) -> dict[str, tuple[str, str]]:
    """File and title of what each label of the guides stands before."""
    found = {}
    for path in guides.glob("*.rst"):
        text = path.read_text(encoding="utf-8")
        for match in LABEL.finditer(text):
            title = TITLE.search(text, match.end())
            found[match[1]] = (path.stem, title[1] if title else match[1])
    return found


def convert(text: str, labels: Labels) -> str:
    """A guide as Markdown for a page in ``docs``. Raises KeyError for an unknown label, and ValueError for what a page cannot show."""
    tree = publish_doctree(text, settings_overrides={**QUIET, "doctitle_xform": False})
    # docutils does not know the roles of Sphinx, and reports each of them.
    for report in list(tree.findall(nodes.system_message)):
        report.parent.remove(report)
    return HEAD + "\n".join(_render_blocks(tree, labels, 0))


def _render_blocks(parent: nodes.Element, labels: Labels, level: int) -> Iterator[str]:
    """The lines of all blocks below a node; its title, if it is a section, has *level* signs."""
    for node in parent.children:
        if isinstance(node, nodes.section):
            yield from _render_blocks(node, labels, level + 1)
        elif isinstance(node, nodes.title):
            yield from (f"{'#' * level} {_render_inline(node, labels)}", "")
        elif not isinstance(node, DROPPED):
            yield from (*_render_block(node, labels), "")


def _render_block(node: nodes.Node, labels: Labels) -> Iterator[str]:
    """The lines of a paragraph, a list, a table or a block of code."""
    if isinstance(node, nodes.paragraph):
        yield _render_inline(node, labels)
    elif isinstance(node, nodes.literal_block):
        yield from (f"```{node['classes'][-1]}", *node.astext().splitlines(), "```")
    elif isinstance(node, (nodes.bullet_list, nodes.enumerated_list)):
        yield from _render_list(node, labels)
    elif isinstance(node, nodes.table):
        head, *rows = (
            [" ".join(_render_inline(each, labels) for each in cell.children) for cell in row.children]
            for row in node.findall(nodes.row)
        )
        yield from (f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))
    else:
        raise ValueError(f"a page in Markdown cannot have this: {node.astext()[:80]}")


def _render_list(node: nodes.Element, labels: Labels) -> Iterator[str]:
    """The lines of a list. An item of several blocks has an empty line behind it."""
    for number, item in enumerate(node.children, 1):
        mark = "- " if isinstance(node, nodes.bullet_list) else f"{number}. "
        first, *others = list(_render_blocks(item, labels, 0))[:-1]
        indent = " " * len(mark)
        yield from (mark + first, *(f"{indent}{line}".rstrip() for line in others))
        if others:
            yield ""


def _render_inline(node: nodes.Node, labels: Labels) -> str:
    """Text, in one line."""
    if isinstance(node, nodes.Text):
        return SPECIAL.sub(r"\\\1", node.astext().replace("\n", " "))
    if isinstance(node, nodes.literal):
        return "`" + " ".join(node.astext().split()).replace("|", "\\|") + "`"
    if isinstance(node, nodes.problematic) and (match := REFERENCE.fullmatch(node.astext())):
        stem, title = labels[match["label"]]
        return f"[{' '.join((match['text'] or title).split())}]({PAGES.get(stem, f'docsite/rst/{stem}.rst')})"
    content = "".join(_render_inline(child, labels) for child in node.children)
    marks = {nodes.paragraph: "", nodes.title: "", nodes.emphasis: "*", nodes.strong: "**"}
    if type(node) not in marks:
        raise ValueError(f"a page in Markdown cannot have this: {node.astext()[:80]}")
    return f"{marks[type(node)]}{content}{marks[type(node)]}"


def write_pages(folder: Path) -> None:
    """Write the pages of PAGES into ``docs`` of the collection in *folder*."""
    labels = read_labels(folder / GUIDES)
    for stem, name in PAGES.items():
        text = (folder / GUIDES / f"{stem}.rst").read_text(encoding="utf-8")
        (folder / "docs" / name).write_text(convert(text, labels), encoding="utf-8")
