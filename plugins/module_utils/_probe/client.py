# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a client program of a container runtime, and distinguishes failures of the runtime from those of the program."""

from __future__ import annotations

import json
import os
import re
from typing import Any, Callable, Sequence, Tuple

from .errors import ClientError, CriMissingError, QueryError

#: How long a client program waits for each answer of the runtime.
CALL_SECONDS = 5
#: How long a client program may run before it is killed; it sends up to three requests.
KILL_SECONDS = 20
#: The most characters that a client program may print; ``crictl info`` prints some 10,000.
MAX_OUTPUT = 4 * 1024 * 1024

#: Takes a command and a time limit in seconds; returns the exit status, the output and the errors. Raises OSError.
Runner = Callable[[Sequence[str], float], Tuple[int, str, str]]

_LOGGED = re.compile(r'\blevel=fatal msg=("(?:[^"\\]|\\.)*")')
_RPC_ERROR = re.compile(r"rpc error: code = (\w+) desc = (.*)")
# Parts of an error that is of the connection and not of the client program's own arguments or files.
_CONNECTION = ("deadline exceeded", "connect", "dial", "socket")
_MAX_REASON = 500


def build_answer(source: str, name: str, version: str | None) -> dict[str, Any]:
    """Return the answer of a runtime that works, from a client that reports neither conditions nor handlers.

    containerd and CRI-O report the condition RuntimeReady whenever they serve the CRI.
    """
    return {
        "source": source,
        "api_version": None,
        "runtime_name": name,
        "runtime_version": version,
        "conditions": {"RuntimeReady": {"status": True, "reason": "", "message": ""}},
        "handlers": [],
    }


def read_output(run: Runner, command: Sequence[str]) -> str:
    """Return what *command* prints.

    Raises QueryError if the container runtime did not answer it, and ClientError if the program cannot be used.
    """
    program = os.path.basename(command[0])
    try:
        status, printed, errors = run(command, KILL_SECONDS)
    except TimeoutError as error:
        raise QueryError(f"{program} did not end within {KILL_SECONDS} s") from error
    except OSError as error:
        raise ClientError(f"{program} cannot be run: {error.strerror or error}") from error
    if status != 0:
        raise read_failure(program, status, errors)
    if len(printed) > MAX_OUTPUT:
        raise ClientError(f"{program} printed more than {MAX_OUTPUT} characters")
    return printed


def read_failure(program: str, status: int, errors: str) -> QueryError | ClientError:
    """Return the error that a failed *program* reports in the last line of its *errors*."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    message = _parse_message(lines[-1]) if lines else f"exit status {status}"
    found = _RPC_ERROR.search(message)
    code, reason = found.groups() if found else ("", message)
    reason = reason[:_MAX_REASON]
    if code == "Unimplemented":
        return CriMissingError(reason)
    if code or any(word in message for word in _CONNECTION):
        return QueryError(f"{program}: {reason}")
    return ClientError(f"{program} failed: {reason}")


def _parse_message(line: str) -> str:
    """Return the message of a line as crictl logs it, or the line as it is."""
    found = _LOGGED.search(line)
    if not found:
        return line
    try:
        return " ".join(str(json.loads(found.group(1))).split())
    except ValueError:  # Go quotes some characters in a way that JSON does not have
        return found.group(1)[1:-1]
