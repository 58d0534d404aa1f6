# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials in configuration files, parameters and messages, masked before they are shown.

A value is a credential by the name of its setting, variable, option or header, or by what it looks like.
"""

from __future__ import annotations

import json
import re
import typing as t

from .._document import Document, DocumentError, Format, is_same
from .errors import ConfigError
from .tree import MISSING, Tree, get, leaves
from .yaml_nodes import Syntax, is_equal, meaning

MASK = "********"

# Shorter words are in too many others to be removed from messages.
_SHORTEST = 4
# How a name ends that sounds like a credential's: of a key, of a variable in a list `env`, of an option or a header.
_NAME = (
    r"(?:[\w.-]*(?:passw(?:or)?ds?|passphrases?|secrets?|tokens?|auth|authorization|bearer|cookies?|credentials?|jwt|signature"
    r"|headers?|(?:private|secret|access|api|encryption|signing|licen[cs]e|shared|account|master|hmac)[_-]?key|key[_-]?data"
    r"|(?<!by)(?<!com)(?<!over)(?<!under)(?<!sur)(?<!tres)pass|[_.-]pwd)|(?:[\w.-]*[_.-])?(?:pass|pw|pin|sas|sig))"
)
_NAMES = re.compile(rf"(?<![\w.-]){_NAME}\Z", re.IGNORECASE)
# Names of tables and lists in which every value is a credential.
_TABLES = re.compile(r"(?:headers?|credentials?)\Z", re.IGNORECASE)
_OPTION_NAME = re.compile(rf"\A--?{_NAME}\Z", re.IGNORECASE)

# Each pattern has the credential as `word`.
_VARIABLE = re.compile(rf"\A-*{_NAME}=(?P<word>.+)\Z", re.IGNORECASE | re.DOTALL)
_ASSIGNED = re.compile(rf"(?<![\w.-]){_NAME}=\\?[\"']?(?P<word>(?<=\")[^\"]+|(?<=')[^']+|[^\s\"'&,;]+)", re.IGNORECASE)
_AUTHORIZATION = re.compile(
    r"authorization[\"']?[ \t]*[:=][ \t]*[\"']?(?:bearer|basic|token)[ \t]+(?P<word>[^\s\"',]+)", re.IGNORECASE
)
_OPTION = re.compile(rf"(?<!\S)--?{_NAME}[ \t]+(?P<word>[^-\s]\S*)", re.IGNORECASE)
# A name or password in a URL ends at the last @ before the path, the query or the fragment.
_USERINFO = re.compile(r"(?<=://)(?P<word>[^/?#\s\"']+)(?=@)")
# The same without a scheme, as in the address of a proxy; what is before the digest of an image is none.
_BARE_USERINFO = re.compile(
    r"(?<![^\s\"'=,(\[{])(?P<word>[^\s/@:\"'=,]{1,256}:(?!//)[^\s\"',]{1,1024})(?=@(?!sha\d+:)[\w\[])"
)
_JWT = re.compile(r"(?<![\w.-])(?P<word>eyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*)")
_PEM = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?P<word>.+?)(?=-----END|\Z)", re.DOTALL)
_COMMENT = re.compile(rf"(?m)^[^\n#]*#[^\n]*?(?<![\w.-]){_NAME}[\"']?[ \t]*[=:][ \t]*(?P<word>[^\r\n]+)", re.IGNORECASE)

_ANYWHERE = (_OPTION, _USERINFO, _BARE_USERINFO, _JWT, _PEM)
_IN_VALUES = (_ASSIGNED, _AUTHORIZATION, *_ANYWHERE)
_IN_FILES = (_COMMENT, *_ANYWHERE)

#: Returns what a scalar becomes; the second argument is whether it is a credential by a name.
Visit = t.Callable[[t.Any, bool], t.Any]


# -- values


def mask_tree(tree: t.Any) -> t.Any:
    """Return a copy of *tree* (mappings, lists, scalars) with its credentials masked."""
    return _walk(tree, _mask_scalar)


def mask_text(text: str) -> str:
    """Return *text*, a value or a message, with what looks like a credential masked."""
    inside = _from_json(text)
    if inside is not None:
        masked = mask_tree(inside)
        return text if is_same(masked, inside) else json.dumps(masked, ensure_ascii=False)
    return _mask_word(_VARIABLE, text) if _VARIABLE.match(text) else _mask_patterns(_IN_VALUES, text)


def list_secrets(tree: t.Any) -> set[str]:
    """Return the credentials in *tree*, for a caller who removes them from messages."""
    found: set[str] = set()

    def collect(value: t.Any, secret: bool) -> None:
        inside = _from_json(value) if isinstance(value, str) and not secret else None
        if inside is not None:
            _walk(inside, collect)
        elif isinstance(value, str) and secret:
            found.add(value)
        elif isinstance(value, str):
            found.update(match.group("word") for each in (_VARIABLE, *_IN_VALUES) for match in each.finditer(value))

    _walk(tree, collect)
    return {word for word in found if len(word) >= _SHORTEST}


def mask_words(text: str, words: t.Iterable[str]) -> str:
    """Replace each of *words* in *text*."""
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, MASK)
    return text


def _walk(node: t.Any, visit: Visit, secret: bool = False, below: bool = False) -> t.Any:
    """Return a copy of *node* with what *visit* makes of its scalars; *below* a table of credentials, all of them are some."""
    if isinstance(node, dict):
        return {key: _walk(value, visit, *_judge(node, key, below)) for key, value in node.items()}
    if isinstance(node, list):
        return [_walk(part, visit, secret or _follows_option(node, index), below) for index, part in enumerate(node)]
    return visit(node, secret or below)


def _judge(table: t.Mapping[str, t.Any], key: str, below: bool) -> tuple[bool, bool]:
    """Return whether the value at *key* is a credential by its name, and whether everything in it is one."""
    if "name" in table and "value" in table and key in ("name", "value"):
        is_value = key == "value"
        return is_value and bool(_NAMES.search(str(table["name"]))), is_value and below
    inside = below or bool(_TABLES.search(str(key)))
    return bool(_NAMES.search(str(key))), inside


def _follows_option(words: t.Sequence[t.Any], index: int) -> bool:
    """Whether the word at *index* is the value of the option before it."""
    option, word = str(words[index - 1]) if index else "", words[index]
    return isinstance(word, str) and not word.startswith("-") and bool(_OPTION_NAME.match(option))


def _mask_scalar(value: t.Any, secret: bool) -> t.Any:
    if secret:
        plain = meaning(value)
        return value if plain in ("", None) or isinstance(plain, bool) else MASK
    masked = mask_text(value) if isinstance(value, str) else value
    return value if masked == value else masked


def _mask_patterns(patterns: t.Iterable[re.Pattern[str]], text: str) -> str:
    for pattern in patterns:
        text = _mask_word(pattern, text)
    return text


def _mask_word(pattern: re.Pattern[str], text: str) -> str:
    def replace(found: re.Match[str]) -> str:
        start, end = (place - found.start() for place in found.span("word"))
        return found.group()[:start] + MASK + found.group()[end:]

    return pattern.sub(replace, text)


def _from_json(text: str) -> t.Any:
    """Return what *text* holds if it is an object or list in JSON, else None."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# -- files, before and after a change


