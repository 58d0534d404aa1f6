# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import functools
import typing as t

import pytest

pytest.importorskip("ruamel.yaml")

import yaml as pyyaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.yaml_nodes import meaning
from ansible_collections.gpu.kubernetes.plugins.plugin_utils._yaml import RoundTrip

RT = RoundTrip()

# Each line is changed by a round trip through some library.
ODD = """\
%YAML 1.1
---
# head
a: "y"      # right
b: [ 1,2,   3 ]
c:   0o17
d: 10:20
e: null
f:
g: ~
h: 'it''s'
i: "tab\\t"
j: a very long line that is longer than eighty characters and would be folded by a writer that minds the width of lines
k: |-
  block
   more
l: >
  folded
  text
m: 2001-01-01
n: 1_000
o: 012
p: .5
q: {x: 1, "y": [a, b]}
r: on
s:
    deep:
        - one
        -   two:  3

        - three
t:
- x
# tail
"""


def add(tree: t.Any) -> None:
    tree["t"].append("--config=/etc/a.yaml")


def remove(items: int | slice, tree: t.Any) -> None:
    del tree["t"][items]


def test_edit_changes_only_its_lines() -> None:
    after = RT.edit(ODD.encode(), "m", add).decode()
    assert after == ODD.replace("- x\n", "- x\n- --config=/etc/a.yaml\n")


def test_comments_of_others_are_kept() -> None:
    before = "t:\n- x # one\n# two\n\nu: 1\n"
    after = RT.edit(before.encode(), "m", add)
    assert after.decode() == "t:\n- x # one\n- --config=/etc/a.yaml\n# two\n\nu: 1\n"
    for last in (1, slice(1, 2)):
        assert RT.edit(after, "m", functools.partial(remove, last)).decode() == before


def test_unchanged_text_keeps_its_bytes() -> None:
    for data in (ODD.encode(), ODD.replace("\n", "\r\n").encode(), b"", b"# nothing\n", b"\xef\xbb\xbfa: 1"):
        assert RT.edit(data, "m", lambda _tree: None) == data


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: 1\nt: [x]\n", "a: 1\nt: [x, --config=/etc/a.yaml]\n"),
        ("t:\n    - x", "t:\n    - x\n    - --config=/etc/a.yaml\n"),
        ("# head\n---\nt:\n- x\n", "# head\n---\nt:\n- x\n- --config=/etc/a.yaml\n"),
        ('{"t": ["x"]}', '{"t": ["x", "--config=/etc/a.yaml"]}'),
        ('{"t":["x"]}\n', '{"t":["x","--config=/etc/a.yaml"]}\n'),
        (
            '{\n\t"u": "é",\n\t"t": [\n\t\t"x"\n\t]\n}\n',
            '{\n\t"u": "é",\n\t"t": [\n\t\t"x",\n\t\t"--config=/etc/a.yaml"\n\t]\n}\n',
        ),
        ("s: &s [x]\nt: [y]\n", "s: &s [x]\nt: [y, --config=/etc/a.yaml]\n"),
    ],
)
def test_edit_of_each_form(before: str, after: str) -> None:
    assert RT.edit(before.encode(), "m", add).decode() == after


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("s: &s [x]\nt: *s\n", "anchor"),
        ("t: &s [x]\ns: *s\n", "anchor"),
        ("a: &a {x: 1}\nb:\n  <<: *a\n", "merge key"),
        ("a: 1\na: 2\n", "duplicate key"),
        ("a: [\n", "cannot be read as YAML .* in line"),
        ("a: !x 1\n", "tag"),
        ("1: &x\n  ? [a]\n  : b\n", "not text"),
        ("a: 1\r\nb: 2\n", "line ends of Windows"),
        ("\ufeffa: 1\n", "byte order mark"),
        ("a: 1\n---\nb: 1\n", "expected a single document"),
        ('{"a": 1, "a": 2}', "twice"),
        ("{a: 1}", "begins as JSON"),
        ('a: "\\ud800"\n', "surrogates not allowed"),
        ('{"a": "\\ud800"}', "surrogates not allowed"),
        (b"a: \xff", "UTF-8"),
    ],
)
def test_unsupported_text_is_refused(text: str | bytes, message: str) -> None:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(ConfigError, match=f"^m .*{message}"):
        RT.edit(data, "m", add if "t:" in str(data) else lambda tree: tree.update(new=1))


@pytest.mark.parametrize(
    "value",
    [
        "y",
        "No",
        "1e3",
        "0o17",
        "10:20",
        "",
        "null",
        "a: b",
        "# x",
        "0123",
        "5",
        "é",
        "a\nb",
        "-",
        "true",
        "=",
        "5s",
        "*x",
    ],
)
def test_added_text_is_text_for_each_reader(value: str) -> None:
    after = RT.edit(b"a: 1\n", "m", lambda tree: tree.update(new={"k": value}))
    assert pyyaml.safe_load(after) == {"a": 1, "new": {"k": value}}
    assert meaning(RT.read(after, "m")) == {"a": 1, "new": {"k": value}}
    assert pyyaml.safe_load(RT.render({"k": [value]})) == {"k": [value]}


def test_list_that_contains_itself_terminates() -> None:
    with contextlib.suppress(ConfigError):
        RT.edit(b"a: &a [*a]\n", "m", lambda tree: tree.update(new=1))


def test_added_values_keep_their_types() -> None:
    added = {"a": True, "b": 5, "c": [1.5, False], "d": {"e": "x"}}
    assert pyyaml.safe_load(RT.edit(b"z: 1\n", "m", lambda tree: tree.update(added))) == {"z": 1, **added}
