# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An API server on the loopback that serves lists page by page, for tests and measurements over HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

VERSION = {"major": "1", "minor": "34", "gitVersion": "v1.34.4"}
EXPIRED = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired"}
# An encoded list: (number of items, function that returns the items from first to last).
Source = tuple[int, Callable[[int, int], bytes]]
Server = TypeVar("Server", bound=ThreadingHTTPServer)


def encode_list(items: list[dict[str, Any]]) -> Source:
    """Return the source of a list in memory."""
    return len(items), lambda first, last: ",".join(map(json.dumps, items[first:last])).encode()


class LoopbackApi(ThreadingHTTPServer):
    """Serves lists by path; ``requests`` are (method, path, query) of those for lists, ``authorizations`` the different headers of these.

    ``expire`` decides for each further page whether the list has expired: expire(path, number of requests so far).
    """

    daemon_threads = True

    def __init__(self, lists: dict[str, Source]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.lists = lists
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.authorizations: set[str | None] = set()
        self.expire: Callable[[str, int], bool] = lambda _path, _number: False
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


def write_kubeconfig(url: str, path: Path) -> Path:
    """Write a kubeconfig of a server, and return its path."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "loopback", "cluster": {"server": url}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "loopback", "context": {"cluster": "loopback", "user": "nobody"}}],
        "current-context": "loopback",
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@contextmanager
def serve_in_thread(server: Server) -> Iterator[Server]:
    """Serve in a thread of this process."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def send_json(handler: BaseHTTPRequestHandler, status: int, body: bytes) -> None:
    """Answer a request with JSON."""
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


class _Handler(BaseHTTPRequestHandler):
    """One connection, kept alive."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: LoopbackApi

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if parts.path not in self.server.lists:
            send_json(self, 200, json.dumps(_discovery(parts.path)).encode())
            return
        self.server.requests.append((self.command, parts.path, query))
        self.server.authorizations.add(self.headers.get("Authorization"))
        if "continue" in query and self.server.expire(parts.path, len(self.server.requests)):
            message = "The provided continue parameter is too old to display a consistent list result."
            send_json(self, 410, json.dumps({**EXPIRED, "message": message}).encode())
            return
        send_json(self, 200, self._page(parts.path, query))

    def _page(self, path: str, query: dict[str, str]) -> bytes:
        count, encode = self.server.lists[path]
        first = int(query.get("continue", "0"))
        last = min(count, first + int(query.get("limit", count)))
        metadata = {"resourceVersion": "1", **({"continue": str(last)} if last < count else {})}
        return b'{"kind":"List","apiVersion":"v1","metadata":%s,"items":[%s]}' % (
            json.dumps(metadata).encode(),
            encode(first, last),
        )

    def do_POST(self) -> None:
        if "/leases" in self.path:
            # It stores no lease, so that a run never finds another one.
            send_json(self, 201, self.rfile.read(int(self.headers.get("Content-Length") or 0)))
            return
        self.server.requests.append((self.command, self.path, {}))
        send_json(self, 405, b"{}")

    do_PUT = do_PATCH = do_DELETE = do_HEAD = do_POST  # noqa: N815 - names of http.server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""


def _discovery(path: str) -> dict[str, Any]:
    """What a client requests before it lists: the version and the groups."""
    if path == "/version":
        return VERSION
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": []}
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": []}
