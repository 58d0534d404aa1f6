# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets in YAML files, hidden before a difference is shown. Private to this collection."""

from __future__ import annotations

import typing as t

from .errors import EditError
from .scalars import Syntax, meaning

MASK = "********"


def shown(data: bytes | None, what: str, syntax: Syntax, secret: str) -> str:
    """Return a file as text to show, with the settings named *secret* masked, wherever they are and however they are written.

    A file in which they cannot be masked, or that has the name elsewhere too, such as in a comment, is withheld.
    """
    text = (data or b"").decode("utf-8", "replace")
    if data is None:
        return text
    try:
        masked = syntax.edited(data, what, lambda tree: hide(tree, secret)).decode("utf-8", "replace")
        settings = _count(syntax.read(data, what), secret)
    except EditError:
        return _withheld(data, secret) if secret in text else text
    return masked if masked.count(secret) == settings else _withheld(data, secret)


def hide(node: t.Any, secret: str, within: bool = False) -> None:
    """Mask all scalars of the settings named *secret* in a tree."""
    if not isinstance(node, (dict, list)):
        return
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        inside = within or key == secret
        if isinstance(value, (dict, list)):
            hide(value, secret, inside)
        elif inside and meaning(value) not in (None, ""):
            node[key] = MASK


def _count(node: t.Any, secret: str) -> int:
    if isinstance(node, dict):
        return sum((key == secret) + _count(value, secret) for key, value in node.items())
    return sum(_count(value, secret) for value in node) if isinstance(node, list) else 0


def _withheld(data: bytes, secret: str) -> str:
    return f"# {len(data)} bytes, withheld because {secret} cannot be masked in it\n"
