# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of Prometheus on the loopback: it answers each query with no series, or as a test says, and records what it received."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

#: Status, headers and body of an answer.
Answer = tuple[int, dict[str, str], bytes]


def answer_series(result: list[dict[str, Any]]) -> Answer:
    """Return an answer with series, as Prometheus sends it."""
    body = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    return 200, {"Content-Type": "application/json"}, json.dumps(body).encode()


class FakePrometheus(ThreadingHTTPServer):
    """``requests`` are (options of the query, headers). ``reply`` returns the answer to a query."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[dict[str, str], dict[str, str]]] = []
        self.reply: Callable[[dict[str, str]], Answer] = lambda _options: answer_series([])
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: FakePrometheus

    def do_GET(self) -> None:
        options = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
        self.server.requests.append((options, dict(self.headers)))
        status, headers, body = self.server.reply(options)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(BrokenPipeError):  # the client may have given up
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""
