# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What has to be true of every document and every edit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.gpu.kubernetes.plugins.module_utils._document import same
from ansible_collections.gpu.kubernetes.plugins.module_utils._json import Document, JsonError, dumps, loads
from ansible_collections.gpu.kubernetes.plugins.module_utils._json.reader import Node, read
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.trees import merge

RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
NAMES = st.sampled_from(["a", "b", "runtimes", "nvidia", "default-runtime", "", 'q"u', "é", "\\"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
    st.sampled_from(["runc", "a\nb", "//", "}", ","]),
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda child: st.one_of(st.lists(child, max_size=3), st.dictionaries(NAMES, child, max_size=3)),
    max_leaves=8,
)
TREES = st.dictionaries(NAMES, VALUES, max_size=4)
SPACE = st.text(st.sampled_from(" \t\n\r"), max_size=3)
WRITTEN = {
    "packed": lambda tree: json.dumps(tree, separators=(",", ":")),
    "line": json.dumps,
    "tall": lambda tree: json.dumps(tree, indent=2, ensure_ascii=False),
    "tabs": lambda tree: json.dumps(tree, indent="\t").replace("\n", "\r\n") + "\r\n",
}


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A text, in a style that people use or in none at all, and its meaning."""
    tree = draw(TREES)
    style = draw(st.sampled_from([*WRITTEN, "wild"]))
    if style == "wild":
        return draw(SPACE) + wild(draw, tree) + draw(SPACE), tree
    text = WRITTEN[style](tree)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = json.dumps(tree, indent=2)
    return text, tree


def wild(draw: st.DrawFn, value: Any) -> str:
    if isinstance(value, dict):
        items = [f"{json.dumps(name)}{draw(SPACE)}:{draw(SPACE)}{wild(draw, child)}" for name, child in value.items()]
        return "{" + draw(SPACE) + f"{draw(SPACE)},{draw(SPACE)}".join(items) + draw(SPACE) + "}"
    if isinstance(value, list):
        return "[" + draw(SPACE) + ",".join(draw(SPACE) + wild(draw, child) + draw(SPACE) for child in value) + "]"
    return json.dumps(value)


def spelled(text: str) -> dict[tuple[str, ...], str]:
    """How each value is spelled in the text, members of objects one by one."""
    found: dict[tuple[str, ...], str] = {}

    def walk(node: Node, path: tuple[str, ...]) -> None:
        for member in node.members:
            here = (*path, member.name)
            found[here] = text[member.start : member.end]
            walk(member.node, here)

    root = read(text)
    if root is not None:
        walk(root, ())
    return found


@RELAXED
@given(documents())
def test_reads_like_the_standard_library(document: tuple[str, dict[str, Any]]) -> None:
    text, tree = document
    assert same(loads(text), tree)
    assert same(loads(text), loads(dumps(loads(text))))
    assert Document.parse(text).text == text


@RELAXED
@given(st.text(st.sampled_from("ab01.-+e'\"\\[]{},:#/ \n\r\tnultrfs\x00é"), max_size=25))
def test_judges_noise_like_the_standard_library(text: str) -> None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _value in pairs}) != len(pairs):
            raise ValueError("a key twice")
        return dict(pairs)

    try:
        wanted = json.loads(text, object_pairs_hook=once) if text.strip(" \t\n\r") else {}
    except ValueError:
        wanted = None
    if isinstance(wanted, dict):
        assert same(loads(text), wanted)
    else:
        with pytest.raises(JsonError):
            loads(text)


@RELAXED
@given(documents(), TREES)
def test_merge_is_the_merge_of_the_meanings_and_touches_nothing_else(
    document: tuple[str, dict[str, Any]], wanted: dict[str, Any]
) -> None:
    text, tree = document
    edited = Document.parse(text)
    changed = edited.merge(wanted)
    merge(tree, wanted)
    assert same(edited.tree, tree)
    assert same(loads(edited.text), tree)
    assert edited.to_bytes().decode() == edited.text
    before, after = spelled(text), spelled(edited.text)
    for path, spelling in before.items():
        if not any(path[: len(other)] == other or other[: len(path)] == path for other in changed):
            assert after[path] == spelling
    assert [path for path in after if path in before] == [path for path in before if path in after]
    assert edited.text.startswith(text[: text.index("{") + 1])
    assert edited.text.endswith(text[text.rindex("}") :])
    assert edited.merge(wanted) == []


@RELAXED
@given(documents(), NAMES, VALUES)
def test_what_is_added_and_taken_out_again_leaves_the_same_text(
    document: tuple[str, dict[str, Any]], name: str, value: Any
) -> None:
    text, tree = document
    if name in tree or not tree:
        return
    edited = Document.parse(text)
    assert edited.set((name,), value)
    assert edited.remove((name,))
    assert edited.text == text


@RELAXED
@given(documents(), st.data())
def test_remove_takes_out_one_key(document: tuple[str, dict[str, Any]], data: st.DataObject) -> None:
    text, tree = document
    if not tree:
        return
    path = data.draw(st.sampled_from(sorted(spelled(text))))
    edited = Document.parse(text)
    assert edited.remove(path)
    here = tree
    for name in path[:-1]:
        here = here[name]
    del here[path[-1]]
    assert same(edited.tree, tree)
    assert not edited.remove(path)
