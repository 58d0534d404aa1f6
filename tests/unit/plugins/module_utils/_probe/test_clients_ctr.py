# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The output of ctr as data."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import clients
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe.errors import ClientError, CriMissingError
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._probe import samples


def test_query_returns_version_and_readiness() -> None:
    commands: list[list[str]] = []

    def run(command: Any, _seconds: float) -> tuple[int, str, str]:
        commands.append(list(command))
        return 0, samples.CTR_VERSION if command[-1] == "version" else samples.CTR_PLUGINS_2, ""

    answer = clients.query_ctr("/usr/bin/ctr", "/run/c.sock", run)
    assert (answer["source"], answer["runtime_name"], answer["runtime_version"]) == ("ctr", "containerd", "2.1.4")
    assert answer["conditions"]["RuntimeReady"]["status"] is True
    common = ["/usr/bin/ctr", "--address", "/run/c.sock", "--connect-timeout", "5s", "--timeout", "5s"]
    assert commands == [[*common, "version"], [*common, "plugins", "list"]]


@pytest.mark.parametrize("printed", ["", "Client:\n  Version:  1\n", "Server:\n", "Server:\n  Version:\n", "garbage"])
def test_read_version_without_a_server_is_an_error(printed: str) -> None:
    with pytest.raises(ClientError, match="no version"):
        clients.read_ctr_version(printed)


@pytest.mark.parametrize("printed", [samples.CTR_PLUGINS_1, samples.CTR_PLUGINS_2])
def test_check_plugins_accepts_a_plugin_that_runs(printed: str) -> None:
    clients.check_ctr_plugins(printed)


@pytest.mark.parametrize(
    ("printed", "kind", "message"),
    [
        (samples.CTR_PLUGINS_1.replace("linux/amd64    ok", "linux/amd64    error"), CriMissingError, "status error"),
        (
            samples.CTR_PLUGINS_2.replace("cri                      -              ok", "cri - skip"),
            CriMissingError,
            "status skip",
        ),
        (
            samples.CTR_PLUGINS_2.replace("grpc.v1                     cri ", "grpc.v1 x "),
            CriMissingError,
            "no plugin cri",
        ),
        ("TYPE ID PLATFORMS STATUS\nio.containerd.grpc.v1 cri\n", CriMissingError, "no plugin cri"),
        ("", ClientError, "no table"),
        ("garbage\n\n", ClientError, "no table"),
    ],
)
def test_check_plugins_rejects_a_plugin_that_does_not_run(printed: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        clients.check_ctr_plugins(printed)
