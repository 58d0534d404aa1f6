# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queries a container runtime with the first client that the node has, and reads its runtimes.

Sources: CRI-O's ``server/inspect.go`` (``GET /config`` on the socket of the CRI answers with the configuration in use, as TOML), and the
Docker Engine API, https://docs.docker.com/reference/api/engine/ (``GET /info``, since 1.18).
"""

from __future__ import annotations

import json
import os
import socket as sockets
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Sequence, Tuple

from .._toml import TomlError, loads
from . import clients
from .clients import CALL_SECONDS, Runner, build_answer, get_table, read_output
from .errors import ClientError, QueryError
from .kubelet import get_flag

#: What the runtime reports of itself, and the runtimes that it has; the latter as read_containerd_runtimes returns them.
Answer = Tuple[Dict[str, Any], Dict[str, Any]]

#: The plugins that have the runtimes, of configuration version 3 and newer and of version 2.
PLUGINS = ("io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri")

#: Takes the path of a request and returns the body of the answer; raises QueryError.
Caller = Callable[[str], bytes]


@dataclass(frozen=True)
class Node:
    """How to reach the node's programs. ``find`` returns a program's path, ``arguments_of`` those of a process by its ID."""

    find: Callable[[str], str | None]
    run: Runner
    arguments_of: Callable[[str], list[str]]


def query(daemon: str, socket: str, unit: Mapping[str, str], node: Node) -> Answer:
    """Query the *daemon* behind *socket*; ``unit`` is what clients.parse_show returns. Raises QueryError.

    The answer's ``source`` names the client, and its ``remarks`` say why better ones were not used.
    """
    if daemon == "docker":
        return query_docker(lambda target: clients.get_by_http(socket, target, CALL_SECONDS))
    connect(socket)
    remarks: list[str] = []
    for client in CLIENTS[daemon]:
        try:
            answer, effective = client(socket, unit, node)
        except ClientError as error:
            remarks.append(str(error))
        else:
            return {**answer, "remarks": [*remarks, *answer.get("remarks", [])]}, effective
    raise QueryError("; ".join(remarks), "install crictl")


def connect(socket: str) -> None:
    """Connect to the Unix socket, which is faster than a client program where nothing listens. Raises QueryError."""
    try:
        with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as connection:
            connection.settimeout(CALL_SECONDS)
            connection.connect(socket)
    except OSError as error:
        raise QueryError(f"{socket}: {error.strerror or error}") from error


def _find_program(node: Node, name: str) -> str:
    path = node.find(name)
    if path is None:
        raise ClientError(f"{name} is not installed")
    return path


def _query_containerd_by_crictl(socket: str, _unit: Mapping[str, str], node: Node) -> Answer:
    answer, config = clients.query_crictl(_find_program(node, "crictl"), socket, node.run)
    return answer, read_containerd_runtimes(config)


def _query_containerd_by_ctr(socket: str, unit: Mapping[str, str], node: Node) -> Answer:
    return _add_dump(clients.query_ctr(_find_program(node, "ctr"), socket, node.run), unit, node)


def _query_containerd_by_systemd(_socket: str, unit: Mapping[str, str], node: Node) -> Answer:
    if unit.get("ActiveState") != "active":
        raise ClientError("systemd reports no active service")
    return _add_dump(build_answer("systemd", "containerd", None), unit, node)


def _add_dump(answer: dict[str, Any], unit: Mapping[str, str], node: Node) -> Answer:
    """Add the runtimes of containerd's files to an *answer* without runtimes."""
    try:
        return answer, dump_containerd_runtimes(node.arguments_of(unit.get("MainPID", "")), node.run)
    except ClientError as error:
        return {**answer, "remarks": [str(error)]}, read_containerd_runtimes({})


def _query_crio_by_crictl(socket: str, _unit: Mapping[str, str], node: Node) -> Answer:
    answer, _config = clients.query_crictl(_find_program(node, "crictl"), socket, node.run)
    return answer, read_crio_runtimes(clients.get_by_http(socket, "/config", CALL_SECONDS))


def _query_crio_by_http(socket: str, _unit: Mapping[str, str], _node: Node) -> Answer:
    answer = build_answer("http", "cri-o", None)
    return answer, read_crio_runtimes(clients.get_by_http(socket, "/config", CALL_SECONDS))


CLIENTS: dict[str, tuple[Callable[[str, Mapping[str, str], Node], Answer], ...]] = {
    "containerd": (_query_containerd_by_crictl, _query_containerd_by_ctr, _query_containerd_by_systemd),
    "crio": (_query_crio_by_crictl, _query_crio_by_http),
}


# -- containerd


