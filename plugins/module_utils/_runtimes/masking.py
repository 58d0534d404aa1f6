# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials in a configuration, hidden before a difference is shown.  Private to this collection."""

from __future__ import annotations

import json
import re
import typing as t

from .._document import Document, DocumentError, Format, same
from .formats import TOML
from .trees import MISSING, Path, Tree, get, leaves

MASK = "********"

# How a name ends that sounds like a credential's: of a key, of a variable in a list `env`, of an option or a header.
_NAME = (
    r"(?:[\w.-]*(?:passw(?:or)?ds?|passphrases?|secrets?|tokens?|auth|authorization|bearer|cookies?|credentials?"
    r"|(?:private|secret|access|api|encryption)[_-]?key|[_.-]pwd)|(?:[\w.-]*[_.-])?pass)"
)
_NAMES = re.compile(rf"(?<![\w.-]){_NAME}\Z", re.IGNORECASE)
_VARIABLE = re.compile(rf"\A(?P<head>-*{_NAME}=)(?P<word>.+)\Z", re.IGNORECASE | re.DOTALL)
_ASSIGNED = re.compile(rf"(?P<head>(?<![\w.-]){_NAME}=)(?P<word>[^\s\"'&,;]+)", re.IGNORECASE)
# A name or password in a URL ends at the last @ before the path, the query or the fragment.
_USERINFO = re.compile(r"(?<=://)(?P<word>[^/?#\s\"']+)(?=@)")
_COMMENT = re.compile(
    r"(?m)^(?P<head>(?:[^\n\"'#]|\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*')*#[^\n]*?(?<![\w.-])"
    + _NAME
    + r"[\"']?\s*[=:]\s*)[^\r\n]+",
    re.IGNORECASE,
)


def is_secret(path: Path) -> bool:
    """Whether the leaf at *path* is a credential by its name, or lies in a list or header of such a name."""
    return bool(_NAMES.search(path[-1]))


def secret_leaves(tree: Tree) -> dict[Path, t.Any]:
    """Return the leaves of *tree* that hold a credential, with what to show instead of each."""
    shown: dict[Path, t.Any] = {}
    for path, value in leaves(tree).items():
        masked = _mask_value(value, is_secret(path))
        if not same(masked, value):
            shown[path] = masked
    return shown


def secret_words(tree: t.Any, secret: bool = False) -> set[str]:
    """Return the credentials themselves in *tree*, for a caller who has to take them out of messages."""
    if isinstance(tree, dict):
        return {word for key, value in tree.items() for word in secret_words(value, bool(_NAMES.search(str(key))))}
    if isinstance(tree, list):
        return {word for value in tree for word in secret_words(value, secret)}
    if not isinstance(tree, str) or not tree:
        return set()
    if secret:
        return {tree}
    inside = _from_json(tree)
    if inside is not None:
        return secret_words(inside)
    return {found.group("word") for pattern in (_VARIABLE, _ASSIGNED, _USERINFO) for found in pattern.finditer(tree)}


def hide(text: str, words: t.Iterable[str]) -> str:
    """Replace each of *words* in *text*."""
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, MASK)
    return text


def shown_pair(before: bytes | None, after: bytes | None, syntax: Format = TOML) -> tuple[str, str]:
    """Return both contents as text to show: credentials masked, and marked where they differ.

    A content that cannot be parsed, or whose credentials cannot be masked, is withheld.
    """
    try:
        old, new = (None if data is None else syntax.from_bytes(data) for data in (before, after))
    except DocumentError:
        return _withheld(before, syntax), _withheld(after, syntax)
    trees = [document.tree if document else {} for document in (old, new)]
    changed = {
        path
        for path in {**secret_leaves(trees[0]), **secret_leaves(trees[1])}
        if not same(get(trees[0], path), get(trees[1], path)) and get(trees[0], path) is not MISSING
    }
    return _shown(old, set()), _shown(new, changed)


def _withheld(data: bytes | None, syntax: Format) -> str:
    return "" if data is None else f"# {len(data)} bytes, withheld because they are not valid {syntax.name}\n"


def _shown(document: Document | None, changed: set[Path]) -> str:
    if document is None:
        return ""
    try:
        for path, masked in secret_leaves(document.tree).items():
            document.set(path, f"{MASK} (changed)" if path in changed and isinstance(masked, str) else masked)
    except DocumentError:
        return "# withheld because it holds credentials that cannot be masked\n"
    text = document.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return _USERINFO.sub(MASK, _COMMENT.sub(_masked, text))


def _mask_value(value: t.Any, secret: bool) -> t.Any:
    if isinstance(value, list):
        return [_mask_value(part, secret) for part in value]
    if isinstance(value, dict):
        return {key: _mask_value(part, bool(_NAMES.search(key))) for key, part in value.items()}
    if value in ("", None) or isinstance(value, bool):
        return value
    if secret:
        return MASK
    return _mask_text(value) if isinstance(value, str) else value


def _mask_text(text: str) -> str:
    inside = _from_json(text)
    if inside is not None:
        masked = _mask_value(inside, False)
        return text if same(masked, inside) else json.dumps(masked, ensure_ascii=False)
    if _VARIABLE.match(text):
        return _VARIABLE.sub(_masked, text)
    return _USERINFO.sub(MASK, _ASSIGNED.sub(_masked, text))


def _masked(found: re.Match[str]) -> str:
    return found.group("head") + MASK


def _from_json(text: str) -> t.Any:
    """Return what *text* holds if it is an object or list in JSON, else None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
