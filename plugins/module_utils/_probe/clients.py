# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The clients that report on a container runtime: crictl, ctr, HTTP on its socket, and systemd with its journal.

Sources: https://github.com/kubernetes-sigs/cri-tools/blob/master/docs/crictl.md and the output of ``ctr`` and ``systemctl``.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket as sockets
from typing import Any, Callable, Iterable, Mapping, Sequence, Tuple

from .._config.redact import mask_text
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

#: Type and name of the plugin that serves the CRI, in containerd 1 and 2.
CRI_PLUGIN = ["io.containerd.grpc.v1", "cri"]

#: The most bytes that are read of an answer; Docker's has some 4 KiB.
MAX_BODY = 4 * 1024 * 1024

SHOW_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "ExecMainStatus",
    "NRestarts",
    "InvocationID",
    "MainPID",
)

# A CRI plugin that cannot be loaded is a mere warning to containerd.
_ERROR_LINES = re.compile(
    r"level=(?:fatal|error|panic)|^(?:containerd|panic|fatal error): "
    r"|level=warning msg=\"failed to load plugin\".* id=\"?io\.containerd\.(?:grpc\.v1\.cri|cri\.v1\.)"
)
_TIME = re.compile(r'^time="[^"]*" ')


def build_answer(source: str, name: str, version: str | None) -> dict[str, Any]:
    """Return the answer of a runtime that works, from a client that reports neither conditions nor handlers.

    containerd and CRI-O report the condition RuntimeReady whenever they serve the CRI; Docker has no such condition.
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


# -- crictl


def query_crictl(program: str, socket: str, run: Runner) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """Return what the runtime behind *socket* reports, and its running configuration, which is empty if it reports none.

    The former is {source, api_version, runtime_name, runtime_version, conditions: {name: {status, reason, message}},
    handlers: [name]}. Raises QueryError and ClientError.
    """
    command = [program, "--runtime-endpoint", f"unix://{socket}", "--timeout", f"{CALL_SECONDS}s"]
    version = read_crictl_version(read_output(run, [*command, "version"]))
    info = read_crictl_info(read_output(run, [*command, "info", "--output", "json"]))
    answer = {"source": "crictl", **version, "conditions": read_conditions(info), "handlers": read_handlers(info)}
    return answer, get_table(info, "config")


def read_crictl_version(printed: str) -> dict[str, Any]:
    """Read the lines of ``crictl version``. Raises ClientError."""
    pairs = (line.partition(":") for line in printed.splitlines())
    values = {name.strip(): value.strip() for name, _colon, value in pairs}
    if not values.get("RuntimeName"):
        raise ClientError("crictl version printed no RuntimeName")
    return {
        "api_version": values.get("RuntimeApiVersion") or None,
        "runtime_name": values["RuntimeName"],
        "runtime_version": values.get("RuntimeVersion") or None,
    }


def read_crictl_info(printed: str) -> Mapping[str, Any]:
    """Read the JSON object of ``crictl info``. Raises ClientError."""
    try:
        info = json.loads(printed)
    except (ValueError, RecursionError) as error:
        raise ClientError("crictl info printed something other than JSON") from error
    if not isinstance(info, dict) or not isinstance(info.get("status"), dict):
        raise ClientError("crictl info printed no status")
    return info


def read_conditions(info: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the runtime's conditions by name."""
    return {
        str(condition["type"]): {
            "status": condition.get("status") is True,
            "reason": str(condition.get("reason") or ""),
            "message": str(condition.get("message") or ""),
        }
        for condition in _list_entries(get_table(info, "status"), "conditions")
        if condition.get("type")
    }


def read_handlers(info: Mapping[str, Any]) -> list[str]:
    """Return the names of the runtime handlers; older runtimes report none. The default handler has no name of its own."""
    return sorted({str(handler["name"]) for handler in _list_entries(info, "runtimeHandlers") if handler.get("name")})


