# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reading and editing JSON, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._document import DocumentError
from ansible_collections.gpu.kubernetes.plugins.module_utils._json import Document, JsonError, dumps, loads

TALL = '{\n  "a": 1,\n  "b": {\n    "c": true\n  }\n}\n'

#: name, text, tree to merge, text after.
MERGE: list[tuple[str, str, dict[str, Any], str]] = [
    ("no text", "", {"a": {"b": "c"}}, '{\n    "a": {\n        "b": "c"\n    }\n}\n'),
    ("only space", " \r\n\r\n", {"a": 1}, '{\r\n    "a": 1\r\n}\r\n'),
    ("empty object", "{}", {"a": 1}, '{\n    "a": 1\n}'),
    ("space around", "\n\n{ }\n\n", {"a": 1}, '\n\n{\n    "a": 1\n}\n\n'),
    ("at the end", TALL, {"x": 1}, '{\n  "a": 1,\n  "b": {\n    "c": true\n  },\n  "x": 1\n}\n'),
    ("deep", TALL, {"b": {"x": {"y": []}}}, TALL.replace("true", 'true,\n    "x": {\n      "y": []\n    }')),
    ("value", TALL, {"b": {"c": "no"}}, TALL.replace("true", '"no"')),
    ("object for a value", TALL, {"a": {"x": 1}}, TALL.replace("1", '{\n    "x": 1\n  }')),
    ("value for an object", TALL, {"b": None}, '{\n  "a": 1,\n  "b": null\n}\n'),
    ("filled", '{\n\t"a": {},\n\t"b": 1\n}', {"a": {"x": 1}}, '{\n\t"a": {\n\t\t"x": 1\n\t},\n\t"b": 1\n}'),
    ("CRLF", '{\r\n  "a": 1\r\n}\r\n', {"b": {"c": 2}}, '{\r\n  "a": 1,\r\n  "b": {\r\n    "c": 2\r\n  }\r\n}\r\n'),
    ("one line", '{"a": 1}\n', {"b": {"c": [1, 2]}}, '{"a": 1, "b": {"c": [1, 2]}}\n'),
    ("packed", '{"a":1}', {"b": {"c": [1, 2]}}, '{"a":1,"b":{"c":[1,2]}}'),
    ("line in a tall one", '{\n "a": {"b": 1}\n}', {"a": {"c": {"d": 1}}}, '{\n "a": {"b": 1, "c": {"d": 1}}\n}'),
    ("blank line", '{\n "a": 1,\n\n \n "b": 2\n}', {"c": 3}, '{\n "a": 1,\n\n \n "b": 2,\n "c": 3\n}'),
    ("comma first", '{ "a": 1\n, "b": 2\n}', {"c": 3}, '{ "a": 1\n, "b": 2\n, "c": 3\n}'),
    ("spaced colon", '{\n "a" : 1\n}', {"b": 2}, '{\n "a" : 1,\n "b" : 2\n}'),
    ("colon on a line", '{\n "a":\n  1\n}', {"b": 2}, '{\n "a":\n  1,\n "b": 2\n}'),
    ("short list", '{\n "a": ["x"]\n}', {"a": ["x", "y"]}, '{\n "a": ["x", "y"]\n}'),
    ("tall list", '{\n "a": [\n  "x"\n ]\n}', {"a": ["x", "y"]}, '{\n "a": [\n  "x",\n  "y"\n ]\n}'),
    ("tall lists", '{\n "a": [\n  1\n ]\n}', {"b": ["y"]}, '{\n "a": [\n  1\n ],\n "b": [\n  "y"\n ]\n}'),
    ("list of objects", "{}", {"a": [{"b": 1}]}, '{\n    "a": [\n        {\n            "b": 1\n        }\n    ]\n}'),
    ("mark", '\ufeff{\n "a": 1\n}', {"a": 2}, '\ufeff{\n "a": 2\n}'),
    ("odd spellings", '{"a": 1.50e+1, "b": "\\u00e9\\/", "c": -0}', {"d": 1}, '{"a": 1.50e+1, "b": "\\u00e9\\/", "c": -0, "d": 1}'),
    ("foreign script", "{}", {"é": "日本 \u2028\x01"}, '{\n    "é": "\\u65e5\\u672c \\u2028\\u0001"\n}'),
    ("half a character", '{"a": "\\ud800"}', {"b": "\ud800"}, '{"a": "\\ud800", "b": "\\ud800"}'),
    ("nothing new", '{"a":  1 }', {"a": 1}, '{"a":  1 }'),
    ("nothing", "", {}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "tree", "after"), [row[1:] for row in MERGE], ids=[row[0] for row in MERGE])
def test_merge(text: str, tree: dict[str, Any], after: str) -> None:
    document = Document.parse(text)
    changed = document.merge(tree)
    assert document.text == after
    assert bool(changed) is (text != after)
    assert document.to_bytes() == after.encode()
    assert document.tree == loads(after.lstrip("\ufeff"))
    assert document.merge(tree) == []


