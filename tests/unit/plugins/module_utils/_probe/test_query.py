# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client that is used, and a runtime that does not answer."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Union

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils import _commands
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import clients
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import query as query_module
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe.errors import CriMissingError, QueryError
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe.query import Node, query
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._probe import samples

Result = Union[str, OSError, "tuple[int, str, str]"]
ACTIVE = {"ActiveState": "active", "MainPID": "42"}

#: What each command prints, by the program's name and the command's last word.
CRICTL: dict[str, Result] = {"crictl version": samples.CRICTL_VERSION, "crictl json": samples.CRICTL_INFO_TEXT}
CTR: dict[str, Result] = {"ctr version": samples.CTR_VERSION, "ctr list": samples.CTR_PLUGINS_2}
DUMP: dict[str, Result] = {"containerd dump": samples.DUMP_3}


@pytest.fixture
def listener(tmp_path: Path) -> Iterator[str]:
    """Path of a socket that accepts connections and answers nothing."""
    path = str(tmp_path / "c.sock")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        yield path


def fake_node(results: Mapping[str, Result], process: str = "/usr/bin/containerd") -> Node:
    """A node whose programs print *results*; it has those that are named there."""
    programs = {name.split()[0] for name in results}

    def run(command: Any, _seconds: float) -> tuple[int, str, str]:
        result = results[f"{os.path.basename(command[0])} {command[-1]}"]
        if isinstance(result, OSError):
            raise result
        return (0, result, "") if isinstance(result, str) else result

    return Node(
        find=lambda name: f"/usr/bin/{name}" if name in programs else None,
        run=run,
        arguments_of=lambda pid: [process] if pid == "42" else [],
    )


def test_query_prefers_crictl(listener: str) -> None:
    answer, effective = query("containerd", listener, ACTIVE, fake_node({**CRICTL, **CTR, **DUMP}))
    assert (answer["source"], answer["remarks"], effective["default_runtime"]) == ("crictl", [], "runc")


@pytest.mark.parametrize(
    ("results", "remark"),
    [
        (CTR, "crictl is not installed"),
        ({**CTR, "crictl version": OSError(8, "Exec format error")}, "crictl cannot be run: Exec format error"),
        ({**CTR, "crictl version": "garbage"}, "crictl version printed no RuntimeName"),
        ({**CTR, **CRICTL, "crictl json": "garbage"}, "crictl info printed something other than JSON"),
        ({**CTR, **CRICTL, "crictl json": (1, "", samples.BAD_FLAG)}, "crictl failed: flag provided"),
    ],
)
def test_query_without_a_usable_crictl_uses_ctr(listener: str, results: dict[str, Result], remark: str) -> None:
    answer, effective = query("containerd", listener, ACTIVE, fake_node({**results, **DUMP}))
    assert (answer["source"], answer["runtime_version"], effective["default_runtime"]) == ("ctr", "2.1.4", "nvidia")
    assert len(answer["remarks"]) == 1
    assert answer["remarks"][0].startswith(remark)


@pytest.mark.parametrize(
    ("results", "kind", "message"),
    [
        ({**CRICTL, "crictl version": (1, "", samples.CRI_MISSING)}, CriMissingError, "unknown service"),
        ({**CRICTL, "crictl json": (1, "", samples.TIMED_OUT)}, QueryError, "deadline exceeded"),
        ({**CRICTL, "crictl version": TimeoutError(110, "x")}, QueryError, "crictl did not end"),
        ({"ctr version": (1, "", samples.CTR_TIMED_OUT)}, QueryError, "deadline exceeded"),
        ({**CTR, "ctr list": "TYPE ID PLATFORMS STATUS\n"}, CriMissingError, "no plugin cri"),
    ],
)
def test_query_of_a_runtime_that_does_not_answer_uses_no_other_client(
    listener: str, results: dict[str, Result], kind: type[Exception], message: str
) -> None:
    others = CTR if "crictl version" in results else {}
    with pytest.raises(kind, match=message):
        query("containerd", listener, ACTIVE, fake_node({**others, **results, **DUMP}))


