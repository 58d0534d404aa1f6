# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""Edits: each row has a text, a request, and the text afterwards."""

from __future__ import annotations

from typing import Any, Callable

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import Document, TomlError, loads

CRI = "io.containerd.grpc.v1.cri"
NESTED = f"""\
version = 2

[plugins]

  [plugins."{CRI}"]
    sandbox_image = "pause:3.8"

    [plugins."{CRI}".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"

      [plugins."{CRI}".containerd.runtimes.runc.options]
        SystemdCgroup = true  # the node uses systemd

  # where everything else is
  [plugins."io.containerd.internal.v1.opt"]
    path = "/opt/containerd"
"""
RUNTIMES = ["plugins", CRI, "containerd", "runtimes"]
NVIDIA = {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}


def test_new_table_has_the_format_of_its_siblings() -> None:
    document = Document.parse(NESTED)
    assert document.merge({"plugins": {CRI: {"containerd": {"runtimes": {"nvidia": NVIDIA}}}}}) == [
        (*RUNTIMES, "nvidia")
    ]
    added = f"""
    [plugins."{CRI}".containerd.runtimes.nvidia]
      runtime_type = "io.containerd.runc.v2"

      [plugins."{CRI}".containerd.runtimes.nvidia.options]
        SystemdCgroup = true
"""
    after = "true  # the node uses systemd\n"
    assert document.text == NESTED.replace(after, after + added)


def test_remove_by_another_process_restores_the_text() -> None:
    document = Document.parse(NESTED)
    document.set([*RUNTIMES, "nvidia"], NVIDIA)
    later = Document.parse(document.text)
    assert later.remove([*RUNTIMES, "nvidia"])
    assert later.text == NESTED


def test_single_quotes_and_flat_headers_are_kept() -> None:
    text = "version = 3\n[plugins.'io.x'.runtimes.runc]\ntype = 'a'\n[plugins.'io.x'.runtimes.runc.options]\nb = true\n"
    document = Document.parse(text)
    document.set(["plugins", "io.x", "runtimes", "nvidia"], {"type": "a", "options": {"c": "d"}})
    assert document.text == text + (
        "[plugins.'io.x'.runtimes.nvidia]\ntype = 'a'\n[plugins.'io.x'.runtimes.nvidia.options]\nc = 'd'\n"
    )


