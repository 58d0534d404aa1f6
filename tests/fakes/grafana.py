# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of Grafana's API of folders and dashboards, on the loopback.

It keeps what a client saves, with an ID and a version. As ``is_new`` it answers as newer releases may: with further defaults, and without empty values.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .loopback_api import send_json

TOKEN = "token-of-a-fake"


class FakeGrafana(ThreadingHTTPServer):
    """Stores ``folders`` (UID -> title) and ``dashboards`` (UID -> entry); ``changes`` are the requests that change something."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folders: dict[str, str] = {}
        self.dashboards: dict[str, dict[str, Any]] = {}
        self.changes: list[str] = []
        self.is_new = False
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def save(self, dashboard: dict[str, Any], folder: str, **meta: Any) -> None:
        """Store a dashboard, as Grafana does."""
        former = self.dashboards.get(dashboard["uid"], {"dashboard": {"version": 0}})
        version = former["dashboard"]["version"] + 1
        stored = {**dashboard, "id": len(self.dashboards) + 1, "version": version}
        self.dashboards[dashboard["uid"]] = {"dashboard": stored, "meta": {"folderUid": folder, **meta}}


def _convert(value: Any) -> Any:
    """What a newer release may return for a saved value."""
    if isinstance(value, dict):
        return {"addedByGrafana": 1, **{key: _convert(each) for key, each in value.items() if each}}
    return [_convert(each) for each in value] if isinstance(value, list) else value


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FakeGrafana

    def _handle(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        parts = urlsplit(self.path)
        status, answer = self._answer(parts.path.strip("/").split("/")[1:], parse_qs(parts.query), body)
        send_json(self, status, json.dumps(answer).encode())

    do_GET = do_POST = do_PUT = do_DELETE = _handle  # noqa: N815 - names of http.server

    def _answer(self, path: list[str], query: dict[str, list[str]], body: dict[str, Any]) -> tuple[int, Any]:
        server = self.server
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return 401, {"message": "Invalid API key"}
        if self.command != "GET":
            server.changes.append(f"{self.command} {'/'.join(path)}")
        if path[0] == "search":
            found = [uid for uid, each in server.dashboards.items() if each["meta"]["folderUid"] in query["folderUIDs"]]
            return 200, [{"uid": uid, "type": "dash-db"} for uid in found]
        if path[0] == "folders":
            return self._answer_folder(path[1] if len(path) > 1 else body["uid"], body)
        return self._answer_dashboard(path, body)

    def _answer_folder(self, uid: str, body: dict[str, Any]) -> tuple[int, Any]:
        folders = self.server.folders
        if self.command in ("POST", "PUT"):
            folders[uid] = body["title"]
        if uid not in folders:
            return 404, {"message": "folder not found"}
        return 200, {"uid": uid, "title": folders.pop(uid) if self.command == "DELETE" else folders[uid]}

    def _answer_dashboard(self, path: list[str], body: dict[str, Any]) -> tuple[int, Any]:
        dashboards = self.server.dashboards
        if self.command == "POST":
            if body["folderUid"] not in self.server.folders:
                return 400, {"message": "folder not found"}
            self.server.save(body["dashboard"], body["folderUid"])
            return 200, {"uid": body["dashboard"]["uid"], "status": "success"}
        if path[-1] not in dashboards:
            return 404, {"message": "Dashboard not found"}
        found = dashboards.pop(path[-1]) if self.command == "DELETE" else dashboards[path[-1]]
        return 200, {**found, "dashboard": _convert(found["dashboard"])} if self.server.is_new else found

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""
