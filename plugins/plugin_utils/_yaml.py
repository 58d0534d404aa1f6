# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""YAML files of Kubernetes, edited on the controller: all that is not changed stays, to the byte where that is possible.

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
from difflib import SequenceMatcher

from ansible_collections.gpu.kubernetes.plugins.module_utils import _json
from ansible_collections.gpu.kubernetes.plugins.module_utils._document import DocumentError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.patch import revert
from ansible_collections.gpu.kubernetes.plugins.module_utils._yaml_files.errors import EditError
from ansible_collections.gpu.kubernetes.plugins.module_utils._yaml_files.scalars import Plain, equal, is_safe, meaning

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

NO_WRAPPING = 1 << 20
_COMMENT = re.compile(r"[ \t]*(?:#.*)?\n?")
# A key with nothing but comments up to its mapping or list: how far is that indented?
_KEY = r"^( *)[^\s#-].*:[ \t]*(?:#.*)?\n(?:[ \t]*(?:#.*)?\n)*\1"
_MAPPING = re.compile(_KEY + r"( +)[^\s#-]", re.MULTILINE)
_LIST = re.compile(_KEY + r"( *)- ", re.MULTILINE)
Change = t.Callable[[t.Any], None]


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
        """Return the tree of the first document as plain dictionaries and lists. Raises EditError."""
        return _copied(_tree(data, what))

    def edited(self, data: bytes, what: str, change: Change) -> bytes:
        """Return *data* with the tree as *change* leaves it. Raises EditError, also for more than one document."""
        wanted = self.read(data, what)
        change(wanted)
        if equal(wanted, self.read(data, what)):
            return data
        text = _text(data, what)
        if _is_json(text):
            return _json_edited(text, what, wanted)
        if "\r" in text or text.startswith("\ufeff"):
            raise EditError(
                f"{what} has line ends of Windows or a byte order mark: convert it (dos2unix --remove-bom), then run again."
            )
        for candidate in _candidates(text, what, change):
            if candidate is not None and self._means(candidate.encode("utf-8"), wanted):
                return candidate.encode("utf-8")
        raise EditError(
            f"{what} cannot be edited, because what has to be changed is shared through an anchor (& and *) or written in an unusual way:"
            " write it out as plain YAML, then run again."
        )

    def written(self, tree: t.Any) -> bytes:
        """Return a new YAML file that means *tree*."""
        stream = io.StringIO()
        _yaml().dump(tree, stream)
        return stream.getvalue().encode("utf-8")

    def _means(self, data: bytes, wanted: t.Any) -> bool:
        try:
            return equal(self.read(data, ""), wanted)
        except EditError:
            return False


def _text(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as exc:
        raise EditError(f"{what} is not written in UTF-8: convert it, then run again.") from exc


def _is_json(text: str) -> bool:
    return text.lstrip().startswith("{")


def _json_edited(text: str, what: str, wanted: t.Any) -> bytes:
    try:
        document = _json.Document(text)
        document.become(meaning(wanted))
    except DocumentError as exc:
        raise EditError(f"{what} cannot be edited ({exc}): write it as YAML, then run again.") from exc
    return document.to_bytes()


def _refused(what: str, exc: Exception) -> EditError:
    place = getattr(exc, "problem_mark", None)
    parts = (getattr(exc, "context", None), getattr(exc, "problem", None))
    problem = " ".join(" ".join(part for part in parts if part).split()) or str(exc) or type(exc).__name__
    where = f" in line {place.line + 1}, column {place.column + 1}" if place else ""
    return EditError(f"{what} cannot be read as YAML ({problem}{where}): correct it, then run again.")


def _candidates(text: str, what: str, change: Change) -> t.Iterator[str | None]:
    """Yield texts that may mean the changed tree: first with the lines concerned alone, for each way in which lists are indented."""
    mapping = _MAPPING.search(text)
    step = len(mapping.group(2)) if mapping else 2
    offsets = dict.fromkeys(len(found.group(2)) for found in _LIST.finditer(text)) or {0: None}
    after = ""
    for offset in offsets:
        before = _dumped(text, what, step, offset, lambda _tree: None)
        after = _dumped(text, what, step, offset, change)
        yield _merged(text, before, _beside_comments(before, after))
    yield after


def _dumped(text: str, what: str, step: int, offset: int, change: Change) -> str:
    yaml, stream = _yaml(step, offset), io.StringIO()
    try:
        tree = yaml.load(text)
    except (YAMLError, ValueError) as exc:
        raise _refused(what, exc) from exc
    change(tree)
    yaml.dump(tree, stream)
    return stream.getvalue()


@functools.lru_cache(maxsize=16)
def _tree(data: bytes, what: str) -> t.Any:
    """Return the tree of a file. One run reads the same files several times, and ruamel.yaml is slow."""
    text = _text(data, what)
    try:
        if _is_json(text):
            return _json.loads(text)
        return _native(next(_yaml().load_all(text), None), what)
    except DocumentError as exc:
        raise EditError(f"{what} begins as JSON and is not JSON ({exc}): correct it, then run again.") from exc
    except RecursionError as exc:
        raise EditError(f"{what} is nested too deeply, or contains itself: correct it, then run again.") from exc
    except (YAMLError, ValueError, NotImplementedError) as exc:
        raise _refused(what, exc) from exc


def _copied(node: t.Any) -> t.Any:
    if isinstance(node, dict):
        return {key: _copied(value) for key, value in node.items()}
    return [_copied(value) for value in node] if isinstance(node, list) else node


def _native(node: t.Any, what: str) -> t.Any:
    """Return a copy in plain dictionaries and lists, in which nothing is shared."""
    if isinstance(node, dict):
        if "<<" in node:
            raise EditError(
                f"{what} uses a merge key (<<), which its readers do not agree on: write it out, then run again."
            )
        if not all(isinstance(key, str) for key in node):
            raise EditError(f"{what} has a key that is not text: correct it, then run again.")
        return {str(key): _native(value, what) for key, value in node.items()}
    if isinstance(node, list):
        return [_native(value, what) for value in node]
    if isinstance(node, Plain) or node is None:
        return node
    if isinstance(node, str):
        return str(node)
    raise EditError(f"{what} uses a tag (!) of YAML, which is not supported here: write the value out, then run again.")


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
