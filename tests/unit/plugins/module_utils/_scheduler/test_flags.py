# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import flags

CASES: list[tuple[list[str], str, str | None]] = [
    (["--config=/a"], "config", "/a"),
    (["--config", "/a"], "config", "/a"),
    (["--config=/a", "--config=/b"], "config", "/b"),
    (["--kube_api_qps=3"], "kube-api-qps", "3"),
    (["-config=/a"], "config", None),
    (["--profiling", "--config=/a"], "profiling", "true"),
    (["--profiling", "false", "--config=/a"], "profiling", "true"),
    (["--new-switch", "--config=/a"], "config", "/a"),
    (["-v", "2", "--config=/a"], "config", "/a"),
    (["--", "--config=/a"], "config", None),
    (["--config="], "config", ""),
]


@pytest.mark.parametrize(("given", "name", "value"), CASES)
@pytest.mark.parametrize("place", ["command", "args", "image"])
def test_last_value_of_a_flag_is_read(given: list[str], name: str, value: str | None, place: str) -> None:
    container: dict[str, t.Any] = {
        "command": {"command": ["/usr/local/bin/kube-scheduler", *given]},
        "args": {"command": ["kube-scheduler"], "args": given},
        "image": {"args": given},
    }[place]
    assert flags.last(flags.parse(container, "m"), name) == value


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([], ["--config=/n"]),
        (["--v=2"], ["--v=2", "--config=/n"]),
        (["--config=/a", "--v=2", "--config=/b"], ["--config=/n", "--v=2"]),
        (["--config", "/a", "--v=2", "--config", "/b"], ["--config", "/n", "--v=2"]),
        (["--v=2", "--", "x"], ["--v=2", "--config=/n", "--", "x"]),
    ],
)
def test_flag_is_set_once(before: list[str], after: list[str]) -> None:
    container = {"command": ["kube-scheduler", *before]}
    flags.put(container, "config", "/n", "m")
    assert container == {"command": ["kube-scheduler", *after]}


def test_new_flag_is_added_to_the_list_with_flags() -> None:
    container = {"command": ["kube-scheduler"], "args": ["--v=2"]}
    flags.put(container, "config", "/n", "m")
    assert container == {"command": ["kube-scheduler"], "args": ["--v=2", "--config=/n"]}


def test_flags_of_a_wrapper_are_not_those_of_kube_scheduler() -> None:
    container = {"command": ["/go-runner", "--config=/wrapper", "kube-scheduler", "--config=/a"]}
    assert [flag.value for flag in flags.parse(container, "m")] == ["/a"]


@pytest.mark.parametrize(
    "container",
    [
        {},
        {"command": ["/bin/sh", "-c", "exec kube-scheduler --v=2"]},
        {"command": "kube-scheduler"},
        {"command": ["other"]},
    ],
)
def test_other_commands_are_refused(container: dict[str, t.Any]) -> None:
    with pytest.raises(ConfigError, match=r"^m: "):
        flags.parse(container, "m")