#: name, text, path, text after.
REMOVE: list[tuple[str, str, tuple[str, ...], str]] = [
    ("first", TALL, ("a",), '{\n  "b": {\n    "c": true\n  }\n}\n'),
    ("last", TALL, ("b",), '{\n  "a": 1\n}\n'),
    ("only one", TALL, ("b", "c"), '{\n  "a": 1,\n  "b": {}\n}\n'),
    ("middle", '{"a": 1, "b": 2, "c": 3}', ("b",), '{"a": 1, "c": 3}'),
    ("comma first", '{ "a": 1\n, "b": 2\n}', ("b",), '{ "a": 1\n}'),
    ("not there", TALL, ("x",), TALL),
    ("not there either", TALL, ("a", "x"), TALL),
]


@pytest.mark.parametrize(("text", "path", "after"), [row[1:] for row in REMOVE], ids=[row[0] for row in REMOVE])
def test_remove(text: str, path: tuple[str, ...], after: str) -> None:
    document = Document.parse(text)
    assert document.remove(path) is (text != after)
    assert document.text == after
    assert document.get(path) is None


def test_set_replaces_a_whole_object_and_keeps_what_is_the_same_in_it() -> None:
    document = Document.parse('{\n "a": {"x":   1, "y": 2}, "b": 3\n}')
    assert document.set(("a",), {"x": 1, "z": 4})
    assert document.text == '{\n "a": {"x":   1, "z": 4}, "b": 3\n}'
    assert document.set(("a",), {"new": 4})
    assert document.text == '{\n "a": {"new": 4}, "b": 3\n}'
    assert not document.set(("a", "new"), 4)
    assert document.get(("a", "new")) == 4
    assert document.get(("a", "new", "deeper"), "none") == "none"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("a", "x"), 1),
        (("x",), float("nan")),
        (("x",), [float("inf")]),
        (("x",), {1: 2}),
        (("x",), b"bytes"),
        (("x",), {"y": object()}),
        ((), 5),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(path: tuple[str, ...], value: Any) -> None:
    document = Document.parse(TALL)
    with pytest.raises(JsonError):
        document.set(path, value)
    with pytest.raises(JsonError):
        document.remove(())
    assert document.text == TALL


def deep(levels: int) -> Any:
    return {"a": deep(levels - 1)} if levels else 1


def test_depth_has_a_limit() -> None:
    assert loads(dumps(deep(100))) == deep(100)
    for act in (lambda: dumps(deep(200)), lambda: loads('{"a":' * 5000), lambda: loads('{"a":' + "[" * 5000)):
        with pytest.raises(JsonError, match="nested too deeply"):
            act()


@pytest.mark.parametrize(
    ("data", "words", "place"),
    [
        (b'{"a": 1,}', "a comma before }", (1, 8)),
        (b'{\n "a": [1, ]\n}', "a comma before ]", (2, 9)),
        (b'{"a": 1}\n}\n', "more text after the end", (2, 1)),
        (b'{"a": 1}\n{"b": 2}', "more text after the end", (2, 1)),
        (b'{"a": 1,\r\n "b": 2,\r\n "a": 3}', "the key 'a' for the second time, after line 1", (3, 2)),
        (b'{"x": {"a": 1, "a": 1}}', "the key 'a' for the second time", (1, 16)),
        (b'{"a": 1, "\\u0061": 1}', "the key 'a' for the second time", (1, 10)),
        (b'{\n  // no\n  "a": 1\n}', "a comment, which JSON does not have", (2, 3)),
        (b'{"a": 1 /* no */}', "a comment, which JSON does not have", (1, 9)),
        (b'# no\n{}', "a comment, which JSON does not have", (1, 1)),
        (b"{} // no", "a comment, which JSON does not have", (1, 4)),
        (b"[1]", "has to be an object", (1, 1)),
        (b"\n null", "has to be an object", (2, 2)),
        (b'"text"', "has to be an object", (1, 1)),
        (b"{'a': 1}", "a string needs double quotes", (1, 2)),
        (b"{a: 1}", "expected a key in double quotes", (1, 2)),
        (b'{"a" 1}', "expected : after a key", (1, 6)),
        (b'{"a": 01}', "expected , or }", (1, 8)),
        (b'{"a": True}', "expected a value", (1, 7)),
        (b'{"a": NaN}', "expected a value", (1, 7)),
        (b'{"a": 1e999}', "number too large", (1, 7)),
        (b'{"a": -1e999}', "number too large", (1, 7)),
        (b'{"a": "\t"}', "a control character in a string", (1, 8)),
        (b'{"a": "\\x41"}', "an escape that JSON does not have", (1, 8)),
        (b'{"a": "x', "a string without an end", (1, 7)),
        (b'{"a": [1', "the text ends too early", (1, 9)),
        (b'{"a":', "the text ends too early", (1, 6)),
        (b'{\n "\xc3\xa9": "\xff"}', "a byte that is not UTF-8", (2, 8)),
        ("{}".encode("utf-16"), "UTF-16", (1, 1)),
        (b'\xef\xbb\xbf{\n "a": x}', "expected a value", (2, 7)),
        (b"\x00", "expected a value", (1, 1)),
    ],
)  # fmt: skip
def test_refused_with_place_and_cause(data: bytes, words: str, place: tuple[int, int]) -> None:
    with pytest.raises(DocumentError, match=words) as caught:
        Document.from_bytes(data)
    assert (caught.value.line, caught.value.column) == place
