# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads manifests: files, folders, the output of helm or kustomize, and what ``kubectl get -o json`` has saved."""

from __future__ import annotations

import os
from typing import Any, Mapping

from .model import Document
from .walker import DEEPEST, escape, split_list

YAML_MISSING = ""
try:
    import yaml

    class _Constructor(yaml.constructor.SafeConstructor):
        """PyYAML's own does not know the type of a plain ``=``."""

    _Constructor.yaml_constructors = {
        **yaml.constructor.SafeConstructor.yaml_constructors,
        "tag:yaml.org,2002:value": yaml.constructor.SafeConstructor.construct_yaml_str,
    }
except ImportError:  # on a node; the linter runs on the controller, which has PyYAML with Ansible
    YAML_MISSING = "PyYAML is missing; install it with: python3 -m pip install PyYAML"

SUFFIXES = (".yaml", ".yml", ".json")
MOST_BYTES = 256 * 1024 * 1024
# Aliases of YAML can make a short text a very large object. Without them, a text has fewer values than characters.
MOST_VALUES = 5_000_000
MOST_VALUES_PER_CHARACTER = 10


class ReadError(ValueError):
    """A text is not readable as manifests; the message is a sentence with the place and the remedy."""


def find_files(path: str) -> list[str]:
    """Return the path of a file, or of all manifests in a folder, sorted. Raises ReadError."""
    if not os.path.isdir(path):
        return [path]
    found = [
        os.path.join(folder, name)
        for folder, _folders, names in os.walk(path)
        for name in names
        if name.endswith(SUFFIXES)
    ]
    if not found:
        raise ReadError(f"{path} has no file that ends with {', '.join(SUFFIXES)}.")
    return sorted(found)


def read_path(path: str, unreadable: list[str] | None = None) -> list[Document]:
    """Return the objects of a file, or of all manifests in a folder.

    A folder's files that cannot be read are added to *unreadable*, as sentences. Without it, and for a file, raises ReadError.
    """
    found: list[Document] = []
    for name in find_files(path):
        try:
            found += read_file(name)
        except ReadError as error:
            if unreadable is None or name == path:
                raise
            unreadable.append(str(error))
    return found


def read_file(path: str) -> list[Document]:
    """Return the objects of a file. Raises ReadError."""
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ReadError(f"{path} cannot be read ({error.strerror}).") from error
    if len(content) > MOST_BYTES:
        raise ReadError(f"{path} has more than {MOST_BYTES // 1024**2} MiB; split it.")
    try:
        return read_text(content.decode("utf-8-sig"), path)
    except UnicodeDecodeError as error:
        raise ReadError(f"{path} is not UTF-8 text ({error.reason} at byte {error.start}).") from error


def read_text(text: str, source: str) -> list[Document]:
    """Return the objects of a text with one or several documents of YAML or JSON; a List counts as its items. Raises ReadError.

    JSON patches, as kustomize has them, are left out.
    """
    if YAML_MISSING:
        raise ReadError(YAML_MISSING)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    most = min(MOST_VALUES, MOST_VALUES_PER_CHARACTER * len(text))
    documents: list[Document] = []
    others: list[int] = []
    try:
        for node in yaml.compose_all(text, Loader=loader):
            lines: dict[str, int] = {}
            _mark(node, "", lines, most)
            value = _Constructor().construct_document(node)
            documents += split_list(value, source, lines)
            if not isinstance(value, Mapping) and not _is_patch(value):
                others.append(lines.get("", 1))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{source}, line {mark.line + 1}" if mark else source
        hint = (
            "it is a template; render it first (helm template)"
            if "{{" in text
            else getattr(error, "problem", "") or "it is no YAML"
        )
        raise ReadError(f"{place}: {hint}.") from error
    except (RecursionError, ValueError, TypeError) as error:
        raise ReadError(f"{source} cannot be read as manifests ({type(error).__name__}: {error}).") from error
    if others and not documents:
        raise ReadError(f"{source}, line {others[0]}: a document is not a Kubernetes object, which is a mapping.")
    return documents


def _is_patch(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, Mapping) and "op" in each and "path" in each for each in value)
    )


def _mark(node: Any, pointer: str, lines: dict[str, int], most: int) -> None:
    """Record the line of each value, by its pointer; *most* values, else ValueError."""
    if len(lines) >= most or pointer.count("/") > DEEPEST:
        raise ValueError(f"it has more than {most} values, or {DEEPEST} levels")
    lines[pointer] = node.start_mark.line + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                _mark(value, f"{pointer}/{escape(key.value)}", lines, most)
                lines[f"{pointer}/{escape(key.value)}"] = key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            _mark(value, f"{pointer}/{number}", lines, most)