SET = [
    # name, text, path, value, text afterwards
    ("empty file", "", ["a", "b"], 1, "[a]\nb = 1\n"),
    ("comments only", "# c\n", ["a"], 1, "# c\na = 1\n"),
    ("no last line end", "a = 1", ["b"], 2, "a = 1\nb = 2"),
    ("no last line end, table", "a = 1", ["t", "b"], 2, "a = 1\n\n[t]\nb = 2"),
    ("first key before a table", "[t]\n", ["a"], 1, "a = 1\n\n[t]\n"),
    ("first key after a marker", "# managed\n[t]\n", ["a"], 1, "# managed\na = 1\n[t]\n"),
    ("key, not in the sub-table", "[t]\na = 1\n[t.u]\nb = 2\n", ["t", "c"], 3, "[t]\na = 1\nc = 3\n[t.u]\nb = 2\n"),
    ("out of order", "[t.u]\na = 1\n[x]\n[t]\n", ["t", "b"], 2, "[t.u]\na = 1\n[x]\n[t]\nb = 2\n"),
    ("parent without header", "[x]\n[t.u]\na = 1\n", ["t", "b"], 2, "[x]\n[t]\nb = 2\n[t.u]\na = 1\n"),
    ("comment is kept", "a = 1  # one\nb = 2\n", ["a"], 3, "a = 3  # one\nb = 2\n"),
    ("quotes are kept", "a = 'x'\nb = \"y\"\n", ["a"], "z", "a = 'z'\nb = \"y\"\n"),
    ("quotes that do not fit", "a = 'x'\n", ["a"], "it's", 'a = "it\'s"\n'),
    ("hexadecimal neighbour", "a = 0xFF\nb = 1\n", ["b"], 2, "a = 0xFF\nb = 2\n"),
    ("multi-line string", 'a = """\nx\n"""\nb = 1\n', ["a"], "y", 'a = "y"\nb = 1\n'),
    ("dotted keys", "t.a = 1\nb = 2\n", ["t", "c"], 3, "t.a = 1\nt.c = 3\nb = 2\n"),
    ("dotted table", "[r]\nx.a = 1\n", ["r", "y"], {"b": {"c": 2}}, "[r]\nx.a = 1\ny.b.c = 2\n"),
    ("inline", "t = { a = 1 }\n", ["t", "b"], "x", 't = { a = 1, b = "x" }\n'),
    ("inline, empty", "t = {}\n", ["t", "b"], 2, "t = { b = 2 }\n"),
    ("inline, deeper", "t = {u={a=1}}\n", ["t", "u", "b"], 2, "t = {u={a=1, b=2}}\n"),
    ("inline, dotted", "t = { u.a = 1 }\n", ["t", "u", "b"], 2, "t = { u.a = 1, u.b = 2 }\n"),
    ("inline siblings", "[r]\nx = { a = 1 }\n", ["r", "y"], {"b": 2}, "[r]\nx = { a = 1 }\ny = { b = 2 }\n"),
    ("CRLF", "a = 1\r\n[t]\r\n", ["t", "b"], 2, "a = 1\r\n[t]\r\nb = 2\r\n"),
    ("mixed line ends", "a = 1\r\n[t]\nb = 2\n", ["c"], 3, "a = 1\r\nc = 3\r\n[t]\nb = 2\n"),
    ("byte order mark", "\ufeffa = 1\n", ["b"], 2, "\ufeffa = 1\nb = 2\n"),
    ("no spaces", "a=1\n", ["b"], 2, "a=1\nb=2\n"),
    ("tabs", "[a]\n\t[a.b]\n\t\tx = 1\n", ["a", "c"], {"y": 2}, "[a]\n\t[a.b]\n\t\tx = 1\n\t[a.c]\n\t\ty = 2\n"),
    ("quoted key", '"a b" = 1\n', ["c d"], 2, '"a b" = 1\n"c d" = 2\n'),
    ("array of tables", "[[t]]\na = 1\n\n[[t]]\na = 2\n", ["t", 0, "b"], 3, "[[t]]\na = 1\nb = 3\n\n[[t]]\na = 2\n"),
    ("more of an array", "[[t]]\na = 1\n", ["t"], [{"a": 1}, {"a": 2}], "[[t]]\na = 1\n\n[[t]]\na = 2\n"),
    ("less of an array", "[[t]]\na = 1\n\n[[t]]\na = 2\n[x]\n", ["t"], [{"a": 2}], "[[t]]\na = 2\n[x]\n"),
    ("value to table", "[r]\nx = 1\n[s]\n", ["r", "x"], {"a": 1}, "[r]\n[r.x]\na = 1\n[s]\n"),
    ("table to value", "[r]\nb = 1\n\n[r.x]\na = 1\n\n[s]\n", ["r", "x"], 2, "[r]\nb = 1\nx = 2\n\n[s]\n"),
    ("whole table", "[r]\na = 1 # n\nb = 2\n", ["r"], {"a": 1, "c": 3}, "[r]\na = 1 # n\nc = 3\n"),
    ("comment between two removed keys", "[r]\na = 1\n# n\nb = 2\nc = 3\n", ["r"], {"c": 3}, "[r]\n# n\nc = 3\n"),
    ("nothing in an implicit table", "[r.x]\na = 1\n", ["r"], {}, "[r]\n"),
    ("array", 'x = ["a", "b"]\n', ["x"], ["a", "b", "c"], 'x = ["a", "b", "c"]\n'),
    ("array, first", "x = ['b']\n", ["x"], ["a", "b"], "x = ['a', 'b']\n"),
    ("array, out of the middle", "x = [1, 2, 3]\n", ["x"], [1, 3], "x = [1, 3]\n"),
    ("array, last one", "x = [ 1, ]\n", ["x"], [], "x = []\n"),
    ("array, empty", "x = []\n", ["x"], ["a"], 'x = ["a"]\n'),
    ("long array", "x = [\n  1, # one\n  2, # two\n]\n", ["x"], [1, 3, 2], "x = [\n  1, # one\n  3,\n  2, # two\n]\n"),
    ("long array, no comma", "x = [\n  1, # one\n  2 # two\n]\n", ["x"], [1], "x = [\n  1 # one\n]\n"),
    (
        "long array, equal items",
        "x = [\n  1, # one\n  2, # two\n  3, # three\n]\n",
        ["x"],
        [2, 2],
        "x = [\n  2, # one\n  2, # two\n]\n",
    ),
    ("long array, more", "x = [\n  1 # one\n]\n", ["x"], [1, 2, 3], "x = [\n  1, # one\n  2,\n  3\n]\n"),
    ("long array, all items", "x = [\n  1, # one\n  2,\n]\n", ["x"], [], "x = []\n"),
    ("comment above the last item", "x = [\n  # n\n  'a',\n]\n", ["x"], [], "x = [\n  # n\n]\n"),
    ("comment below the last item", "x = [\n  'a#'\n  # n\n]\n", ["x"], [], "x = [\n  # n\n]\n"),
    ("comments between all items", "x = [ # n\n  1, 2,\n  # m\n 3]\n", ["x"], [], "x = [ # n\n   \n  # m\n ]\n"),
    ("comment after the last item", "x = [1, # n\n]\n", ["x"], [], "x = [ # n\n]\n"),
    ("array with a comment only", "x = [\n  # n\n]\n", ["x"], [1], "x = [1\n  # n\n]\n"),
    (
        "the comment above the next table",
        "[a]\nx = 1\n# b is\n[b]\n",
        ["a", "c"],
        {},
        "[a]\nx = 1\n[a.c]\n# b is\n[b]\n",
    ),
]


