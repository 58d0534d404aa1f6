# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A template of which only one marked block is managed, below the line that stands for all that its program renders itself."""

from __future__ import annotations

import re
import typing as t

from ..._config import json_document
from ..._document import DocumentError, Format

#: Renders what the program would write without a template.
BASE = '{{ template "base" . }}'
BLOCK = ("block",)
_BEGIN, _END = "# BEGIN managed by gpu.kubernetes", "# END managed by gpu.kubernetes"
_MANAGED = re.compile(rf"(?:^|(?<=\n))\n?{_BEGIN}\n(.*?){_END}\n", re.DOTALL)


class Document:
    """A text with at most one marked block, which it means as {block: its lines}."""

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def from_bytes(cls, data: bytes) -> Document:
        """Read a file's content. Raises DocumentError if it is not UTF-8."""
        try:
            return cls(data.decode("utf-8"))
        except UnicodeDecodeError as exc:
            raise DocumentError(f"it is not UTF-8 ({exc.reason})") from exc

    @property
    def tree(self) -> dict[str, t.Any]:
        """The meaning as plain data."""
        found = _MANAGED.search(self.text)
        return {BLOCK[0]: found.group(1)} if found else {}

    def set(self, path: t.Sequence[t.Any], value: t.Any) -> bool:
        """Make the block hold *value*; below all else if there is none yet."""
        if tuple(path) != BLOCK or not isinstance(value, str):
            raise DocumentError("only the marked block can be set")
        before = self.text
        block = f"\n{_BEGIN}\n{value}{_END}\n"
        if _MANAGED.search(before):
            self.text = _MANAGED.sub(lambda _found: block, before)
        else:
            start = before if before.strip() else f"{BASE}\n"
            if not start.endswith("\n"):
                raise DocumentError("its last line has no end; add a line break")
            self.text = start + block
        return self.text != before

    def remove(self, path: t.Sequence[t.Any]) -> bool:
        """Take out the block."""
        before = self.text
        if tuple(path) == BLOCK:
            self.text = _MANAGED.sub("", before)
        return self.text != before

    def merge(self, tree: t.Mapping[str, t.Any]) -> object:
        """Set the block of *tree*, if it has one."""
        return [self.set((key,), value) for key, value in tree.items()]

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return self.text.encode("utf-8")


TEMPLATE = Format("a template", "a block", Document.from_bytes, json_document.loads, json_document.dumps)
