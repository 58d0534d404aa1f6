# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text of users and text of nodes.

A user writes a version without quotes, or answers a survey of AWX: ansible-core 2.19 and newer read the answer ``580`` as a number and an empty
answer as nothing, older ones keep the text. What nodes, pods and the API server have written is escaped for messages and for the terminal.
"""

from __future__ import annotations

from typing import Any


class NotTextError(ValueError):
    """The value has lost the text that someone wrote; the message is one sentence with the variable and the remedy."""


def read_text(value: Any, name: str, decimal: bool = False) -> str:
    """The text that someone wrote for the variable *name*: of an integer its digits, of nothing an empty one.

    *decimal* also accepts a number with a point, whose last zeros are lost. Raises NotTextError for every other value.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and decimal:
        return repr(float(value))
    kind = (
        "a truth value"
        if isinstance(value, bool)
        else "a number that may have lost its last digits"
        if isinstance(value, float)
        else "another value"
    )
    raise NotTextError(
        f"{name} is {value!s}, {kind} and not a text; write it in quotes, or a version with all its numbers"
    )


def make_printable(text: Any) -> str:
    """Return the text with an escape such as ``\\x1b`` for each character that is not printable, line feeds and tabs included.

    A terminal executes control characters, and bidirectional ones show a line in another order.
    """
    given = str(text)
    if given.isprintable():
        return given
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in given)