def get_table(parent: Any, key: str) -> Mapping[str, Any]:
    """Return the mapping at *key*; an empty one for anything else."""
    value = parent.get(key) if isinstance(parent, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _list_entries(parent: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = parent.get(key)
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


# -- ctr, which reports the version and the plugins, but neither conditions nor runtimes


def query_ctr(program: str, socket: str, run: Runner) -> dict[str, Any]:
    """Return the same as query_crictl without the configuration. Raises QueryError and ClientError."""
    seconds = f"{CALL_SECONDS}s"
    command = [program, "--address", socket, "--connect-timeout", seconds, "--timeout", seconds]
    version = read_ctr_version(read_output(run, [*command, "version"]))
    check_ctr_plugins(read_output(run, [*command, "plugins", "list"]))
    return build_answer("ctr", "containerd", version)


def read_ctr_version(printed: str) -> str:
    """Return the server's version from ``ctr version``. Raises ClientError."""
    lines = [line.strip() for line in printed.partition("Server:")[2].splitlines()]
    versions = [line[len("Version:") :].strip() for line in lines if line.startswith("Version:")]
    if not versions or not versions[0]:
        raise ClientError("ctr version printed no version of the server")
    return versions[0]


def check_ctr_plugins(printed: str) -> None:
    """Read the table of ``ctr plugins list``. Raises CriMissingError unless the CRI plugin runs, and ClientError."""
    rows = [line.split() for line in printed.splitlines() if line.strip()]
    if not rows or rows[0][0] != "TYPE":
        raise ClientError("ctr plugins list printed no table")
    states = [row[-1] for row in rows if row[:2] == CRI_PLUGIN and len(row) > len(CRI_PLUGIN)]
    if not states:
        raise CriMissingError("ctr lists no plugin cri")
    if "ok" not in states:
        raise CriMissingError(f"ctr reports the status {states[0]} of the plugin cri")


# -- one HTTP request on the Unix socket of Docker or CRI-O


class _HttpConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = sockets.socket(sockets.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def get_by_http(path: str, target: str, timeout: float) -> bytes:
    """Return the body of the answer to GET *target* on the socket *path*; *timeout* in seconds. Raises QueryError."""
    connection = _HttpConnection(path, timeout)
    try:
        connection.request("GET", target)
        response = connection.getresponse()
        body = response.read(MAX_BODY)
    except (OSError, http.client.HTTPException) as error:
        message = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise QueryError(f"{path}: {message}") from error
    finally:
        connection.close()
    if response.status != 200:
        raise QueryError(f"{path}: {target} answered {response.status} {response.reason}")
    return body


# -- systemd and its journal


def build_show_command(unit: str) -> list[str]:
    """Return the command whose output parse_show reads."""
    return ["systemctl", "show", unit, "--property=" + ",".join(SHOW_PROPERTIES)]


def parse_show(output: str) -> dict[str, str]:
    """Read ``systemctl show``: {property: value}."""
    pairs = (line.partition("=") for line in output.splitlines() if "=" in line)
    return {name: value for name, _sign, value in pairs}


def build_journal_command(unit: str, shown: Mapping[str, str], lines: int = 200) -> list[str]:
    """Return the command that prints the unit's latest log lines, only those of its current start if it was not restarted.

    ``shown`` is what parse_show returns. A unit that systemd has restarted may have logged the cause at an
    earlier start, and nothing yet at this one.
    """
    invocation = shown.get("InvocationID") if shown.get("NRestarts", "0") == "0" else None
    command = ["journalctl", "--unit", unit, "--lines", str(lines), "--output", "cat", "--no-pager", "--quiet"]
    return [*command, f"_SYSTEMD_INVOCATION_ID={invocation}"] if invocation else command


def find_error_lines(lines: Iterable[str], limit: int = 8) -> list[str]:
    """Return the log lines that explain a failure, without credentials: the latest errors, else the latest lines.

    containerd writes levels into its text, so that the journal's priorities do not have them. Lines that repeat
    at each restart are returned once.
    """
    messages = [mask_text(_TIME.sub("", line).strip()) for line in lines if line.strip()]
    chosen = [line for line in messages if _ERROR_LINES.search(line)] or messages
    return list(dict.fromkeys(reversed(chosen)))[:limit][::-1]
