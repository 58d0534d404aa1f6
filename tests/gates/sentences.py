# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Are the sentences of the guides short? ``python -m gates.sentences``; the gate ``docs`` includes it.

It counts the words of each sentence in paragraphs, lists and tables. A literal or a link is one word, and a number is none, since lists of numbers are
data. A semicolon in the cell of a table separates entries. Blocks of code are left out, and so are translated guides.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from docutils.core import publish_doctree

from ._common import ROOT, finish

GUIDES = ROOT / "docs" / "docsite" / "rst"
#: The ends of the names of translated guides.
TRANSLATED = ("_zh",)
#: More words than these are too many.
LIMIT = 25
END = re.compile(r"(?<=[.!?])\s+|(?<=[.!?]\))\s+")
END_IN_CELL = re.compile(END.pattern + r"|(?<=;)\s+")
WORD = re.compile(r"[^\W\d_]")
QUIET = {"report_level": 5, "halt_level": 5, "file_insertion_enabled": False, "raw_enabled": False}


@dataclass(frozen=True)
class Sentence:
    """A sentence of a guide: the line where it begins, its text, and the number of its words."""

    line: int
    text: str
    words: int

    def describe(self, name: str) -> str:
        """Its place, its length and its beginning, in one line."""
        return f"{name}:{self.line}: {self.words} words: {' '.join(self.text.split()[:8])} …"


def read_text(node: nodes.Node) -> str:
    """The text of a paragraph; literals, and roles that only Sphinx knows, are one word each."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, (nodes.literal, nodes.problematic)):
        return "LITERAL"
    return "".join(read_text(child) for child in node.children)


def read_sentences(text: str) -> Iterator[Sentence]:
    """All sentences of a guide in reStructuredText."""
    for paragraph in publish_doctree(text, settings_overrides=QUIET).findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.system_message):
            continue
        content, begin = read_text(paragraph), 0
        pattern = END_IN_CELL if isinstance(paragraph.parent, nodes.entry) else END
        for end in [*(match.end() for match in pattern.finditer(content)), len(content)]:
            sentence = content[begin:end]
            line = (paragraph.line or 0) + content.count("\n", 0, begin)
            yield Sentence(line, " ".join(sentence.split()), sum(bool(WORD.search(word)) for word in sentence.split()))
            begin = end


def find_problems(texts: dict[str, str]) -> list[str]:
    """The long sentences, by the text of each guide."""
    return [
        each.describe(name)
        for name, text in sorted(texts.items())
        for each in read_sentences(text)
        if each.words > LIMIT
    ]


def read_guides(folder: Path) -> dict[str, str]:
    """The text of each guide in English, by the name of its file."""
    paths = [path for path in folder.glob("*.rst") if not path.stem.endswith(TRANSLATED)]
    return {path.name: path.read_text(encoding="utf-8") for path in paths}


def main() -> int:
    """Check all guides; prints what is to be shortened."""
    texts = read_guides(GUIDES)
    return finish("sentences", find_problems(texts), f"{len(texts)} guides")


if __name__ == "__main__":
    sys.exit(main())