def read_containerd_runtimes(config: Mapping[str, Any]) -> dict[str, Any]:
    """Read the settings of containerd's CRI plugin, by their names in JSON or in TOML.

    Returns {default_runtime: str or None, enable_cdi: bool or None, runtimes: {name: {type, binary, systemd_cgroup}}}.
    """
    containerd = get_table(config, "containerd")
    runtimes = {}
    for name, runtime in sorted(get_table(containerd, "runtimes").items()):
        options = get_table(runtime, "options")
        runtimes[name] = {
            "type": _get_field(runtime, "runtimeType", "runtime_type"),
            "binary": _get_field(options, "BinaryName", "binary_name") or None,
            "systemd_cgroup": bool(_get_field(options, "SystemdCgroup", "systemd_cgroup")),
        }
    return {
        "default_runtime": _get_field(containerd, "defaultRuntimeName", "default_runtime_name"),
        "enable_cdi": _get_field(config, "enableCDI", "enable_cdi"),
        "runtimes": runtimes,
    }


def dump_containerd_runtimes(arguments: Sequence[str], run: Runner) -> dict[str, Any]:
    """Return what read_containerd_runtimes returns, of the files that the containerd with these *arguments* reads at its next start.

    Raises ClientError.
    """
    if not arguments or os.path.basename(arguments[0]) != "containerd":
        raise ClientError("the runtimes are unknown: the service's process is not containerd")
    path = get_flag(arguments, "--config") or get_flag(arguments, "-c")
    command = [arguments[0], *(["--config", path] if path else []), "config", "dump"]
    try:
        return read_containerd_runtimes(read_containerd_dump(read_output(run, command)))
    except (ClientError, QueryError) as error:
        raise ClientError(f"the runtimes are unknown: {error}") from error


def read_containerd_dump(printed: str) -> Mapping[str, Any]:
    """Return the settings of the CRI plugin from the output of ``containerd config dump``. Raises ClientError."""
    try:
        plugins = get_table(loads(printed), "plugins")
    except (TomlError, RecursionError) as error:
        raise ClientError("containerd config dump printed something other than TOML") from error
    return next((get_table(plugins, name) for name in PLUGINS if "containerd" in get_table(plugins, name)), {})


def _get_field(parent: Any, *names: str) -> Any:
    if not isinstance(parent, Mapping):
        return None
    return next((parent[name] for name in names if name in parent), None)


# -- CRI-O


def read_crio_runtimes(body: bytes) -> dict[str, Any]:
    """Read the answer to ``GET /config``; returns the same as read_containerd_runtimes. Raises QueryError."""
    try:
        runtime = loads(body.decode("utf-8"))["crio"]["runtime"]
        runtimes = dict(runtime["runtimes"])
    except (UnicodeDecodeError, TomlError, LookupError, TypeError, ValueError) as error:
        raise QueryError("the configuration that it reports cannot be read") from error
    systemd = runtime.get("cgroup_manager", "systemd") == "systemd"
    return {
        "default_runtime": runtime.get("default_runtime") or None,
        "enable_cdi": True,
        "runtimes": {
            name: {
                "type": table.get("runtime_type") or "oci",
                "binary": table.get("runtime_path") or None,
                "systemd_cgroup": systemd,
            }
            for name, table in sorted(runtimes.items())
        },
    }


# -- Docker


def query_docker(get: Caller) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what dockerd reports of itself and its runtimes, as query does. Raises QueryError."""
    try:
        info = json.loads(get("/info"))
    except ValueError as error:
        raise QueryError("the answer is not JSON") from error
    if not isinstance(info, dict):
        raise QueryError("the answer is not a JSON object")
    runtimes = info.get("Runtimes") or {}
    answer = build_answer("http", "docker", info.get("ServerVersion"))
    return {**answer, "handlers": sorted(runtimes)}, {
        "default_runtime": info.get("DefaultRuntime"),
        # Docker 25 and newer report the folders of specifications if CDI is enabled.
        "enable_cdi": bool(info.get("CDISpecDirs")) if "CDISpecDirs" in info else None,
        # Without it, the containers that run end when dockerd restarts.
        "live_restore": info.get("LiveRestoreEnabled"),
        "containers_running": info.get("ContainersRunning"),
        "runtimes": {
            name: _build_docker_runtime(runtime, info.get("CgroupDriver") == "systemd")
            for name, runtime in sorted(runtimes.items())
        },
    }


def _build_docker_runtime(runtime: Mapping[str, Any], systemd: bool) -> dict[str, Any]:
    return {"type": runtime.get("runtimeType"), "binary": runtime.get("path") or None, "systemd_cgroup": systemd}
