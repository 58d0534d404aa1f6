# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""The filters from_toml and to_toml: results and errors."""

from __future__ import annotations

import sys
from typing import Any

import pytest

if sys.version_info < (3, 11):
    pytest.skip("filters run on the controller", allow_module_level=True)

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter.from_toml import from_toml
from ansible_collections.gpu.kubernetes.plugins.filter.to_toml import to_toml


def test_toml_round_trip() -> None:
    data = {"version": 3, "plugins": {"io.x": {"args": ["a", "b"], "on": True}}}
    assert from_toml(to_toml(data)) == data


@pytest.mark.parametrize(
    ("given", "version", "message"),
    [
        ("a = 1\nb = ", "1.0", r"as TOML 1\.0: expected a value \(line 2, column 5\)"),
        ("a = 07:32", "1.0", "needs TOML 1.1"),
        ("a = 1", "2.0", "no TOML version '2.0'"),
        (7, "1.0", "was given a value of type int"),
    ],
)
def test_from_toml_with_invalid_input_raises(given: Any, version: str, message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message):
        from_toml(given, version)


@pytest.mark.parametrize(
    ("given", "message"), [({"a": None}, "no value of type null"), ([1], "was given a value of type list")]
)
def test_to_toml_with_invalid_input_raises(given: Any, message: str) -> None:
    with pytest.raises(AnsibleFilterError, match=message):
        to_toml(given)


def test_from_toml_with_version_reads_newer_syntax() -> None:
    assert from_toml("a = {\n b = 1,\n}", version="1.1") == {"a": {"b": 1}}