def test_query_without_clients_relies_on_systemd(listener: str) -> None:
    answer, effective = query("containerd", listener, ACTIVE, fake_node(DUMP))
    assert (answer["source"], answer["runtime_version"], effective["default_runtime"]) == ("systemd", None, "nvidia")
    assert answer["remarks"] == ["crictl is not installed", "ctr is not installed"]


@pytest.mark.parametrize("unit", [{}, {"ActiveState": "activating"}])
def test_query_without_clients_and_service_is_an_error(listener: str, unit: dict[str, str]) -> None:
    with pytest.raises(QueryError, match="crictl is not installed; ctr is not installed; systemd reports") as caught:
        query("containerd", listener, unit, fake_node({}))
    assert caught.value.remedy == "install crictl"


def test_query_without_a_containerd_process_has_no_runtimes(listener: str) -> None:
    answer, effective = query("containerd", listener, ACTIVE, fake_node(CTR, "/usr/local/bin/k3s"))
    assert (answer["source"], effective["runtimes"]) == ("ctr", {})
    assert answer["remarks"][-1] == "the runtimes are unknown: the service's process is not containerd"


def test_query_without_a_listener_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(QueryError, match="No such file or directory"):
        query("containerd", str(tmp_path / "none"), ACTIVE, fake_node({**CRICTL, **CTR}))
    unused = str(tmp_path / "unused")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(unused)
    with pytest.raises(QueryError, match="Connection refused"):
        query("containerd", unused, ACTIVE, fake_node({**CRICTL, **CTR}))


@pytest.mark.parametrize(
    ("results", "source", "version"),
    [
        (
            {"crictl version": "RuntimeName:  cri-o\nRuntimeVersion:  1.34.0\n", "crictl json": samples.CRIO_INFO_TEXT},
            "crictl",
            "1.34.0",
        ),
        ({}, "http", None),
        ({"crictl version": "garbage"}, "http", None),
    ],
)
def test_query_of_crio_reads_the_runtimes_over_http(
    listener: str, monkeypatch: pytest.MonkeyPatch, results: dict[str, Result], source: str, version: str | None
) -> None:
    monkeypatch.setattr(
        clients, "get_by_http", lambda _path, target, _timeout: samples.CRIO_CONFIG if target == "/config" else b""
    )
    answer, effective = query("crio", listener, ACTIVE, fake_node(results))
    assert (answer["source"], answer["runtime_name"], answer["runtime_version"]) == (source, "cri-o", version)
    assert (answer["conditions"]["RuntimeReady"]["status"], effective["default_runtime"]) == (True, "crun")


def test_query_of_docker_uses_http(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "get_by_http", lambda _path, _target, _timeout: b'{"ServerVersion": "27.0"}')
    assert query("docker", "/run/docker.sock", ACTIVE, fake_node({}))[0]["source"] == "http"


def _program(folder: Path, name: str, body: str) -> str:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("import time; time.sleep(3600)", "crictl did not end within 0.2 s"),
        ("import os; os.kill(os.getpid(), 9)", "crictl failed: exit status -9; ctr is not installed"),
        ("print('\\x00' * 100)", "printed no RuntimeName; ctr is not installed"),
    ],
)
def test_query_with_a_failing_program_is_an_error(
    listener: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, message: str
) -> None:
    monkeypatch.setattr(clients, "KILL_SECONDS", 0.2 if "sleep" in body else clients.KILL_SECONDS)
    program = _program(tmp_path, "crictl", body)
    find: Callable[[str], str | None] = lambda name: program if name == "crictl" else None  # noqa: E731
    node = Node(find, lambda command, seconds: _commands.run(command, seconds=seconds), lambda _pid: [])
    with pytest.raises(QueryError, match=message):
        query_module.query("containerd", listener, {}, node)
