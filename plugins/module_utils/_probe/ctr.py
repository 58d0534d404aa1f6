# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Queries containerd with ctr, which reports the version and the plugins, but neither conditions nor runtimes."""

from __future__ import annotations

from typing import Any

from .client import CALL_SECONDS, Runner, build_answer, read_output
from .errors import ClientError, CriMissingError

#: Type and name of the plugin that serves the CRI, in containerd 1 and 2.
CRI_PLUGIN = ["io.containerd.grpc.v1", "cri"]


def query(program: str, socket: str, run: Runner) -> dict[str, Any]:
    """Return the same as crictl.query without the configuration. Raises QueryError and ClientError."""
    seconds = f"{CALL_SECONDS}s"
    command = [program, "--address", socket, "--connect-timeout", seconds, "--timeout", seconds]
    version = read_version(read_output(run, [*command, "version"]))
    check_plugins(read_output(run, [*command, "plugins", "list"]))
    return build_answer("ctr", "containerd", version)


def read_version(printed: str) -> str:
    """Return the server's version from ``ctr version``. Raises ClientError."""
    lines = [line.strip() for line in printed.partition("Server:")[2].splitlines()]
    versions = [line[len("Version:") :].strip() for line in lines if line.startswith("Version:")]
    if not versions or not versions[0]:
        raise ClientError("ctr version printed no version of the server")
    return versions[0]


def check_plugins(printed: str) -> None:
    """Read the table of ``ctr plugins list``. Raises CriMissingError unless the CRI plugin runs, and ClientError."""
    rows = [line.split() for line in printed.splitlines() if line.strip()]
    if not rows or rows[0][0] != "TYPE":
        raise ClientError("ctr plugins list printed no table")
    states = [row[-1] for row in rows if row[:2] == CRI_PLUGIN and len(row) > len(CRI_PLUGIN)]
    if not states:
        raise CriMissingError("ctr lists no plugin cri")
    if "ok" not in states:
        raise CriMissingError(f"ctr reports the status {states[0]} of the plugin cri")
