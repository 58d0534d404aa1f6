# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the toml-test suite talks to: TOML in and tagged JSON out, or the other way round.

The suite starts a program for each of its cases. Ours is thin (client.py) and asks one process that holds the reader and the writer:

    python codec.py SOCKET
    python client.py SOCKET decode [1.0|1.1] <document.toml
    python client.py SOCKET encode <tagged.json

A question is a line of words and the input, an answer the exit status as one digit and the output: 1 and why where the input is not valid.
"""

from __future__ import annotations

import json
import socketserver
import sys
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import TomlError, dumps, loads

if TYPE_CHECKING:
    from collections.abc import Callable


def tag(value: Any) -> Any:
    """Plain data to what the suite expects."""
    if isinstance(value, dict):
        return {name: tag(child) for name, child in value.items()}
    if isinstance(value, list):
        return [tag(child) for child in value]
    kind, text = tag_scalar(value)
    return {"type": kind, "value": text}


def tag_scalar(value: Any) -> tuple[str, str]:
    """The suite's name of a type, and the value as text."""
    if isinstance(value, bool):
        return "bool", "true" if value else "false"
    if isinstance(value, datetime):
        return "datetime" if value.tzinfo else "datetime-local", value.isoformat()
    if isinstance(value, date):
        return "date-local", value.isoformat()
    if isinstance(value, time):
        return "time-local", value.isoformat()
    return {str: "string", int: "integer", float: "float"}[type(value)], str(value)


READERS: dict[str, Callable[[str], Any]] = {
    "string": str,
    "integer": int,
    "float": float,
    "bool": lambda text: text == "true",
    "datetime": lambda text: datetime.fromisoformat(text.replace("Z", "+00:00").replace("z", "+00:00")),
    "datetime-local": datetime.fromisoformat,
    "date-local": date.fromisoformat,
    "time-local": time.fromisoformat,
}


def untag(value: Any) -> Any:
    """What the suite gives to plain data."""
    if isinstance(value, list):
        return [untag(child) for child in value]
    if set(value) == {"type", "value"} and isinstance(value["value"], str):
        return READERS[value["type"]](value["value"])
    return {name: untag(child) for name, child in value.items()}


def convert(data: bytes, action: str, version: str = "1.0") -> tuple[int, bytes]:
    """Exit status and output of one case."""
    try:
        if action == "decode":
            return 0, json.dumps(tag(loads(data.decode("utf-8"), version))).encode("ascii")
        return 0, dumps(untag(json.loads(data))).encode("utf-8")
    except (TomlError, UnicodeDecodeError) as problem:
        return 1, str(problem).encode("utf-8")


class Case(socketserver.StreamRequestHandler):
    """One case: a question to its end, then the answer."""

    def handle(self) -> None:
        """Answer it."""
        words = self.rfile.readline().decode("ascii").split()
        status, output = convert(self.rfile.read(), *words)
        self.wfile.write(b"%d%s" % (status, output))


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """Answers several cases at once, as the suite runs them."""

    request_queue_size = 64


if __name__ == "__main__":
    with Server(sys.argv[1], Case) as server:
        server.serve_forever()