def redact_pair(before: bytes | None, after: bytes | None, syntax: Format) -> tuple[str, str]:
    """Return both contents (None: no file) as text to show: credentials masked, and marked where they differ.

    A content that cannot be parsed, or whose credentials cannot be masked, is withheld.
    """
    try:
        old, new = (None if data is None else syntax.from_bytes(data) for data in (before, after))
    except DocumentError:
        cause = f"they are not valid {syntax.name}"
        return _withhold(before, cause), _withhold(after, cause)
    former = old.tree if old else MISSING
    return _redact(old, MISSING), _redact(new, former)


def redact_yaml(before: bytes | None, after: bytes | None, what: str, syntax: Syntax) -> tuple[str, str]:
    """Return both contents of the YAML file *what* as redact_pair() does."""
    try:
        old, new = (MISSING if data is None else syntax.read(data, what) for data in (before, after))
    except ConfigError:
        cause = "they cannot be read as YAML"
        return _withhold(before, cause), _withhold(after, cause)
    return _redact_yaml(before, old, MISSING, what, syntax), _redact_yaml(after, new, old, what, syntax)


def _redact(document: Document | None, former: t.Any) -> str:
    if document is None:
        return ""
    tree: Tree = document.tree
    shown = leaves(_mark(mask_tree(tree), tree, former))
    try:
        for path, value in leaves(tree).items():
            if not is_same(shown[path], value):
                document.set(path, shown[path])
    except DocumentError:
        return "# withheld because it holds credentials that cannot be masked\n"
    return _mask_patterns(_IN_FILES, document.text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def _redact_yaml(data: bytes | None, tree: t.Any, former: t.Any, what: str, syntax: Syntax) -> str:
    if data is None:
        return ""
    masked = _mark(mask_tree(tree), tree, former)
    try:
        shown = syntax.edit(data, what, lambda root: _assign(root, masked))
    except ConfigError:
        return _withhold(data, "they hold credentials that cannot be masked")
    return _mask_patterns(_IN_FILES, shown.decode("utf-8", "replace"))


def _mark(masked: t.Any, value: t.Any, former: t.Any) -> t.Any:
    """Return *masked*, with a mark where what is masked of *value* was something else in *former*."""
    if isinstance(value, dict):
        return {key: _mark(masked[key], each, get(former, (key,))) for key, each in value.items()}
    if isinstance(value, list):
        is_alike = isinstance(former, list) and len(former) == len(value)
        return [_mark(*each) for each in zip(masked, value, former if is_alike else [MISSING] * len(value))]
    if former is MISSING or masked is value or is_equal(value, former):
        return masked
    return f"{masked} (changed)"


def _assign(node: t.Any, masked: t.Any) -> None:
    """Make the scalars of a tree of YAML those of *masked* in place."""
    if not isinstance(node, (dict, list)):
        return
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        if isinstance(value, (dict, list)):
            _assign(value, masked[key])
        elif not is_equal(value, masked[key]):
            node[key] = masked[key]


def _withhold(data: bytes | None, cause: str) -> str:
    return "" if data is None else f"# {len(data)} bytes, withheld because {cause}\n"
