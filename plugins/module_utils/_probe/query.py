# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queries a container runtime with the first client that the node has: crictl, else the runtime's own."""

from __future__ import annotations

import socket as sockets
from dataclasses import dataclass
from typing import Any, Callable, Dict, Mapping, Tuple

from . import containerd, crictl, crio, ctr, docker, http
from .client import CALL_SECONDS, Runner, build_answer
from .errors import ClientError, QueryError

#: What the runtime reports of itself, and the runtimes that it has; the latter as containerd.read_runtimes returns them.
Answer = Tuple[Dict[str, Any], Dict[str, Any]]


@dataclass(frozen=True)
class Node:
    """How to reach the node's programs. ``find`` returns a program's path, ``arguments_of`` those of a process by its ID."""

    find: Callable[[str], str | None]
    run: Runner
    arguments_of: Callable[[str], list[str]]


def query(daemon: str, socket: str, unit: Mapping[str, str], node: Node) -> Answer:
    """Query the *daemon* behind *socket*; ``unit`` is what unit.parse_show returns. Raises QueryError.

    The answer's ``source`` names the client, and its ``remarks`` say why better ones were not used.
    """
    if daemon == "docker":
        return docker.query(lambda target: http.get(socket, target, CALL_SECONDS))
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
    answer, config = crictl.query(_find_program(node, "crictl"), socket, node.run)
    return answer, containerd.read_runtimes(config)


def _query_containerd_by_ctr(socket: str, unit: Mapping[str, str], node: Node) -> Answer:
    return _add_dump(ctr.query(_find_program(node, "ctr"), socket, node.run), unit, node)


def _query_containerd_by_systemd(_socket: str, unit: Mapping[str, str], node: Node) -> Answer:
    if unit.get("ActiveState") != "active":
        raise ClientError("systemd reports no active service")
    return _add_dump(build_answer("systemd", "containerd", None), unit, node)


def _add_dump(answer: dict[str, Any], unit: Mapping[str, str], node: Node) -> Answer:
    """Add the runtimes of containerd's files to an *answer* without runtimes."""
    try:
        return answer, containerd.dump_runtimes(node.arguments_of(unit.get("MainPID", "")), node.run)
    except ClientError as error:
        return {**answer, "remarks": [str(error)]}, containerd.read_runtimes({})


def _query_crio_by_crictl(socket: str, _unit: Mapping[str, str], node: Node) -> Answer:
    answer, _config = crictl.query(_find_program(node, "crictl"), socket, node.run)
    return answer, crio.read_runtimes(http.get(socket, "/config", CALL_SECONDS))


def _query_crio_by_http(socket: str, _unit: Mapping[str, str], _node: Node) -> Answer:
    answer = build_answer("http", "cri-o", None)
    return answer, crio.read_runtimes(http.get(socket, "/config", CALL_SECONDS))


CLIENTS: dict[str, tuple[Callable[[str, Mapping[str, str], Node], Answer], ...]] = {
    "containerd": (_query_containerd_by_crictl, _query_containerd_by_ctr, _query_containerd_by_systemd),
    "crio": (_query_crio_by_crictl, _query_crio_by_http),
}
