# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of crictl as data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import clients
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe.errors import ClientError
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._probe import samples


def test_query_returns_the_answer_and_the_configuration() -> None:
    commands: list[list[str]] = []

    def run(command: Any, _seconds: float) -> tuple[int, str, str]:
        commands.append(list(command))
        return 0, samples.CRICTL_VERSION if command[-1] == "version" else samples.CRICTL_INFO_TEXT, ""

    answer, config = clients.query_crictl("/usr/bin/crictl", "/run/c.sock", run)
    assert answer == {
        "source": "crictl",
        "api_version": "v1",
        "runtime_name": "containerd",
        "runtime_version": "v2.1.4",
        "conditions": {
            "RuntimeReady": {"status": True, "reason": "", "message": ""},
            "NetworkReady": {
                "status": False,
                "reason": "NetworkPluginNotReady",
                "message": "Network plugin returns error: cni plugin not initialized",
            },
        },
        "handlers": ["nvidia", "runc"],
    }
    assert config == samples.CRICTL_INFO["config"]
    common = ["/usr/bin/crictl", "--runtime-endpoint", "unix:///run/c.sock", "--timeout", "5s"]
    assert commands == [[*common, "version"], [*common, "info", "--output", "json"]]


@pytest.mark.parametrize("printed", ["", "crictl version v1.34.0\n", "RuntimeName:\n", "\x00\x01"])
def test_read_version_of_garbage_is_an_error(printed: str) -> None:
    with pytest.raises(ClientError, match="RuntimeName"):
        clients.read_crictl_version(printed)


def test_read_version_of_less_has_no_values() -> None:
    version = clients.read_crictl_version("RuntimeName:  cri-o\n")
    assert version == {"api_version": None, "runtime_name": "cri-o", "runtime_version": None}


@pytest.mark.parametrize(
    "printed",
    ["", "no JSON", "[1]", "5", "{}", '{"status": []}', pytest.param("[" * 100_000, id="deep"), '{"status": {}} {}'],
)
def test_read_info_of_garbage_is_an_error(printed: str) -> None:
    with pytest.raises(ClientError, match="crictl info printed"):
        clients.read_crictl_info(printed)


@pytest.mark.parametrize(
    ("status", "conditions"),
    [
        ({}, {}),
        ({"conditions": None}, {}),
        ({"conditions": {"RuntimeReady": True}}, {}),
        ({"conditions": [5, None, {}, {"status": True}]}, {}),
        ({"conditions": [{"type": "A"}]}, {"A": {"status": False, "reason": "", "message": ""}}),
        ({"conditions": [{"type": "A", "status": "true"}]}, {"A": {"status": False, "reason": "", "message": ""}}),
        (
            {"conditions": [{"type": "A", "status": True, "message": None}]},
            {"A": {"status": True, "reason": "", "message": ""}},
        ),
    ],
)
def test_read_conditions_ignores_what_is_not_a_condition(status: dict[str, Any], conditions: dict[str, Any]) -> None:
    assert clients.read_conditions(clients.read_crictl_info(json.dumps({"status": status}))) == conditions


@pytest.mark.parametrize("handlers", [None, {}, "x", [], [None, 5, {}, {"name": ""}]])
def test_read_handlers_ignores_what_is_not_a_handler(handlers: Any) -> None:
    assert clients.read_handlers({"runtimeHandlers": handlers}) == []
