# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML files of Kubernetes edited on the controller: all that is not changed stays, to the byte where that is possible.

ruamel.yaml reads and writes. Plain scalars stay the text that they are, whatever a reader of YAML would make of them. What ruamel.yaml
would write otherwise, such as indentation, is not taken over: only the lines that differ by the change go into the file. The result is
read again, and has to mean what was asked. Private to this collection.
"""

from __future__ import annotations

import functools
import io
import itertools
import json
import re
import typing as t
from difflib import SequenceMatcher

from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.patch import revert
from ansible_collections.gpu.kubernetes.plugins.module_utils._yaml_files.errors import EditError
from ansible_collections.gpu.kubernetes.plugins.module_utils._yaml_files.scalars import Plain, equal, is_safe

try:
    from ruamel.yaml import YAML, YAMLError
    from ruamel.yaml.constructor import RoundTripConstructor
    from ruamel.yaml.events import DocumentStartEvent
    from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
    from ruamel.yaml.representer import RoundTripRepresenter
    from ruamel.yaml.resolver import VersionedResolver
except ImportError as error:
    MISSING_LIBRARY: ImportError | None = error
else:
    MISSING_LIBRARY = None

    class _Resolver(VersionedResolver):
        """Takes every plain scalar for text, but for the empty one."""

        def resolve(self, kind: t.Any, value: t.Any, implicit: t.Any) -> t.Any:
            if kind is ScalarNode and value != "" and implicit[0]:
                implicit = (False, True)
            return super().resolve(kind, value, implicit)

    class _Constructor(RoundTripConstructor):
        """Makes Plain of a plain scalar."""

        def construct_scalar(self, node: t.Any) -> t.Any:
            if isinstance(node, ScalarNode) and not node.style:
                return Plain(node.value)
            return super().construct_scalar(node)

    class _Representer(RoundTripRepresenter):
        """Writes Plain as it is, and what this collection adds so that all readers agree on it."""

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

BOM = "\ufeff"
NO_WRAPPING = 1 << 20
_COMMENT = re.compile(r"[ \t]*(?:#.*)?\n?")
# Where another document may begin.
_MARKER = re.compile(r"^(?:---|\.\.\.)", re.MULTILINE)
Change = t.Callable[[t.Any], None]


def _yaml(indents: tuple[int, int] = (2, 0)) -> YAML:
    yaml = YAML(typ="rt", pure=True)
    yaml.Resolver, yaml.Constructor, yaml.Representer = _Resolver, _Constructor, _Representer
    yaml.preserve_quotes = True
    yaml.width = NO_WRAPPING
    mapping, offset = indents
    yaml.indent(mapping=mapping, sequence=offset + 2, offset=offset)
    return yaml


class RoundTrip:
    """The syntax of manifests and configurations: YAML, or JSON as all that begins with a brace."""

    def read(self, data: bytes, what: str) -> t.Any:
        """Return the tree of the first document as plain dictionaries and lists. Raises EditError."""
        text, _newline, _mark = _decoded(data, what)
        return _format(text).tree(text, what)

    def edited(self, data: bytes, what: str, change: Change) -> bytes:
        """Return *data* with the tree of its first document as *change* leaves it. Raises EditError."""
        whole, newline, mark = _decoded(data, what)
        syntax = _format(whole)
        text, rest = syntax.first(whole, what)
        wanted = syntax.tree(text, what)
        change(wanted)
        if equal(wanted, syntax.tree(text, what)):
            return data
        before, after = syntax.changed(text, what, lambda _tree: None), syntax.changed(text, what, change)
        for candidate in (_merged(text, before, _beside_comments(before, after)), _merged(text, before, after), after):
            if candidate is not None and _means(syntax, candidate, wanted):
                return (mark + (candidate + rest).replace("\n", newline)).encode("utf-8")
        raise EditError(
            f"{what} cannot be edited, because what has to be changed is shared through an anchor (& and *) or written in an unusual way:"
            " write it out as plain YAML, then run again."
        )

    def written(self, tree: t.Any) -> bytes:
        """Return a new YAML file that means *tree*."""
        stream = io.StringIO()
        _yaml().dump(tree, stream)
        return stream.getvalue().encode("utf-8")


class _Yaml:
    """The first document of a YAML file."""

    @staticmethod
    def first(text: str, what: str) -> tuple[str, str]:
        """Return the first document, and what follows it: no reader of these files looks at that."""
        if not _MARKER.search(text, 1):
            return text, ""
        second = next(itertools.islice(_document_starts(text, what), 1, None), len(text))
        return text[:second], text[second:]

    @staticmethod
    def tree(text: str, what: str) -> t.Any:
        return _copied(_tree(text, what))

    @staticmethod
    def changed(text: str, what: str, change: Change) -> str:
        yaml, stream = _yaml(_indents(text)), io.StringIO()
        tree = _load(yaml, text, what)
        change(tree)
        yaml.dump(tree, stream)
        return stream.getvalue()


class _Json:
    """The first document of a JSON file."""

    @staticmethod
    def first(text: str, what: str) -> tuple[str, str]:
        start = len(text) - len(text.lstrip())
        try:
            end = json.JSONDecoder().raw_decode(text, start)[1]
        except (ValueError, RecursionError) as exc:
            raise EditError(f"{what} begins as JSON and is none ({exc}): correct it, then run again.") from exc
        end += len(text[end:]) - len(text[end:].lstrip("\n")) if not text[end:].strip() else 0
        return text[:end], text[end:]

    @staticmethod
    def tree(text: str, what: str) -> t.Any:
        return json.loads(_Json.first(text, what)[0], object_pairs_hook=lambda pairs: _unique(pairs, what))

    @staticmethod
    def changed(text: str, what: str, change: Change) -> str:
        indent = re.search(r"\n([ \t]+)\"", text)
        tree = _Json.tree(text, what)
        change(tree)
        separators = None if indent or ": " in text else (",", ":")
        written = json.dumps(tree, indent=indent and indent.group(1), ensure_ascii=False, separators=separators)
        return written + ("\n" if text.endswith("\n") else "")


def _format(text: str) -> type[_Yaml] | type[_Json]:
    return _Json if text.lstrip().startswith("{") else _Yaml


def _unique(pairs: list[tuple[str, t.Any]], what: str) -> dict[str, t.Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise EditError(f"{what} has a key twice in one object: take one out, then run again.")
    return found


def _decoded(data: bytes, what: str) -> tuple[str, str, str]:
    """Return the text with line feeds alone, how its lines end, and the mark that it began with."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise EditError(f"{what} is not written in UTF-8: convert it, then run again.") from exc
    mark = BOM if text.startswith(BOM) else ""
    text = text[len(mark) :]
    if "\r" not in text:
        return text, "\n", mark
    if not text.count("\r") == text.count("\r\n") == text.count("\n"):
        raise EditError(
            f"{what} ends its lines in different ways (CR, LF): make them all alike (dos2unix), then run again."
        )
    return text.replace("\r\n", "\n"), "\r\n", mark


