# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports of Docker and CRI-O over HTTP as data."""

from __future__ import annotations

import json
import socket
import threading
import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import clients, query
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe.errors import QueryError
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._probe import samples

#: As Docker 20.10 answers, shortened.
INFO = {
    "CgroupDriver": "systemd",
    "ContainersRunning": 3,
    "DefaultRuntime": "runc",
    "LiveRestoreEnabled": False,
    "Runtimes": {
        "io.containerd.runc.v2": {"path": "runc"},
        "nvidia": {"path": "/usr/bin/nvidia-container-runtime"},
        "runc": {"path": "runc"},
    },
    "ServerVersion": "20.10.24+dfsg1",
}


def test_query_of_docker_returns_the_common_form() -> None:
    answer, effective = query.query_docker(lambda target: json.dumps(INFO).encode() if target == "/info" else b"")
    assert (answer["runtime_name"], answer["runtime_version"], answer["api_version"]) == (
        "docker",
        "20.10.24+dfsg1",
        None,
    )
    assert answer["conditions"]["RuntimeReady"]["status"] is True
    assert answer["handlers"] == ["io.containerd.runc.v2", "nvidia", "runc"]
    assert (effective["default_runtime"], effective["enable_cdi"]) == ("runc", None)
    assert (effective["live_restore"], effective["containers_running"]) == (False, 3)
    assert effective["runtimes"]["nvidia"] == {
        "type": None,
        "binary": "/usr/bin/nvidia-container-runtime",
        "systemd_cgroup": True,
    }


@pytest.mark.parametrize(("folders", "enabled"), [([], False), (["/etc/cdi"], True)])
def test_query_of_docker_25_reports_cdi(folders: list[str], enabled: bool) -> None:
    result = json.dumps({**INFO, "CDISpecDirs": folders}).encode()
    assert query.query_docker(lambda _target: result)[1]["enable_cdi"] is enabled


@pytest.mark.parametrize("body", [b"no JSON", b"[]", b"\xff"])
def test_query_of_docker_with_garbage_raises(body: bytes) -> None:
    with pytest.raises(QueryError, match="the answer is not"):
        query.query_docker(lambda _target: body)


def test_read_runtimes_of_crio_returns_the_common_form() -> None:
    found = query.read_crio_runtimes(samples.CRIO_CONFIG)
    assert (found["default_runtime"], found["enable_cdi"]) == ("crun", True)
    assert found["runtimes"] == {
        "crun": {"type": "oci", "binary": "/usr/libexec/crio/crun", "systemd_cgroup": True},
        "nvidia": {"type": "oci", "binary": "/usr/bin/nvidia-container-runtime", "systemd_cgroup": True},
    }


@pytest.mark.parametrize("body", [b"\xff", b"a = [", b"a = 1", b"[crio]\nruntime = 1", b"[crio.runtime]\nruntimes = 1"])
def test_read_runtimes_of_crio_with_garbage_raises(body: bytes) -> None:
    with pytest.raises(QueryError, match="cannot be read"):
        query.read_crio_runtimes(body)


@pytest.fixture
def server(tmp_path: Path) -> t.Iterator[t.Callable[[bytes], str]]:
    """Return a function that answers the next request on a socket with these bytes, and returns its path."""
    listener = socket.socket(socket.AF_UNIX)
    path = str(tmp_path / "socket")
    listener.bind(path)
    listener.listen()

    def answer(result: bytes) -> str:
        def serve() -> None:
            connection, _address = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(result)

        threading.Thread(target=serve, daemon=True).start()
        return path

    yield answer
    listener.close()


def test_get_sends_one_request(server: t.Callable[[bytes], str]) -> None:
    path = server(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    assert clients.get_by_http(path, "/info", 5) == b"{}"


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (b"HTTP/1.1 500 Oh no\r\nContent-Length: 0\r\n\r\n", "/info answered 500 Oh no"),
        (b"nonsense\r\n\r\n", "nonsense"),
        (b"", "Remote end closed connection"),
    ],
)
def test_get_with_bad_answer_raises(server: t.Callable[[bytes], str], result: bytes, words: str) -> None:
    with pytest.raises(QueryError, match=words):
        clients.get_by_http(server(result), "/info", 5)


def test_get_without_listener_raises(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="No such file or directory"):
        clients.get_by_http(str(tmp_path / "none"), "/info", 5)
