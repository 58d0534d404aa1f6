# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Values that are read, and the positions of errors."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import Document, TomlError, dumps, loads


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x = 0xDEAD_beef", 0xDEADBEEF),
        ("x = 0o755", 0o755),
        ("x = 0b1101", 13),
        ("x = -1_000", -1000),
        ("x = 6.626e-34", 6.626e-34),
        ("x = -inf", float("-inf")),
        ("x = '''\n'a' \\'''", "'a' \\"),
        ('x = """\r\na\\\r\n   b\r\n"""', "ab\n"),
        ('x = """"q""""', '"q"'),
        ('x = "\\u00e9\\U0001F600"', "é😀"),
        ("x = 1979-05-27 07:32:00.5Z", dt.datetime(1979, 5, 27, 7, 32, 0, 500000, dt.timezone.utc)),
        ("x = 07:32:00.1234567", dt.time(7, 32, 0, 123456)),
        ("x = 1979-05-27", dt.date(1979, 5, 27)),
        ("x = [ 1, # one\n 2,\n]", [1, 2]),
        ("x.y.z = { a.b = 1 }", {"y": {"z": {"a": {"b": 1}}}}),
        ("[x.y]\n[x]\nz = 1", {"y": {}, "z": 1}),
        ("[[x]]\n[x.y]\n[[x]]", [{"y": {}}, {}]),
    ],
)
def test_loads_of_each_value(text: str, value: Any) -> None:
    assert loads(text)["x"] == value


@pytest.mark.parametrize("text", ["", "\n", "# only a comment", "\ufeff# marked\r\n", " \t\r\n"])
def test_empty_text_is_an_empty_table(text: str) -> None:
    assert loads(text) == {}


@pytest.mark.parametrize("text", ["x = 07:32", 'x = "\\e\\x41"', "x = {\n a = 1, # one\n}"])
def test_newer_syntax_requires_the_newer_version(text: str) -> None:
    with pytest.raises(TomlError):
        loads(text)
    assert loads(text, version="1.1")


def test_other_version_raises() -> None:
    with pytest.raises(TomlError, match=r"no TOML version '0\.5'"):
        loads("", version="0.5")


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("a = 1\nb = \n", 2, 5, "expected a value"),
        ("a = 1\na = 2\n", 2, 1, "a is defined a second time"),
        ("[a]\n\n  [a]\n", 3, 4, "a is defined a second time"),
        ("[a\n", 1, 3, r"expected \] after the name of a table"),
        ("a 1\n", 1, 3, "expected = after a key"),
        ("a = 1 b = 2\n", 1, 7, "expected the end of the line"),
        ("a = [1 2]\n", 1, 8, "in an array"),
        ('a = "\\q"\n', 1, 6, "unknown escape"),
        ("a = 1\n[a.b]\n", 2, 2, "goes through 'a', which is a value"),
        ("a = {}\n[a.b]\n", 2, 2, "goes through 'a', which is a value"),
        ("[a.b]\n[a]\nb.c = 1\n", 3, 1, "adds to 'b', which is closed"),
        ("a = 2021-02-30\n", 1, 5, "no such day"),
        ("{{ template }}\n", 1, 1, "expected a key"),
        ("a = '\udcff'\n", 1, 6, "not UTF-8"),
    ],
)
def test_errors_point_to_the_place(text: str, line: int, column: int, message: str) -> None:
    with pytest.raises(TomlError, match=message) as caught:
        loads(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).endswith(f"(line {line}, column {column})")


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 100_000,
        "x = " + "{a=" * 100_000,
        "[" + ".".join("a" * 100_000) + "]",
        ".".join("a" * 100_000) + " = 1",
        "x = " + "[" * 90 + "{" + ".".join("a" * 90) + " = 1}" + "]" * 90,
        "x = " + "1" * 1_000_000 + "_",
    ],
)
def test_hostile_input_raises(text: str) -> None:
    with pytest.raises(TomlError):
        loads(text)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "type null"),
        ({1, 2}, "type set"),
        (2**63, "64 bits"),
        ("\udcff", "not UTF-8"),
        ({1: 2}, "key 1 is not a string"),
        (dt.time(1, tzinfo=dt.timezone.utc), "time zone"),
    ],
)
def test_unsupported_value_is_refused(value: Any, message: str) -> None:
    with pytest.raises(TomlError, match=message):
        dumps({"x": value})
    with pytest.raises(TomlError, match=message):
        Document.parse("").set(["x"], value)


def test_cycle_is_refused() -> None:
    cycle: dict[str, Any] = {}
    cycle["x"] = cycle
    with pytest.raises(TomlError, match="too deeply"):
        dumps(cycle)


@pytest.mark.parametrize(("names", "accepted"), [(100, True), (101, False)])
def test_header_of_names_up_to_the_limit_is_read(names: int, accepted: bool) -> None:
    text = f"[{'.'.join(['a'] * names)}]\n"
    if accepted:
        assert dumps(loads(text)) == text
    else:
        with pytest.raises(TomlError, match="too deeply"):
            loads(text)


def test_dumps_is_flat_and_in_order() -> None:
    tree = {"b": {"d": {"e": "x"}, "c": [1.0, True]}, "a": 1, "l": [{"m": {}}, {}]}
    assert dumps(tree) == 'a = 1\n\n[b]\nc = [1.0, true]\n\n[b.d]\ne = "x"\n\n[[l]]\n\n[l.m]\n\n[[l]]\n'


def test_subclasses_of_str_become_plain_strings() -> None:
    class Marked(str):
        pass

    document = Document.parse("")
    document.set([Marked("a")], Marked("b"))
    assert document.get(["a"]).__class__ is str
    assert document.text == 'a = "b"\n'