def _refused(what: str, exc: Exception) -> EditError:
    place = getattr(exc, "problem_mark", None)
    problem = " ".join(str(getattr(exc, "problem", None) or exc).split()) or type(exc).__name__
    where = f" in line {place.line + 1}, column {place.column + 1}" if place else ""
    return EditError(f"{what} cannot be read as YAML ({problem}{where}): correct it, then run again.")


def _document_starts(text: str, what: str) -> t.Iterator[int]:
    try:
        for event in _yaml().parse(text):
            if isinstance(event, DocumentStartEvent):
                yield event.start_mark.index
    except (YAMLError, ValueError, RecursionError) as exc:
        raise _refused(what, exc) from exc


def _load(yaml: YAML, text: str, what: str) -> t.Any:
    try:
        return yaml.load(text)
    except (YAMLError, ValueError, RecursionError, NotImplementedError) as exc:
        raise _refused(what, exc) from exc


@functools.lru_cache(maxsize=16)
def _tree(text: str, what: str) -> t.Any:
    """Return the tree of a YAML file. One run looks at the same files again and again, and ruamel.yaml takes its time."""
    return _native(_load(_yaml(), _Yaml.first(text, what)[0], what), what)


def _copied(node: t.Any) -> t.Any:
    if isinstance(node, dict):
        return {key: _copied(value) for key, value in node.items()}
    return [_copied(value) for value in node] if isinstance(node, list) else node


