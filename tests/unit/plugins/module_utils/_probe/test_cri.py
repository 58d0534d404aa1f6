# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._probe import cri
from ansible_collections.gpu.kubernetes.plugins.module_utils._probe.grpc import CallError

CONFIG = {
    "containerd": {
        "defaultRuntimeName": "runc",
        "runtimes": {
            "runc": {"runtimeType": "io.containerd.runc.v2", "options": {"SystemdCgroup": True, "BinaryName": ""}},
            "nvidia": {
                "runtimeType": "io.containerd.runc.v2",
                "options": {"BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": True},
            },
            "kata": {"runtimeType": "io.containerd.kata.v2", "options": None},
        },
    },
    "enableCDI": True,
}


def field(number: int, value: bytes | str | int) -> bytes:
    """Write one protobuf field; small numbers are enough here."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    data = value.encode() if isinstance(value, str) else value
    size, rest = b"", len(data)
    while rest > 127:
        size, rest = size + bytes([rest & 0x7F | 0x80]), rest >> 7
    return bytes([number << 3 | 2]) + size + bytes([rest]) + data


def condition(name: str, status: bool, message: str = "") -> bytes:
    return field(1, field(1, name) + (field(2, 1) if status else b"") + field(4, message))


VERSION = field(1, "0.1.0") + field(2, "containerd") + field(3, "2.1.4") + field(4, "v1")
STATUS = (
    field(1, condition("RuntimeReady", True) + condition("NetworkReady", False, "cni plugin not initialized"))
    + field(2, field(1, "golang") + field(2, '"go1.24"'))
    + field(2, field(1, "config") + field(2, json.dumps(CONFIG)))
    + field(3, field(1, "nvidia"))
    + field(3, field(2, b""))
    + field(3, field(1, "runc"))
)


def daemon(apis: tuple[str, ...] = ("runtime.v1",), status: bytes = STATUS) -> Callable[[str, bytes], bytes]:
    def call(method: str, message: bytes) -> bytes:
        _empty, service, name = method.split("/")
        if service.rpartition(".")[0] not in apis:
            raise CallError(f"unknown service {service}", "UNIMPLEMENTED")
        assert message == (b"" if name == "Version" else b"\x08\x01")
        return VERSION if name == "Version" else status

    return call


def test_ask() -> None:
    answer = cri.ask(daemon())
    assert {key: answer[key] for key in ("api_version", "runtime_name", "runtime_version", "handlers")} == {
        "api_version": "v1",
        "runtime_name": "containerd",
        "runtime_version": "2.1.4",
        "handlers": ["nvidia", "runc"],
    }
    assert answer["conditions"] == {
        "RuntimeReady": {"status": True, "reason": "", "message": ""},
        "NetworkReady": {"status": False, "reason": "", "message": "cni plugin not initialized"},
    }
    assert answer["config"] == CONFIG


def test_an_old_daemon_speaks_the_old_version() -> None:
    assert cri.ask(daemon(apis=("runtime.v1alpha2",)))["api_version"] == "v1alpha2"


def test_no_cri_at_all_is_told_of_the_new_version() -> None:
    with pytest.raises(CallError, match=r"runtime\.v1\.RuntimeService"):
        cri.ask(daemon(apis=()))


@pytest.mark.parametrize("config", ["", "no JSON", "[1]", pytest.param("[" * 100_000, id="deep")])
def test_a_configuration_that_cannot_be_read_is_none(config: str) -> None:
    status = field(1, condition("RuntimeReady", True)) + field(2, field(1, "config") + field(2, config))
    assert cri.ask(daemon(status=status))["config"] is None


@pytest.mark.parametrize("message", [b"\x0a\x05abc", b"\x08\x80", b"\x0b\x01", b"\x08" + b"\x80" * 20])
def test_a_broken_message_is_an_error(message: bytes) -> None:
    with pytest.raises(CallError):
        cri.read_fields(message)


def test_fixed_width_fields_are_passed_over() -> None:
    assert cri.read_fields(b"\x09" + b"\x00" * 8 + b"\x15" + b"\x00" * 4 + b"\x18\x2a")[3] == [42]


def test_runtimes_of() -> None:
    found = cri.runtimes_of(CONFIG)
    assert (found["default_runtime"], found["enable_cdi"]) == ("runc", True)
    assert found["runtimes"] == {
        "kata": {"type": "io.containerd.kata.v2", "binary": None, "systemd_cgroup": False},
        "nvidia": {
            "type": "io.containerd.runc.v2",
            "binary": "/usr/bin/nvidia-container-runtime",
            "systemd_cgroup": True,
        },
        "runc": {"type": "io.containerd.runc.v2", "binary": None, "systemd_cgroup": True},
    }


@pytest.mark.parametrize("config", [None, {}, {"containerd": None}, {"containerd": {"runtimes": []}}])
def test_runtimes_of_an_odd_configuration(config: dict[str, Any] | None) -> None:
    assert cri.runtimes_of(config) == {"default_runtime": None, "enable_cdi": None, "runtimes": {}}
