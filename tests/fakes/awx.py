# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of AWX's API, on the loopback, for the modules that create its objects.

As AWX, it keeps only the fields that an object has, and has no relations of an approval. It refuses a job template whose playbook the project does not
have, a prompt that the job template does not allow, an inventory source of a project that names none, and to delete a credential type with credentials.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from .loopback_api import send_json

TOKEN = "token-of-a-fake"
NAMED = ("name", "description")
TEMPLATE = (*NAMED, "inventory", "limit", "extra_vars", "survey_enabled", "allow_simultaneous", "ask_limit_on_launch")
TEMPLATE = (*TEMPLATE, "ask_variables_on_launch", "ask_tags_on_launch")
JOB = ("project", "playbook", "job_type", "diff_mode", "job_slice_count", "ask_job_type_on_launch")
#: The fields of an object that a client sets.
FIELDS: dict[str, tuple[str, ...]] = {
    "organizations": NAMED,
    "inventories": (*NAMED, "organization"),
    "credentials": (*NAMED, "organization", "credential_type"),
    "credential_types": (*NAMED, "kind", "inputs", "injectors"),
    "execution_environments": (*NAMED, "organization", "image", "pull", "credential"),
    "inventory_sources": (
        *NAMED,
        "inventory",
        "source",
        "source_project",
        "source_path",
        "credential",
        "execution_environment",
        "overwrite",
        "update_on_launch",
    ),
    "projects": (*NAMED, "organization", "scm_type", "scm_url", "scm_branch", "credential"),
    "job_templates": (*TEMPLATE, *JOB, "execution_environment"),
    "workflow_job_templates": (*TEMPLATE, "organization"),
    "workflow_job_template_nodes": (
        "identifier",
        "workflow_job_template",
        "unified_job_template",
        "job_type",
        "limit",
        "extra_data",
    ),
    "workflow_approval_templates": (*NAMED, "timeout"),
}
#: Lists of related objects, which a client changes.
RELATIONS = {
    "job_templates": ("credentials",),
    "workflow_job_template_nodes": ("success_nodes", "failure_nodes", "always_nodes"),
}
SINGULAR = {"inventories": "inventory"}
RUNNABLE = ("job_templates", "workflow_job_templates", "workflow_approval_templates")
PROMPTS = {"limit": "ask_limit_on_launch", "job_type": "ask_job_type_on_launch"}
NOT_FOUND: tuple[int, Any] = (404, {"detail": "Not found."})
Object = dict[str, Any]


