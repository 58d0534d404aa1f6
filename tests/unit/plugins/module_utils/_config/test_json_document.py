# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading and editing JSON files."""

from __future__ import annotations

import json
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.json_document import (
    Document,
    JsonError,
    dumps,
    loads,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.tree import merge
from ansible_collections.gpu.kubernetes.plugins.module_utils._document import DocumentError, is_same

TALL = '{\n  "a": 1,\n  "b": {\n    "c": true\n  }\n}\n'

#: name, text, tree to merge, text after.
MERGE: list[tuple[str, str, dict[str, t.Any], str]] = [
    ("no text", "", {"a": {"b": "c"}}, '{\n    "a": {\n        "b": "c"\n    }\n}\n'),
    ("only space", " \r\n\r\n", {"a": 1}, '{\r\n    "a": 1\r\n}\r\n'),
    ("empty object", "{}", {"a": 1}, '{\n    "a": 1\n}'),
    ("at the end", TALL, {"x": 1}, '{\n  "a": 1,\n  "b": {\n    "c": true\n  },\n  "x": 1\n}\n'),
    ("deep", TALL, {"b": {"x": {"y": []}}}, TALL.replace("true", 'true,\n    "x": {\n      "y": []\n    }')),
    ("value", TALL, {"b": {"c": "no"}}, TALL.replace("true", '"no"')),
    ("value for an object", TALL, {"b": None}, '{\n  "a": 1,\n  "b": null\n}\n'),
    ("tabs", '{\n\t"a": {},\n\t"b": 1\n}', {"a": {"x": 1}}, '{\n\t"a": {\n\t\t"x": 1\n\t},\n\t"b": 1\n}'),
    ("CRLF", '{\r\n  "a": 1\r\n}\r\n', {"b": {"c": 2}}, '{\r\n  "a": 1,\r\n  "b": {\r\n    "c": 2\r\n  }\r\n}\r\n'),
    ("one line", '{"a": 1}\n', {"b": {"c": [1, 2]}}, '{"a": 1, "b": {"c": [1, 2]}}\n'),
    ("packed", '{"a":1}', {"b": {"c": [1, 2]}}, '{"a":1,"b":{"c":[1,2]}}'),
    ("no indentation", '{\n"a": 1\n}', {"b": 2}, '{\n"a": 1,\n"b": 2\n}'),
    ("short list", '{\n "a": ["x"]\n}', {"a": ["x", "y"]}, '{\n "a": ["x", "y"]\n}'),
    ("tall list", '{\n "a": [\n  "x"\n ]\n}', {"a": ["x", "y"]}, '{\n "a": [\n  "x",\n  "y"\n ]\n}'),
    ("list of objects", "{}", {"a": [{"b": 1}]}, '{\n    "a": [\n        {\n            "b": 1\n        }\n    ]\n}'),
    ("other script", '{\n "é": 1\n}', {"b": "日本"}, '{\n "é": 1,\n "b": "日本"\n}'),
    ("escapes", '{"a": "\\ud800"}', {"b": "é"}, '{"a": "\\ud800", "b": "\\u00e9"}'),
    ("nothing new", '{"a":  1 }', {"a": 1}, '{"a":  1 }'),
    ("nothing", "", {}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tree", "after"), [row[1:] for row in MERGE], ids=[row[0] for row in MERGE])
def test_merge_keeps_the_layout(text: str, tree: dict[str, t.Any], after: str) -> None:
    document = Document(text)
    assert document.merge(tree) is (text != after)
    assert document.text == after
    assert Document.from_bytes(document.to_bytes()).tree == document.tree
    assert not document.merge(tree)


@pytest.mark.parametrize(
    ("path", "after"),
    [
        (("a",), '{\n  "b": {\n    "c": true\n  }\n}\n'),
        (("b", "c"), '{\n  "a": 1,\n  "b": {}\n}\n'),
        (("x",), TALL),
        (("a", "x"), TALL),
    ],
)
def test_remove_keeps_the_other_keys(path: tuple[str, ...], after: str) -> None:
    document = Document(TALL)
    assert document.remove(path) is (after != TALL)
    assert document.text == after


def test_set_replaces_a_whole_object() -> None:
    document = Document(TALL)
    assert document.set(("b",), {"d": 4})
    assert document.tree == {"a": 1, "b": {"d": 4}}
    assert not document.set(("b", "d"), 4)


def test_layout_is_kept_by_a_document_without_keys() -> None:
    document = Document(TALL)
    document.remove(("a",))
    document.remove(("b",))
    document.merge({"x": 1})
    assert document.text == '{\n  "x": 1\n}\n'


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("a", "x"), 1),
        (("x",), float("nan")),
        (("x",), {1: 2}),
        (("x",), b"bytes"),
        (("x",), (1, 2)),
        (("x",), "\ud800"),
    ],
)
def test_set_with_invalid_value_raises(path: tuple[str, ...], value: t.Any) -> None:
    document = Document(TALL)
    with pytest.raises(JsonError):
        document.set(path, value)
    assert document.text == TALL


@pytest.mark.parametrize(
    ("data", "place"),
    [
        (b'{\n "a": [1, ]\n}', 2),
        (b'{"a": 1}\n}\n', 2),
        (b'{\n  // no\n  "a": 1\n}', 2),
        (b"# no\n{}", 1),
        (b"[1]", 1),
        (b"{'a': 1}", 1),
        (b'{"a": "x', 1),
        (b'{\n "\xc3\xa9": "\xff"}', 2),
        (b"\xef\xbb\xbf{}", 1),
        ("{}".encode("utf-16"), 1),
    ],
)
def test_invalid_json_is_refused_with_its_line(data: bytes, place: int) -> None:
    with pytest.raises(DocumentError) as caught:
        Document.from_bytes(data)
    assert caught.value.line == place


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"x": {"a": 1, "\\u0061": 1}}', "the key 'a' is in one object twice"),
        ('{"a": NaN}', "NaN is not a value of JSON"),
        ('{"a":' * 100_000, "nested too deeply"),
    ],
)
def test_ambiguous_json_is_refused(text: str, words: str) -> None:
    with pytest.raises(JsonError, match=words):
        loads(text)


VALUES: st.SearchStrategy[t.Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text("aé\n\"[", max_size=4)),
    lambda child: st.one_of(st.lists(child, max_size=3), st.dictionaries(st.sampled_from("abcé"), child, max_size=3)),
    max_leaves=8,
)  # fmt: skip
TREES = st.dictionaries(st.sampled_from("abcé"), VALUES, max_size=4)


@settings(deadline=None, max_examples=50)
@given(TREES, TREES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_merged_document_equals_merged_trees(
    tree: dict[str, t.Any], other: dict[str, t.Any], indent: int | str | None, escaped: bool
) -> None:
    document = Document(json.dumps(tree, indent=indent, ensure_ascii=escaped))
    document.merge(other)
    merge(tree, other)
    assert is_same(loads(document.text), tree)
    assert [*document.tree] == [*tree]
    assert is_same(loads(dumps(tree)), tree)


def test_number_that_python_does_not_read_is_refused() -> None:
    digits = '{"a": ' + "9" * 5000 + "}"
    try:
        json.loads(digits)
    except ValueError:
        with pytest.raises(JsonError, match="digits"):
            loads(digits)
