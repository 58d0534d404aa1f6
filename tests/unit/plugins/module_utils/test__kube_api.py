# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a failing client is turned into."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("ansible.module_utils.basic")
pytest.importorskip("kubernetes")

from ansible_collections.gpu.kubernetes.plugins.module_utils import _kube_api as api

SERVER = "https://api.test:6443"


class HttpError(Exception):
    def __init__(self, status: int, message: str = "") -> None:
        super().__init__(message)
        self.status, self.reason = status, "Reason"
        self.body = json.dumps({"message": message}) if message else None


class Wrapped(Exception):
    def __init__(self, reason: Exception) -> None:
        super().__init__("Max retries exceeded")
        self.reason = reason


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (Wrapped(OSError(111, "Connection refused")), 0, ["cannot be reached", "Connection refused", "gpu_kubeconfig"]),
        (TimeoutError("no answer within 30 s"), 0, ["no answer within 30 s"]),
        (HttpError(401), 401, ["answered 401: Reason; renew the credentials"]),
        (
            HttpError(403, f'pods is forbidden: User "{"u" * 300}" cannot list resource "pods" in API group ""'),
            403,
            ["answered 403: pods is forbidden", "allow this account list on pods by a role (RBAC)"],
        ),
        (
            HttpError(403, 'pods "p" is forbidden: User "u" cannot get resource "pods/log" in API group "" in the ns'),
            403,
            ["allow this account get on pods/log"],
        ),
        (HttpError(403, 'pods "p" is forbidden: violates PodSecurity'), 403, ["answered 403: pods", "PodSecurity."]),
        (HttpError(500, "a\nb"), 500, ["answered 500: a b."]),
        (HttpError(403, "RuntimeClass not found."), 403, ["answered 403: RuntimeClass not found."]),
        (HttpError(500, "boom"), 500, ["answered 500: boom."]),
    ],
)
def test_explain(error: Exception, status: int, words: list[str]) -> None:
    found = api.explain(error, SERVER)
    assert found.status == status
    for word in [*words, SERVER]:
        assert word in str(found)
    assert "\n" not in str(found)


class Answer:
    def __init__(self, data: Any) -> None:
        self.data = data if isinstance(data, bytes) else json.dumps(data).encode()


class Client:
    """As much of kubernetes.client.ApiClient as the calls touch before a request is sent."""

    class configuration:  # noqa: N801
        host = SERVER
        client_side_validation = True


def cluster() -> api.Cluster:
    return api.Cluster(Client())


def test_lists_are_read_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    pages = [{"items": [{"n": 1}], "metadata": {"continue": "t"}}, {"items": [{"n": 2}], "metadata": {}}]

    def list_node(**options: Any) -> Answer:
        asked.append(options)
        return Answer(pages[len(asked) - 1])

    found = cluster()
    monkeypatch.setattr(found._core, "list_node", list_node)
    assert found.nodes() == [{"n": 1}, {"n": 2}]
    assert [options.get("_continue") for options in asked] == [None, "t"]
    assert all(options["limit"] == api.PAGE and options["_preload_content"] is False for options in asked)


def test_deleting_what_is_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cluster()

    def gone(*_args: Any, **_options: Any) -> None:
        raise HttpError(404, "not found")

    monkeypatch.setattr(found._core, "delete_namespaced_pod", gone)
    found.delete_pod("default", "p")


def test_a_log_survives_bytes_that_are_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cluster()
    monkeypatch.setattr(found._core, "read_namespaced_pod_log", lambda *_args, **_options: Answer(b"ok\xff\n"))
    assert found.pod_log("default", "p", 10) == "ok\ufffd\n"


@pytest.mark.parametrize("status", [400, 403])
def test_a_log_that_cannot_be_read_is_an_error(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    found = cluster()

    def refuse(*_args: Any, **_options: Any) -> None:
        raise HttpError(status, "no")

    monkeypatch.setattr(found._core, "read_namespaced_pod_log", refuse)
    with pytest.raises(api.ApiError) as caught:
        found.pod_log("default", "p", 10)
    assert caught.value.status == status


def test_giving_up_on_a_silent_server() -> None:
    with pytest.raises(TimeoutError):
        api._within(0, lambda: __import__("time").sleep(0.2))
    assert api._within(5, lambda: 7) == 7
    with pytest.raises(ValueError, match="x"):
        api._within(5, lambda: int("x"))
