# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the objects of lists, and pods in objects of any kind."""

from __future__ import annotations

from typing import Any, Iterable, Iterator, Mapping

from .model import Document, Workload

DEEPEST = 200


def escape(key: Any) -> str:
    """Return a key as a part of a JSON pointer."""
    return str(key).replace("~", "~0").replace("/", "~1")


def split_list(value: Any, source: str, lines: Mapping[str, int]) -> Iterator[Document]:
    """Yield the object, or the items of a List; nothing for anything else. *lines* are by pointer, see Document."""
    if not isinstance(value, Mapping):
        return
    items = value.get("items")
    if str(value.get("kind") or "").endswith("List") and isinstance(items, list):
        for number, item in enumerate(items):
            prefix = f"/items/{number}"
            kept = {key[len(prefix) :]: line for key, line in lines.items() if key.startswith(prefix)}
            yield from split_list(item, source, kept)
        return
    yield Document(source, value, lines)


def find_workloads(documents: Iterable[Document]) -> Iterator[Workload]:
    """Yield the pods and templates of pods anywhere in objects of any kind, custom resources included."""
    for document in documents:
        yield from _walk(document, document.object, {}, "", 0)


def _walk(document: Document, value: Any, metadata: Mapping[str, Any], pointer: str, depth: int) -> Iterator[Workload]:
    """Look below a value; *metadata* is that of the mapping around it."""
    if depth > DEEPEST:
        return
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _walk(document, item, {}, f"{pointer}/{number}", depth + 1)
    if not isinstance(value, Mapping):
        return
    own = value.get("metadata")
    own = own if isinstance(own, Mapping) else {}
    if _is_pod_spec(value):
        # A template of Argo Workflows has its metadata beside the container.
        yield Workload(document, own or metadata, value, pointer)
        return
    for key, item in value.items():
        yield from _walk(document, item, own, f"{pointer}/{escape(key)}", depth + 1)


def _is_pod_spec(value: Mapping[str, Any]) -> bool:
    containers = value.get("containers")
    single = value.get("container")  # a template of Argo Workflows
    if containers is None and isinstance(single, Mapping):
        return "image" in single
    return (
        isinstance(containers, list)
        and bool(containers)
        and all(
            isinstance(each, Mapping) and "name" in each and ("image" in each or "resources" in each)
            for each in containers
        )
    )
