# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Are the Chinese pages as new as the English ones? ``python -m gates.translations``, with ``--write PAGE ...`` after a comparison.

A Chinese page has a comment line for each page that it was written against, with the beginning of that page's SHA-256:
``.. Written against guide_sharing.rst at 0123456789ab``. Its lines of code and its names are those of these pages.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

from ._common import ROOT, finish

MARK = re.compile(r"^(?P<start>\.\. |<!-- )Written against (?P<source>\S+) at (?P<digest>[0-9a-f]{12})", re.MULTILINE)
BLOCKS = {
    ".md": re.compile(r"^```\w*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL),
    ".rst": re.compile(r"^(?P<indent> *)\.\. code-block:: .+\n\n(?P<code>(?:(?P=indent) +.*\n|\n)+)", re.MULTILINE),
}
NAMES = {".md": re.compile(r"`([^`\n]+)`"), ".rst": re.compile(r"``(.+?)``", re.DOTALL)}
WRITE = "python -m gates.translations --write"


def list_pages(root: Path) -> list[Path]:
    """The Chinese pages below *root*."""
    return sorted([*root.glob("*.zh-CN.md"), *root.glob("docs/docsite/rst/*_zh.rst")])


def digest_of(path: Path) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def read_code(path: Path) -> list[str]:
    """The lines of the code blocks of a page, without the indentation of a block."""
    found = BLOCKS[path.suffix].finditer(path.read_text(encoding="utf-8"))
    return [line for match in found for line in dedent(match["code"]).splitlines() if line]


def read_names(path: Path) -> list[str]:
    """The literals in the prose of a page: variables, playbooks, commands, messages."""
    prose = BLOCKS[path.suffix].sub("\n", path.read_text(encoding="utf-8"))
    return [" ".join(name.split()) for name in NAMES[path.suffix].findall(prose)]


def problems(page: Path) -> Iterator[str]:
    """What a Chinese page and its sources do not have in common, a sentence each."""
    marks = list(MARK.finditer(page.read_text(encoding="utf-8")))
    if not marks:
        yield f"{page.name}: names no source; add the comment `Written against PAGE at {12 * '0'}`, then run `{WRITE} {page.name}`"
        return
    sources = [page.parent / mark["source"] for mark in marks]
    if missing := [source.name for source in sources if not source.is_file()]:
        yield f"{page.name}: there is no {missing[0]}; correct the line `Written against`"
        return
    for mark, source in zip(marks, sources, strict=True):
        if mark["digest"] != digest_of(source):
            yield f"{page.name}: stale, because {source.name} has changed since; translate the change, then run `{WRITE} {page.name}`"
    where = " or ".join(source.name for source in sources)
    code = {line for source in sources for line in read_code(source)}
    yield from (f"{page.name}: code is not in {where}: {line}" for line in read_code(page) if line not in code)
    text = " ".join(" ".join(source.read_text(encoding="utf-8").split()) for source in sources)
    yield from (
        f"{page.name}: {name} is not in {where}" for name in dict.fromkeys(read_names(page)) if name not in text
    )


def write(page: Path) -> None:
    """Write the present digests of its sources into a page."""
    text = MARK.sub(
        lambda mark: f"{mark['start']}Written against {mark['source']} at {digest_of(page.parent / mark['source'])}",
        page.read_text(encoding="utf-8"),
    )
    page.write_text(text, encoding="utf-8")


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Compare the Chinese pages with their sources, after writing the digests of the named ones."""
    pages = list_pages(root)
    if arguments[:1] == ["--write"]:
        for page in pages:
            if page.name in arguments:
                write(page)
    return finish("translations", (each for page in pages for each in problems(page)), f"{len(pages)} pages")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