def _native(node: t.Any, what: str, depth: int = 0) -> t.Any:
    """Return a copy in plain dictionaries and lists, in which nothing is shared."""
    if depth > 100:
        raise EditError(f"{what} is nested too deeply, or contains itself: correct it, then run again.")
    if isinstance(node, dict):
        if "<<" in node:
            raise EditError(
                f"{what} uses a merge key (<<), which its readers do not agree on: write it out, then run again."
            )
        return {_text(key, what): _native(value, what, depth + 1) for key, value in node.items()}
    if isinstance(node, list):
        return [_native(value, what, depth + 1) for value in node]
    if isinstance(node, Plain) or node is None:
        return node
    if isinstance(node, str):
        return str(node)
    raise EditError(f"{what} uses a tag (!) of YAML, which is not supported here: write the value out, then run again.")


def _text(key: t.Any, what: str) -> str:
    if not isinstance(key, str):
        raise EditError(f"{what} has a key that is no text: correct it, then run again.")
    return str(key)


def _indents(text: str) -> tuple[int, int]:
    """Return by how much mappings are indented, and dashes from their key, in the first places where there are such."""
    mappings: list[int] = []
    offsets: list[int] = []
    todo, seen = [_yaml().compose(text)], set()
    while todo:
        node = todo.pop(0)
        if id(node) in seen:
            continue  # an alias, maybe of what it is in
        seen.add(id(node))
        if isinstance(node, MappingNode) and not node.flow_style:
            for _key, value in node.value:
                step = value.start_mark.column - node.start_mark.column
                if isinstance(value, MappingNode) and value.value and not value.flow_style:
                    mappings.append(step)
                elif isinstance(value, SequenceNode) and value.value and not value.flow_style:
                    offsets.append(step)
                todo.append(value)
        elif isinstance(node, SequenceNode):
            todo.extend(node.value)
    return next((step for step in mappings if step > 1), 2), next((step for step in offsets if step >= 0), 0)


def _beside_comments(before: str, after: str) -> str:
    """Return *after* with new lines above the comments that they follow, and with the comments that went with the lines above them.

    ruamel.yaml takes a comment for a part of what is above it; people write it above what it is about.
    """
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    result: list[str] = []
    for tag, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        at = len(result)
        if tag == "insert":
            while at and _COMMENT.fullmatch(result[at - 1]):
                at -= 1
        result[at:at] = new[new_start:new_end]
        if tag == "delete":
            result += old[end - len(list(itertools.takewhile(_COMMENT.fullmatch, reversed(old[start:end])))) : end]
    return "".join(result)


def _merged(text: str, before: str, after: str) -> str | None:
    """Return *text* with what makes *before* into *after*; None if that has no place in it."""
    if text == before:
        return after
    merged = revert(after.encode("utf-8"), before.encode("utf-8"), text.encode("utf-8"))
    return None if merged is None else merged.decode("utf-8")


def _means(syntax: type[_Yaml] | type[_Json], text: str, wanted: t.Any) -> bool:
    try:
        return syntax.first(text, "")[1] == "" and equal(syntax.tree(text, ""), wanted)
    except EditError:
        return False