@pytest.mark.parametrize(("text", "path", "value", "after"), [row[1:] for row in SET], ids=[row[0] for row in SET])
def test_set_of_each_form(text: str, path: list[Any], value: Any, after: str) -> None:
    document = Document.parse(text)
    assert document.set(path, value) is True
    assert document.text == after
    assert document.get(path) == value
    assert document.set(path, value) is False
    assert document.text == after


REMOVE = [
    ("key with its comment", "a = 1\nb = 2 # n\nc = 3\n", ["b"], "a = 1\nc = 3\n"),
    ("comment above is kept", "a = 1\n# about b\nb = 2\n", ["b"], "a = 1\n# about b\n"),
    ("table", "[a]\nx = 1\n\n[b]\ny = 2\n\n[c]\n", ["b"], "[a]\nx = 1\n\n[c]\n"),
    ("table, everywhere", "[a.x]\n[b]\n[a]\nc = 1\n[d]\n[a.y]\n", ["a"], "[b]\n[d]\n"),
    ("comments of a table", "[a]\n# in a\nx = 1\n# after a\n[b]\n", ["a"], "# after a\n[b]\n"),
    ("last table", "[a]\n\n[b]\nx = 1\n", ["b"], "[a]\n"),
    ("last table, no line end", "[a]\r\n\r\n[b]\r\nx = 1", ["b"], "[a]"),
    ("parents that were only named", "x = 1\n\n[a.b.c]\ny = 1\n", ["a", "b", "c"], "x = 1\n"),
    ("parents with a header", "[a]\n[a.b]\ny = 1\n", ["a", "b"], "[a]\n"),
    ("dotted", "a.b.c = 1\na.d = 2\n", ["a", "b"], "a.d = 2\n"),
    ("inline, first", "t = { a = 1, b = 2 }\n", ["t", "a"], "t = { b = 2 }\n"),
    ("inline, last", "t = { a = 1, b = 2 }\n", ["t", "b"], "t = { a = 1 }\n"),
    ("inline, only", "t = { a = 1 }\n", ["t", "a"], "t = {}\n"),
    ("array of tables", "[[t]]\n[t.u]\nx = 1\n[[t]]\n[b]\n", ["t"], "[b]\n"),
    ("multi-line value", "a = [\n 1,\n]\nb = 2\n", ["a"], "b = 2\n"),
]


@pytest.mark.parametrize(("text", "path", "after"), [row[1:] for row in REMOVE], ids=[row[0] for row in REMOVE])
def test_remove_of_each_form(text: str, path: list[Any], after: str) -> None:
    document = Document.parse(text)
    assert document.remove(path) is True
    assert document.text == after
    assert document.remove(path) is False


