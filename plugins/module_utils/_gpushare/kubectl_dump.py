# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads nodes and pods that ``kubectl get -o json`` has saved, in one or several lists, as text or as data."""

from __future__ import annotations

import json
from typing import Any, Iterable, Iterator, Mapping

from .extract import NodeShare, PodShare, extract_node, extract_pod


class DumpError(Exception):
    """The input is not nodes and pods; the text is one sentence with cause and remedy."""


def read_dump(*given: Any) -> tuple[list[NodeShare], list[PodShare]]:
    """Return the nodes and the pods of lists of nodes, of pods, or of both and more. Raises SavedError.

    Each is JSON text, a list as the API server sends it, or a sequence of objects or of further lists. Duplicates count once.
    """
    nodes: dict[str, NodeShare] = {}
    pods: dict[tuple[str, str], PodShare] = {}
    for kind, item in _list_objects(given, ""):
        if kind == "Node":
            node = extract_node(item)
            nodes[node.name] = node
        elif kind == "Pod":
            pod = extract_pod(item)
            if pod is not None:
                pods[(pod.namespace, pod.name)] = pod
    if not nodes:
        raise DumpError("The input has no node; save nodes and pods by: kubectl get nodes,pods -A -o json.")
    return list(nodes.values()), list(pods.values())


def _list_objects(given: Any, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (kind, object); *kind* is that of items without a kind."""
    if isinstance(given, str):
        yield from _list_objects(_parse(given), kind)
    elif isinstance(given, Mapping):
        item_kind = str(given.get("kind") or kind)
        if item_kind.endswith("List"):
            yield from _list_items(given.get("items") or [], item_kind[: -len("List")])
        elif item_kind:
            yield item_kind, given
        else:
            raise DumpError(
                "The input has an object without a kind; pass a whole list, as kubectl get -o json writes it."
            )
    elif isinstance(given, Iterable):
        yield from _list_items(given, kind)
    else:
        raise DumpError(
            f"Lists of nodes and pods were expected, not {given!r:.40}; pass the output of kubectl get -o json."
        )


def _list_items(items: Iterable[Any], kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for item in items:
        yield from _list_objects(item, kind)


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DumpError(f"The input is not JSON ({error}); save it by: kubectl get nodes,pods -A -o json.") from None