class FakeAwx(ThreadingHTTPServer):
    """Stores ``objects`` (ID -> object with its kind under ``_kind``); ``changes`` are the requests that change something."""

    daemon_threads = True

    def __init__(self, playbooks: Iterable[str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.playbooks = set(playbooks)
        self.objects: dict[int, Object] = {}
        self.changes: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def add(self, kind: str, /, **fields: Any) -> Object:
        """Store an object of a kind."""
        number = max(self.objects, default=0) + 1
        url = f"/api/v2/{kind}/{number}/"
        item = {key: value for key, value in fields.items() if key in FIELDS[kind]}
        item |= {"_kind": kind, "id": number, "url": url, "type": SINGULAR.get(kind, kind[:-1])}
        item |= {"summary_fields": {}, "related": {"survey_spec": f"{url}survey_spec/"}, "_survey": {}}
        item |= {f"_{name}": [] for name in RELATIONS.get(kind, ())}
        item |= {"projects": {"scm_revision": "0" * 40}, "credential_types": {"managed": False}}.get(kind, {})
        self.objects[number] = item
        return item

    def find(self, kind: str, name: str = "") -> list[Object]:
        """The objects of a kind, in the order of their creation; with a name, those of this name."""
        return [
            item
            for item in self.objects.values()
            if item["_kind"] == kind and name in {"", item.get("name"), item.get("identifier")}
        ]

    def delete(self, number: int) -> None:
        """Delete an object, with what belongs to it."""
        del self.objects[number]
        for other in [each for each in self.objects.values() if each.get("workflow_job_template") == number]:
            del self.objects[other["id"]]

    def refuse(self, kind: str, fields: Object) -> str:
        """Why AWX refuses these fields; empty if it does not."""
        if kind == "inventory_sources" and fields.get("source") == "scm" and not fields.get("source_project"):
            return "Project required for scm type sources."
        if kind == "job_templates" and fields.get("playbook", "") not in {"", *self.playbooks}:
            return "Playbook not found for project."
        template = self.objects.get(fields.get("unified_job_template") or 0, {})
        closed = [key for key, permission in PROMPTS.items() if fields.get(key) and not template.get(permission)]
        return f"{closed[0]} is not configured to prompt on launch." if template and closed else ""


def show(item: Object) -> Object:
    """An object as the API returns it."""
    return {key: value for key, value in item.items() if not key.startswith("_")}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FakeAwx

    def _handle(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        parts = urlsplit(self.path)
        path = parts.path.partition("/v2/")[2].strip("/").split("/")
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            status, answer = 401, {"detail": "Authentication credentials were not provided."}
        else:
            status, answer = self._answer(path, dict(parse_qsl(parts.query)), body)
        if self.command != "GET" and status < 300:
            self.server.changes.append(f"{self.command} {'/'.join(path)}")
        send_json(self, status, b"" if status == 204 else json.dumps(answer).encode())

    do_GET = do_POST = do_PATCH = do_DELETE = _handle  # noqa: N815 - names of http.server

    def send_response(self, code: int, message: str | None = None) -> None:
        """Add what names the product, which the modules compare with their own release."""
        super().send_response(code, message)
        self.send_header("X-API-Product-Name", "AWX")
        self.send_header("X-API-Product-Version", "24.6.1")

    def _answer(self, path: list[str], query: dict[str, str], body: Object) -> tuple[int, Any]:
        if len(path) == 1:
            return self._create(path[0], body) if self.command == "POST" else self._list(path[0], query)
        item = self.server.objects.get(int(path[1]))
        if item is None or item["_kind"] != path[0]:
            return NOT_FOUND
        if len(path) == 3:
            return self._answer_related(item, path[2], body)
        return self._answer_object(item, body)

    def _list(self, kind: str, query: dict[str, str]) -> tuple[int, Any]:
        kinds = RUNNABLE if kind == "unified_job_templates" else (kind,)
        found = [show(item) for item in self.server.objects.values() if item["_kind"] in kinds]
        for key, value in query.items():
            found = [item for item in found if str(item.get(key)) == value]
        return 200, {"count": len(found), "next": None, "results": found}

    def _create(self, kind: str, body: Object) -> tuple[int, Any]:
        if reason := self.server.refuse(kind, body):
            return 400, {"__all__": [reason]}
        item = self.server.add(kind, **body)
        if kind == "job_templates":
            item["organization"] = self.server.objects[item["project"]]["organization"]
        return 201, show(item)

    def _answer_object(self, item: Object, body: Object) -> tuple[int, Any]:
        if self.command == "DELETE":
            if any(each.get("credential_type") == item["id"] for each in self.server.objects.values()):
                return 403, {"detail": "Credential types that are in use cannot be deleted"}
            self.server.delete(item["id"])
            return 204, None
        if self.command == "PATCH":
            if reason := self.server.refuse(item["_kind"], {**item, **body}):
                return 400, {"__all__": [reason]}
            item.update({key: value for key, value in body.items() if key in FIELDS[item["_kind"]]})
        return 200, show(item)

    def _answer_related(self, item: Object, name: str, body: Object) -> tuple[int, Any]:
        if name == "survey_spec":
            item["_survey"] = body if self.command == "POST" else item["_survey"]
            return 200, item["_survey"]
        if name == "create_approval_template":
            approval = self.server.add("workflow_approval_templates", **body)
            item["unified_job_template"] = approval["id"]
            item["related"]["unified_job_template"] = approval["url"]
            return 201, show(approval)
        if f"_{name}" not in item:
            return NOT_FOUND
        numbers = item[f"_{name}"]
        if self.command == "POST":
            (numbers.remove if body.get("disassociate") else numbers.append)(body["id"])
            return 204, None
        return 200, {"count": len(numbers), "next": None, "results": [{"id": number} for number in numbers]}

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""