@pytest.mark.parametrize(
    ("text", "path", "after"),
    [
        ("[a]\n[a.b]\ny = 1\n[c]\n", ["a", "b", "y"], "[c]\n"),
        ("[a]\ny = 1\n[a.b]\nz = 1\n", ["a", "y"], "[a.b]\nz = 1\n"),
        ("[[a]]\ny = 1\n[[a.b]]\n", ["a", 0, "y"], "[[a]]\n[[a.b]]\n"),
        ("t = { u = { a = 1 } }\nb = 1\n", ["t", "u", "a"], "b = 1\n"),
    ],
)
def test_remove_with_prune_removes_empty_parents(text: str, path: list[Any], after: str) -> None:
    document = Document.parse(text)
    document.remove(path, prune=True)
    assert document.text == after


def test_bytes_that_are_not_utf8_are_kept_only_in_comments() -> None:
    data = b"# caf\xe9\r\na = 1 # \xff\r\n"
    document = Document.from_bytes(data)
    document.set(["b"], 2)
    assert document.to_bytes() == data + b"b = 2\r\n"
    for bad in (b"a = '\xe9'\n", b'"\xe9" = 1\n', b'a = """\xe9"""\n'):
        with pytest.raises(TomlError, match="not UTF-8"):
            Document.from_bytes(bad)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["a", "b"], 1, "goes through a value"),
        (["l", 5], 1, "past the end"),
        ([], 1, "a path is"),
        ("abc", 1, "a path is"),
        (["a", None], 1, "a path is"),
    ],
)
def test_invalid_set_raises_and_changes_nothing(path: Any, value: Any, message: str) -> None:
    document = Document.parse("a = 1\nl = [1]\n")
    with pytest.raises(TomlError, match=message):
        document.set(path, value)
    assert document.text == "a = 1\nl = [1]\n"


def test_edit_that_changes_more_than_requested_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import changes

    document = Document.parse("a = 1\n")
    monkeypatch.setattr(changes, "insert", lambda edits, *_requested: edits.replace(0, 0, "b = 2\nc = 3\n"))
    with pytest.raises(TomlError, match="cannot set b: more would change than was requested"):
        document.set(["b"], 2)
    assert document.text == "a = 1\n"
    assert document.tree == {"a": 1}


def test_merge_returns_changes_and_compares_types() -> None:
    document = Document.parse("a = 1\n[t]\nx = 1\ny = [1]\n")
    assert document.merge({"a": 1, "t": {"x": 1.0, "y": [1]}, "u": {"v": {"w": 1}}}) == [("t", "x"), ("u",)]
    assert document.text == "a = 1\n[t]\nx = 1.0\ny = [1]\n\n[u.v]\nw = 1\n".replace("]\n\n[u", "]\n[u")


@pytest.mark.parametrize("text", ["[[a]]\nx = 1\n", "a = [{ x = 1 }]\n", "a = [1, 2]\n"])
def test_set_of_an_element_is_applied_or_refused(text: str) -> None:
    document = Document.parse(text)
    for value in ({"y": 2}, {}, {"x": {"y": [{}]}}):
        try:
            document.set(["a", 0], value)
        except TomlError:
            continue
        assert document.get(["a", 0]) == value


@pytest.mark.parametrize("parse", [Document.parse, loads])
def test_second_byte_order_mark_is_refused(parse: Callable[[str], object]) -> None:
    parse("\ufeffa = 1\n")
    with pytest.raises(TomlError):
        parse("\ufeff\ufeffa = 1\n")


def test_get_of_missing_path_returns_default() -> None:
    document = Document.parse("[a]\nl = [1, { x = 2 }]\n")
    assert document.get(["a", "l", 1, "x"]) == 2
    assert document.get(["a", "m"], "none") == "none"
    assert document.get(["a", "l", 9]) is None
    assert document.get([]) == document.tree


def test_remove_of_a_key_removes_its_new_header() -> None:
    text = "[t.u]\na = 1\n"
    document = Document.parse(text)
    document.set(["t", "b"], 2)
    assert document.text == "[t]\nb = 2\n\n[t.u]\na = 1\n"
    document.remove(["t", "b"])
    assert document.text == text


def test_remove_prunes_tables_of_an_earlier_run() -> None:
    text = "[a]\n\n[b.c]\nx = 1\n"
    earlier = Document.parse(text)
    earlier.set(["a", "n", "m"], 1)
    earlier.set(["b", "n"], 1)
    assert earlier.made == [("a", "n"), ("b",)]
    later = Document.parse(earlier.text)
    later.remove(["b", "n"], prune=earlier.made)
    later.remove(["a", "n", "m"], prune=earlier.made)
    assert later.text == text
