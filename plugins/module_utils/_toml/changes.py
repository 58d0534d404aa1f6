# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The smallest edits that bring a document to what is desired, and the text after them."""

from __future__ import annotations

from typing import Any, NamedTuple, Sequence, cast

from .._document import is_same
from .edits import Edits, insert_items
from .nodes import INLINE, Header, Node, Pair, Path, Table, TableArray, Value, lookup, plain
from .place import append_tables, insert, leaves_of
from .style import eol_before, headers_below, layout_for
from .writer import is_table_array, render_value


class Change(NamedTuple):
    """One edit: what to do with what is at ``path``.

    ``remove`` it, or only its header (``unhead``); ``insert`` the keys of ``value`` into it; ``append`` the tables ``value[1]`` before
    number ``value[0]`` of it; ``replace`` it, or ``align`` its items with those of ``value``.
    """

    action: str
    path: Path
    value: Any = None


def differences(node: Node, desired: Any, path: Path) -> list[Change]:
    """The changes that make the node at ``path`` mean ``desired``, those further back in an array first."""
    if is_same(plain(node), desired):
        return []
    if isinstance(node, Table) and isinstance(desired, dict):
        return _table_differences(node, desired, path)
    if isinstance(node, TableArray) and is_table_array(desired):
        return _array_differences(node, desired, path)
    if isinstance(node, Value) and node.items is not None and isinstance(desired, list):
        return [Change("align", path, desired)]
    if isinstance(node, TableArray) or (isinstance(node, Table) and node.kind != INLINE) or isinstance(desired, dict):
        return [Change("remove", path), Change("insert", path[:-1], {path[-1]: desired})]
    return [Change("replace", path, desired)]


def _table_differences(table: Table, desired: dict[str, Any], path: Path) -> list[Change]:
    changes = [Change("remove", (*path, name)) for name in table.children if name not in desired]
    return changes + additions(table, desired, path)


def additions(table: Table, desired: dict[str, Any], path: Path, deep: bool = False) -> list[Change]:
    """The changes that give a table the keys of ``desired`` and leave its other keys; ``deep``: in sub-tables as well."""
    changes: list[Change] = []
    missing: dict[str, Any] = {}
    for name, value in desired.items():
        child = table.children.get(name)
        if child is None:
            missing[name] = value
        elif deep and isinstance(child, Table) and isinstance(value, dict):
            changes.extend(additions(child, value, (*path, name), True))
        else:
            changes.extend(differences(child, value, (*path, name)))
    return [Change("insert", path, missing), *changes] if missing else changes


def _array_differences(array: TableArray, desired: list[dict[str, Any]], path: Path) -> list[Change]:
    changes: list[Change] = []
    have = [plain(item) for item in array.items]
    pairs = align(have, desired)
    added: list[dict[str, Any]] = []
    for old, new in reversed(pairs):
        if old is None:
            added.insert(0, desired[cast(int, new)])
            continue
        if added:
            changes.append(Change("append", path, (old + 1, added)))
            added = []
        if new is None:
            changes.append(Change("remove", (*path, old)))
        else:
            changes.extend(differences(array.items[old], desired[new], (*path, old)))
    if added:  # before all others: there is no place for that, so the array is written as a whole
        return [Change("remove", path), Change("insert", path[:-1], {path[-1]: desired})]
    return changes


def align(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[int | None, int | None]]:
    """Match two lists in order: (old index, new index), with None for what is dropped or added."""
    shortest = min(len(old), len(new))
    head = 0
    while head < shortest and is_same(old[head], new[head]):
        head += 1
    tail = 0
    while tail < shortest - head and is_same(old[-1 - tail], new[-1 - tail]):
        tail += 1
    first = [(index, index) for index in range(head)]
    last = [(len(old) - tail + index, len(new) - tail + index) for index in range(tail)]
    olds, news = list(range(head, len(old) - tail)), list(range(head, len(new) - tail))
    kept = _found_in([new[index] for index in news], [old[index] for index in olds])
    middle: list[tuple[int | None, int | None]]
    if kept is not None:
        there = dict(zip((olds[index] for index in kept), news))
        middle = [(index, there.get(index)) for index in olds]
    else:
        paired = min(len(olds), len(news))
        middle = [
            *zip(olds, news),
            *((index, None) for index in olds[paired:]),
            *((None, index) for index in news[paired:]),
        ]
    return [*first, *middle, *last]


