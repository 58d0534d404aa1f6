# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module against a daemon that a few bytes stand for; the parts are tested with _probe."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import grpc, hpack
from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module

CONFIG = {"containerd": {"defaultRuntimeName": "runc", "runtimes": {"runc": {"runtimeType": "io.containerd.runc.v2"}}}}


def field(number: int, value: bytes) -> bytes:
    size = bytes([len(value)]) if len(value) < 128 else bytes([len(value) & 0x7F | 0x80, len(value) >> 7])
    return bytes([number << 3 | 2]) + size + value


READY = field(1, field(1, field(1, b"RuntimeReady") + b"\x10\x01"))
STATUS = READY + field(2, field(1, b"config") + field(2, json.dumps(CONFIG).encode()))
VERSION = field(2, b"containerd") + field(3, b"2.1.4")


def answer_of(request: bytes) -> bytes:
    message = STATUS if b"/runtime.v1.RuntimeService/Status" in request else VERSION
    body = b"\x00" + len(message).to_bytes(4, "big") + message
    trailers = grpc.frame(grpc.HEADERS, grpc.END_HEADERS | grpc.END_STREAM, 1, hpack.encode([("grpc-status", "0")]))
    return grpc.frame(grpc.DATA, 0, 1, body) + trailers


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "c.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()

    def serve() -> None:
        while True:
            try:
                connection, _address = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(answer_of(connection.recv(65536)))
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass

    threading.Thread(target=serve, daemon=True).start()
    yield path
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def test_a_daemon_that_is_well(daemon: str) -> None:
    answer = node_module.run("container_runtime_probe", {"socket": daemon, "service": "", "runtime": "runc"})
    assert answer["ok"] is True
    assert (answer["cause"], answer["remedy"], answer["log"]) == ("", "", [])
    assert (answer["runtime_name"], answer["runtime_version"], answer["api_version"]) == ("containerd", "2.1.4", "v1")
    assert answer["default_runtime"] == "runc"
    assert answer["changed"] is False


def test_a_daemon_without_the_runtime(daemon: str) -> None:
    answer = node_module.run("container_runtime_probe", {"socket": daemon, "service": "", "runtime": "nvidia"})
    assert (answer["ok"], answer.get("failed", False)) == (False, False)
    assert answer["cause"] == "containerd runs without the runtime nvidia (it has runc)"


def test_a_daemon_that_has_failed_is_not_waited_for(tmp_path: Path) -> None:
    systemctl = tmp_path / "systemctl"
    systemctl.write_text(
        "#!/bin/sh\nprintf 'LoadState=loaded\\nActiveState=failed\\nSubState=failed\\nInvocationID=a\\n'\n"
    )
    journalctl = tmp_path / "journalctl"
    journalctl.write_text(
        "#!/bin/sh\necho 'containerd: failed to load TOML: line 3'\necho 'containerd.service: Failed'\n"
    )
    for program in (systemctl, journalctl):
        program.chmod(0o755)
    arguments = {"socket": str(tmp_path / "none"), "wait_timeout": 3600}
    answer = node_module.run("container_runtime_probe", arguments, folder=str(tmp_path))
    assert answer["ok"] is False
    assert answer["cause"] == "the service containerd is failed (failed)"
    assert answer["log"] == ["containerd: failed to load TOML: line 3"]
