# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML files of Kubernetes, edited on the controller: what is not changed stays, to the byte where that is possible.

ruamel.yaml reads and writes. Plain scalars stay the text that they are. Of what ruamel.yaml writes, only the lines that differ by the
change go into the file. The result is read again, and has to mean what was requested. JSON keeps its indentation and order of keys.
"""

from __future__ import annotations

import functools
import io
import itertools
import json
import re
import typing as t

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import json_document
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.patch import compare_lines, revert
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.yaml_nodes import Plain, is_equal, is_safe, meaning
from ansible_collections.gpu.kubernetes.plugins.module_utils._document import DocumentError

try:
    from ruamel.yaml import YAML, YAMLError
    from ruamel.yaml.constructor import RoundTripConstructor
    from ruamel.yaml.nodes import ScalarNode
    from ruamel.yaml.representer import RoundTripRepresenter
    from ruamel.yaml.resolver import VersionedResolver
except ImportError as error:
    MISSING_LIBRARY: ImportError | None = error
else:
    MISSING_LIBRARY = None

    class _Resolver(VersionedResolver):
        """Reads every plain scalar as text, except the empty one."""

        def resolve(self, kind: t.Any, value: t.Any, implicit: t.Any) -> t.Any:
            if kind is ScalarNode and value != "" and implicit[0]:
                implicit = (False, True)
            return super().resolve(kind, value, implicit)

    class _Constructor(RoundTripConstructor):
        """Constructs Plain from a plain scalar."""

        def construct_scalar(self, node: t.Any) -> t.Any:
            if isinstance(node, ScalarNode) and not node.style:
                return Plain(node.value)
            return super().construct_scalar(node)

    class _Representer(RoundTripRepresenter):
        """Writes Plain as it is, and what this collection adds so that all readers read it alike."""

        def plain(self, data: t.Any) -> t.Any:
            return self.represent_scalar("tag:yaml.org,2002:str", str(data))

        def native(self, data: t.Any) -> t.Any:
            return self.represent_scalar("tag:yaml.org,2002:str", json.dumps(data))

        def text(self, data: str) -> t.Any:
            style = None if is_safe(data) else "'" if data.isprintable() else '"'
            return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    _Representer.add_representer(Plain, _Representer.plain)
    _Representer.add_representer(str, _Representer.text)
    for _kind in (bool, int, float):
        _Representer.add_representer(_kind, _Representer.native)

NO_WRAPPING = 1 << 20
_COMMENT = re.compile(r"[ \t]*(?:#.*)?\n?")
# A key with only comments up to its mapping or list, and the indentation of that.
_KEY = r"^( *)[^\s#-].*:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*\1"
_MAPPING = re.compile(_KEY + r"( +)[^\s#-]", re.MULTILINE)
_LIST = re.compile(_KEY + r"( *)- ", re.MULTILINE)
Change = t.Callable[[t.Any], object]


def _yaml(mapping: int = 2, offset: int = 0) -> YAML:
    yaml = YAML(typ="rt", pure=True)
    yaml.Resolver, yaml.Constructor, yaml.Representer = _Resolver, _Constructor, _Representer
    yaml.preserve_quotes = True
    yaml.width = NO_WRAPPING
    yaml.indent(mapping=mapping, sequence=offset + 2, offset=offset)
    return yaml


class RoundTrip:
    """The syntax of manifests and configurations: YAML, or JSON if the text begins with a brace."""

    def read(self, data: bytes, what: str) -> t.Any:
        """Return the tree of the first document as plain dictionaries and lists. Raises ConfigError."""
        return _copy(_tree(data, what))

    def edit(self, data: bytes, what: str, change: Change) -> bytes:
        """Return *data* with the tree as *change* leaves it. Raises ConfigError, also for more than one document."""
        target = self.read(data, what)
        change(target)
        if is_equal(target, self.read(data, what)):
            return data
        text = _text(data, what)
        if _is_json(text):
            return _edit_json(text, what, target)
        if "\r" in text or text.startswith("\ufeff"):
            raise ConfigError(
                f"{what} has line ends of Windows or a byte order mark: convert it (dos2unix --remove-bom), then run again."
            )
        for candidate in _candidates(text, what, change):
            if candidate is not None and self._means(candidate.encode("utf-8"), target):
                return candidate.encode("utf-8")
        raise ConfigError(
            f"{what} cannot be edited, because what has to be changed is shared through an anchor (& and *) or written in an unusual way:"
            " write it out as plain YAML, then run again."
        )

    def render(self, tree: t.Any) -> bytes:
        """Return a new YAML file that means *tree*."""
        stream = io.StringIO()
        _yaml().dump(tree, stream)
        return stream.getvalue().encode("utf-8")

    def _means(self, data: bytes, target: t.Any) -> bool:
        try:
            return is_equal(self.read(data, ""), target)
        except ConfigError:
            return False


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise ConfigError(f"{what} is not written in UTF-8: convert it, then run again.") from exc


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{")


def _edit_json(text: str, what: str, target: t.Any) -> bytes:
    try:
        document = json_document.Document(text)
        document.become(meaning(target))
    except DocumentError as exc:
        raise ConfigError(f"{what} cannot be edited ({exc}): write it as YAML, then run again.") from exc
    return document.to_bytes()


def _explain(what: str, exc: Exception) -> ConfigError:
    place = getattr(exc, "problem_mark", None)
    parts = (getattr(exc, "context", None), getattr(exc, "problem", None))
    problem = " ".join(" ".join(part for part in parts if part).split()) or str(exc) or type(exc).__name__
    where = f" in line {place.line + 1}, column {place.column + 1}" if place else ""
    return ConfigError(f"{what} cannot be read as YAML ({problem}{where}): correct it, then run again.")


def _candidates(text: str, what: str, change: Change) -> t.Iterator[str | None]:
    """Yield texts that may mean the changed tree: first with the lines concerned alone, for each way in which lists are indented."""
    mapping = _MAPPING.search(text)
    step = len(mapping.group(2)) if mapping else 2
    offsets = dict.fromkeys(len(found.group(2)) for found in _LIST.finditer(text)) or {0: None}
    after = ""
    for offset in offsets:
        before = _dump(text, what, step, offset, lambda _tree: None)
        after = _dump(text, what, step, offset, change)
        yield _merge(text, before, _beside_comments(before, after))
    yield after


def _dump(text: str, what: str, step: int, offset: int, change: Change) -> str:
    yaml, stream = _yaml(step, offset), io.StringIO()
    try:
        tree = yaml.load(text)
    except (YAMLError, ValueError) as exc:
        raise _explain(what, exc) from exc
    change(tree)
    yaml.dump(tree, stream)
    return stream.getvalue()


@functools.lru_cache(maxsize=16)
def _tree(data: bytes, what: str) -> t.Any:
    """Return the tree of a file. One run reads the same files several times, and ruamel.yaml is slow."""
    text = _text(data, what)
    try:
        tree = json_document.loads(text) if _is_json(text) else _native(next(_yaml().load_all(text), None), what)
        json.dumps(tree, ensure_ascii=False).encode("utf-8")  # half a surrogate pair can be written as an escape alone
        return tree
    except DocumentError as exc:
        raise ConfigError(f"{what} begins as JSON and is not JSON ({exc}): correct it, then run again.") from exc
    except RecursionError as exc:
        raise ConfigError(f"{what} is nested too deeply, or contains itself: correct it, then run again.") from exc
    except (YAMLError, ValueError, NotImplementedError) as exc:
        raise _explain(what, exc) from exc


def _copy(node: t.Any) -> t.Any:
    if isinstance(node, dict):
        return {key: _copy(value) for key, value in node.items()}
    return [_copy(value) for value in node] if isinstance(node, list) else node


def _native(node: t.Any, what: str) -> t.Any:
    """Return a copy in plain dictionaries and lists, in which nothing is shared."""
    if isinstance(node, dict):
        if "<<" in node:
            raise ConfigError(
                f"{what} uses a merge key (<<), which its readers do not agree on: write it out, then run again."
            )
        if not all(isinstance(key, str) for key in node):
            raise ConfigError(f"{what} has a key that is not text: correct it, then run again.")
        return {str(key): _native(value, what) for key, value in node.items()}
    if isinstance(node, list):
        return [_native(value, what) for value in node]
    if isinstance(node, Plain) or node is None:
        return node
    if isinstance(node, str):
        return str(node)
    raise ConfigError(
        f"{what} uses a tag (!) of YAML, which is not supported here: write the value out, then run again."
    )


def _beside_comments(before: str, after: str) -> str:
    """Return *after* with new lines above the comments that they follow, and with the comments that went with the lines above them.

    ruamel.yaml takes a comment for a part of what is above it; people write it above what it is about.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    result: list[str] = []
    for tag, start, end, new_start, new_end in compare_lines(old, new):
        at = len(result)
        if tag == "insert":
            while at and _COMMENT.fullmatch(result[at - 1]):
                at -= 1
        result[at:at] = new[new_start:new_end]
        if tag == "delete":
            result += old[end - len(list(itertools.takewhile(_COMMENT.fullmatch, reversed(old[start:end])))) : end]
    return "".join(result)


def _merge(text: str, before: str, after: str) -> str | None:
    """Return *text* with what makes *before* into *after*; None if that has no place in it."""
    if text == before:
        return after
    merged = revert(after.encode("utf-8"), before.encode("utf-8"), text.encode("utf-8"))
    return None if merged is None else merged.decode("utf-8")