def _found_in(few: list[Any], many: list[Any]) -> list[int] | None:
    """Where the items of ``few`` are in ``many``, in order; None if they are not all there."""
    places: list[int] = []
    start = 0
    for item in few:
        place = next((index for index in range(start, len(many)) if is_same(many[index], item)), None)
        if place is None:
            return None
        places.append(place)
        start = place + 1
    return places


def make(edits: Edits, change: Change) -> None:
    """Enter one change into ``edits``. Raises TomlError."""
    if change.action == "insert":
        insert(edits, change.path, change.value)
    elif change.action == "append":
        append_tables(edits, change.path, *change.value)
    elif change.action == "remove":
        _remove(edits, change.path)
    elif change.action == "unhead":
        _unhead(edits, change.path)
    else:
        node = cast("Value | Table", lookup(edits.syntax.root, change.path))
        if change.action == "align" and isinstance(node, Value):
            _align(edits, node, change.value)
        else:
            edits.replace(node.start, node.end, render_value(change.value, _quote(edits, node)))


def _quote(edits: Edits, node: Any) -> str:
    """The quote of the old value; of its neighbours where it has none."""
    first = edits.text[node.start]
    if first in "'\"":
        return first
    near = [node.pair.section] if node.pair is not None else []
    return layout_for(edits, node.start, near).quote


def _align(edits: Edits, array: Value, desired: list[Any]) -> None:
    items = array.items or []
    have = [plain(item) for item in items]
    quote = layout_for(edits, array.start, []).quote
    strings = [edits.text[item.start] for item in items if edits.text[item.start] in "'\""]
    quote = strings[0] if strings else quote
    pending: list[str] = []
    place = 0
    for old, new in align(have, desired):
        if old is None:
            pending.append(render_value(desired[cast(int, new)], quote))
            continue
        if pending:
            insert_items(edits, array, old, pending, eol_before(edits.text, array.end))
            pending = []
        place = old + 1
        if new is None:
            edits.drop_item(array, old)
        elif not is_same(have[old], desired[new]):
            edits.replace(items[old].start, items[old].end, render_value(desired[new], quote))
    if pending:
        insert_items(edits, array, place, pending, eol_before(edits.text, array.end))


def _remove(edits: Edits, path: Path) -> None:
    node = lookup(edits.syntax.root, path)
    if node is None:
        return
    above = lookup(edits.syntax.root, path[:-1])
    if isinstance(above, Value) and isinstance(path[-1], int):
        edits.drop_item(above, path[-1])
        return
    for leaf in leaves_of(node):
        if leaf.pair is not None:
            drop_pair(edits, leaf.pair, isinstance(node, Table))
    for header in headers_of_node(node):
        edits.drop(header, True)
        for pair in header.table.pairs if header.table is not None else ():
            edits.drop(pair, True)


def _unhead(edits: Edits, path: Path) -> None:
    """Remove a header whose table still exists through tables further down."""
    table = lookup(edits.syntax.root, path)
    if isinstance(table, Table) and table.header is not None:
        edits.drop(table.header, True)


def headers_of_node(node: Node) -> list[Header]:
    """All headers that make a node, and those of everything in it."""
    if isinstance(node, TableArray):
        return [header for item in node.items for header in headers_below(item)]
    return list(headers_below(node)) if isinstance(node, Table) else []


def drop_pair(edits: Edits, pair: Pair, with_comments: bool) -> None:
    """Remove a pair from a section or from braces."""
    if pair.section.kind == INLINE:
        edits.drop_item(pair.section, pair.section.pairs.index(pair))
    else:
        edits.drop(pair, with_comments)
