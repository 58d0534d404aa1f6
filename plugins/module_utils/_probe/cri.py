# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two questions of the Container Runtime Interface that tell how a runtime is: Version and Status.

Field numbers are those of runtime/v1/api.proto in k8s.io/cri-api; v1alpha2 (containerd 1.4 and 1.5) has the same.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, Iterator, List, Mapping, Union

from .grpc import CallError

API_VERSIONS = ("runtime.v1", "runtime.v1alpha2")

# StatusRequest{verbose: true}
_VERBOSE = b"\x08\x01"

# (method, message) -> answer; raises CallError
Caller = Callable[[str, bytes], bytes]
Fields = Dict[int, List[Union[int, bytes]]]


def read_fields(message: bytes) -> Fields:
    """Read a protobuf message as {field number: [values]}; raises CallError if it is cut off."""
    fields: Fields = {}
    for number, value in _walk(message):
        fields.setdefault(number, []).append(value)
    return fields


def _walk(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire_type = key >> 3, key & 7
        value: int | bytes
        if wire_type == 0:
            value, at = _varint(message, at)
        elif wire_type in (1, 2, 5):
            size = {1: 8, 5: 4}.get(wire_type)
            if size is None:
                size, at = _varint(message, at)
            value, at = message[at : at + size], at + size
        else:
            raise CallError(f"the answer has a field of the unknown wire type {wire_type}", "INTERNAL")
        if at > len(message):
            raise CallError("the answer is cut off", "INTERNAL")
        yield number, value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 70:  # 64 bits take ten octets at most
        octet = message[at]
        at += 1
        value |= (octet & 0x7F) << shift
        shift += 7
        if not octet & 0x80:
            return value, at
    raise CallError("the answer is cut off or has a number that is too long", "INTERNAL")


def text(fields: Fields, number: int) -> str:
    """Return the last string of that field, or an empty one."""
    value = fields.get(number, [b""])[-1]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else ""


def _messages(fields: Fields, number: int) -> list[Fields]:
    return [read_fields(value) for value in fields.get(number, []) if isinstance(value, bytes)]


def ask(call: Caller) -> dict[str, Any]:
    """Ask Version and verbose Status.

    Returns {api_version, runtime_name, runtime_version, conditions: {name: {status, reason, message}},
    handlers: [name], config: dict or None (the configuration that the running daemon uses)}. Raises CallError.
    """
    api, version = _version(call)
    status = read_fields(call(f"/{api}.RuntimeService/Status", _VERBOSE))
    return {
        "api_version": api.partition(".")[2],
        "runtime_name": text(version, 2),
        "runtime_version": text(version, 3),
        "conditions": _conditions(status),
        "handlers": sorted({text(handler, 1) for handler in _messages(status, 3)} - {""}),
        "config": _config(status),
    }


def _version(call: Caller) -> tuple[str, Fields]:
    newest, old = API_VERSIONS
    try:
        return newest, read_fields(call(f"/{newest}.RuntimeService/Version", b""))
    except CallError as refusal:
        if refusal.code != "UNIMPLEMENTED":
            raise
        try:
            return old, read_fields(call(f"/{old}.RuntimeService/Version", b""))
        except CallError:
            raise refusal from None


def _conditions(status: Fields) -> dict[str, dict[str, Any]]:
    conditions = {}
    for runtime_status in _messages(status, 1):
        for condition in _messages(runtime_status, 1):
            conditions[text(condition, 1)] = {
                "status": condition.get(2, [0])[-1] == 1,
                "reason": text(condition, 3),
                "message": text(condition, 4),
            }
    return conditions


def _config(status: Fields) -> dict[str, Any] | None:
    for entry in _messages(status, 2):
        if text(entry, 1) == "config":
            try:
                config = json.loads(text(entry, 2))
            except (ValueError, RecursionError):
                return None
            return config if isinstance(config, dict) else None
    return None


def runtimes_of(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """Read the running daemon's configuration.

    Returns {default_runtime: str or None, enable_cdi: bool or None, runtimes: {name: {type, binary, systemd_cgroup}}}.
    The keys are those of containerd's CRI plugin, in JSON.
    """
    containerd = _table(config or {}, "containerd")
    runtimes = {}
    for name, runtime in sorted(_table(containerd, "runtimes").items()):
        options = _table(runtime, "options") if isinstance(runtime, Mapping) else {}
        runtimes[name] = {
            "type": _field(runtime, "runtimeType", "runtime_type"),
            "binary": _field(options, "BinaryName", "binary_name") or None,
            "systemd_cgroup": bool(_field(options, "SystemdCgroup", "systemd_cgroup")),
        }
    return {
        "default_runtime": _field(containerd, "defaultRuntimeName", "default_runtime_name"),
        "enable_cdi": _field(config or {}, "enableCDI", "enable_cdi"),
        "runtimes": runtimes,
    }


def _table(parent: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


def _field(parent: Any, *names: str) -> Any:
    if not isinstance(parent, Mapping):
        return None
    return next((parent[name] for name in names if name in parent), None)
