# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials in a configuration, masked before anyone sees it.

Two ways: by what names of settings sound like, in the syntaxes of `formats`; and by the one name that the caller gives, in YAML.
"""

from __future__ import annotations

import json
import re
import typing as t

from .._document import Document, DocumentError, Format, is_same
from .errors import ConfigError
from .tree import MISSING, Path, Tree, get, leaves
from .yaml_nodes import Syntax, meaning

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


def find_secrets(tree: Tree) -> dict[Path, t.Any]:
    """Return the leaves of *tree* that hold a credential, with the masked value of each."""
    found: dict[Path, t.Any] = {}
    for path, value in leaves(tree).items():
        masked = _mask_value(value, is_secret(path))
        if not is_same(masked, value):
            found[path] = masked
    return found


def list_secrets(tree: t.Any, secret: bool = False) -> set[str]:
    """Return the credentials themselves in *tree*, for a caller who removes them from messages."""
    if isinstance(tree, dict):
        return {word for key, value in tree.items() for word in list_secrets(value, bool(_NAMES.search(str(key))))}
    if isinstance(tree, list):
        return {word for value in tree for word in list_secrets(value, secret)}
    if not isinstance(tree, str) or not tree:
        return set()
    if secret:
        return {tree}
    inside = _from_json(tree)
    if inside is not None:
        return list_secrets(inside)
    return {found.group("word") for pattern in (_VARIABLE, _ASSIGNED, _USERINFO) for found in pattern.finditer(tree)}


def mask_words(text: str, words: t.Iterable[str]) -> str:
    """Replace each of *words* in *text*."""
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, MASK)
    return text


def redact_pair(before: bytes | None, after: bytes | None, syntax: Format) -> tuple[str, str]:
    """Return both contents as text to show: credentials masked, and marked where they differ.

    A content that cannot be parsed, or whose credentials cannot be masked, is withheld.
    """
    try:
        old, new = (None if data is None else syntax.from_bytes(data) for data in (before, after))
    except DocumentError:
        return _withhold(before, syntax), _withhold(after, syntax)
    trees = [document.tree if document else {} for document in (old, new)]
    changed = {
        path
        for path in {**find_secrets(trees[0]), **find_secrets(trees[1])}
        if not is_same(get(trees[0], path), get(trees[1], path)) and get(trees[0], path) is not MISSING
    }
    return _redact(old, set()), _redact(new, changed)


def redact_setting(data: bytes | None, what: str, syntax: Syntax, secret: str) -> str:
    """Return a YAML file as text to show, with the settings named *secret* masked, wherever they are and however they are written.

    A file in which they cannot be masked, or that has the name elsewhere too, such as in a comment, is withheld.
    """
    text = (data or b"").decode("utf-8", "replace")
    if data is None:
        return text
    withheld = f"# {len(data)} bytes, withheld because {secret} cannot be masked in it\n"
    try:
        masked = syntax.edit(data, what, lambda tree: mask_setting(tree, secret)).decode("utf-8", "replace")
        settings = _count(syntax.read(data, what), secret)
    except ConfigError:
        return withheld if secret in text else text
    return masked if masked.count(secret) == settings else withheld


def mask_setting(node: t.Any, secret: str, within: bool = False) -> None:
    """Mask all scalars of the settings named *secret* in a tree of YAML."""
    if not isinstance(node, (dict, list)):
        return
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        inside = within or key == secret
        if isinstance(value, (dict, list)):
            mask_setting(value, secret, inside)
        elif inside and meaning(value) not in (None, ""):
            node[key] = MASK


def _count(node: t.Any, secret: str) -> int:
    if isinstance(node, dict):
        return sum((key == secret) + _count(value, secret) for key, value in node.items())
    return sum(_count(value, secret) for value in node) if isinstance(node, list) else 0


def _withhold(data: bytes | None, syntax: Format) -> str:
    return "" if data is None else f"# {len(data)} bytes, withheld because they are not valid {syntax.name}\n"


def _redact(document: Document | None, changed: set[Path]) -> str:
    if document is None:
        return ""
    try:
        for path, masked in find_secrets(document.tree).items():
            document.set(path, f"{MASK} (changed)" if path in changed and isinstance(masked, str) else masked)
    except DocumentError:
        return "# withheld because it holds credentials that cannot be masked\n"
    text = document.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return _USERINFO.sub(MASK, _COMMENT.sub(_mask_match, text))


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
        return text if is_same(masked, inside) else json.dumps(masked, ensure_ascii=False)
    if _VARIABLE.match(text):
        return _VARIABLE.sub(_mask_match, text)
    return _USERINFO.sub(MASK, _ASSIGNED.sub(_mask_match, text))


def _mask_match(found: re.Match[str]) -> str:
    return found.group("head") + MASK


def _from_json(text: str) -> t.Any:
    """Return what *text* holds if it is an object or list in JSON, else None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
