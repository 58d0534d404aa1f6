# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of the API server, and the errors of its client."""

from __future__ import annotations

import json
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from lab import wait

pytest.importorskip("ansible.module_utils.basic")
pytest.importorskip("kubernetes")

from ansible_collections.gpu.kubernetes.plugins.module_utils import _kube_api as api
from ansible_collections.gpu.kubernetes.plugins.module_utils import _kube_error as errors

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
        (HttpError(410, "too old"), 410, ["answered 410: too old; run again when the API server"]),
        (HttpError(500, "a\nb"), 500, ["answered 500: a b."]),
        (HttpError(403, "RuntimeClass not found."), 403, ["answered 403: RuntimeClass not found."]),
        (HttpError(500, "boom"), 500, ["answered 500: boom."]),
    ],
)
def test_explain_error_of_each_exception(error: Exception, status: int, words: list[str]) -> None:
    found = errors.explain_error(error, SERVER)
    assert found.status == status
    for word in [*words, SERVER]:
        assert word in str(found)
    assert "\n" not in str(found)


class Client:
    """The used part of kubernetes.core's dynamic client: it returns answers in turn or raises, and records requests."""

    class configuration:  # noqa: N801
        host = SERVER

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requested: list[tuple[str, str, dict[str, Any]]] = []
        self.resources: Any = None

    def request(self, method: str, path: str, **options: Any) -> Any:
        assert options.pop("serialize") is False
        assert options.pop("_request_timeout") == api.REQUEST_TIMEOUT
        self.requested.append((method, path, options))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return SimpleNamespace(data=data, read=lambda limit: data[:limit], close=lambda: None)


def test_list_is_read_by_pages() -> None:
    client = Client({"items": [{"n": 1}], "metadata": {"continue": "t"}}, {"items": [{"n": 2}], "metadata": {}})
    assert api.Cluster(client).nodes() == [{"n": 1}, {"n": 2}]
    assert client.requested == [
        ("get", "/api/v1/nodes", {"limit": api.PAGE, "_continue": token}) for token in (None, "t")
    ]


def test_gather_keeps_returned_values() -> None:
    client = Client({"items": [{"n": 1}, {"n": 2}], "metadata": {"continue": "t"}}, {"items": [{"n": 3}]})
    assert api.Cluster(client).gather("pods", lambda pod: pod["n"] if pod["n"] != 2 else None, "a=b") == [1, 3]
    assert [options["field_selector"] for _method, _path, options in client.requested] == ["a=b", "a=b"]


def test_list_that_has_expired_is_read_again_once() -> None:
    first, last = {"items": [{"n": 1}], "metadata": {"continue": "t"}}, {"items": [{"n": 2}]}
    client = Client(first, HttpError(410), first, last)
    assert api.Cluster(client).nodes() == [{"n": 1}, {"n": 2}]
    client = Client(first, HttpError(410), first, HttpError(410), first)
    with pytest.raises(api.ApiError) as caught:
        api.Cluster(client).nodes()
    assert caught.value.status == 410
    assert len(client.requested) == 4


@pytest.mark.parametrize(
    ("options", "path", "labels", "fields"),
    [
        ({}, "/api/v1/pods", None, None),
        ({"namespace": "ns"}, "/api/v1/namespaces/ns/pods", None, None),
        ({"labels": {"b": "2", "a": "1"}}, "/api/v1/pods", "a=1,b=2", None),
        ({"namespace": "a?b/c"}, "/api/v1/namespaces/a%3Fb%2Fc/pods", None, None),
        ({"fields": "spec.nodeName=n"}, "/api/v1/pods", None, "spec.nodeName=n"),
    ],
)
def test_pods_with_selectors_are_selected_by_the_server(
    options: dict[str, Any], path: str, labels: str | None, fields: str | None
) -> None:
    client = Client({"items": []})
    assert api.Cluster(client).pods(**options) == []
    more = {"limit": api.PAGE, "_continue": None}
    assert client.requested == [("get", path, {**more, "label_selector": labels, "field_selector": fields})]


class Resources:
    """The used part of the discovery: pods have a namespace."""

    @staticmethod
    def get(api_version: str, kind: str) -> Any:
        if kind == "Nothing":
            raise api.ResourceNotFoundError
        if kind == "Unreachable":
            raise Wrapped(OSError(111, "Connection refused"))

        def path(name: str | None = None, namespace: str | None = None) -> str:
            parts = ["namespaces", namespace] if namespace else []
            return "/".join([f"/api/{api_version}", *parts, f"{kind.lower()}s", *([name] if name else [])])

        return SimpleNamespace(path=path)


def test_objects_by_name_or_labels() -> None:
    client = Client({"kind": "Pod"}, HttpError(404, "not found"), {"items": [{"n": 1}]})
    client.resources = Resources
    cluster = api.Cluster(client)
    assert cluster.objects("v1", "Pod", name="a/b", namespace="ns") == [{"kind": "Pod"}]
    assert cluster.objects("v1", "Pod", name="gone", namespace="ns") == []
    assert cluster.objects("v1", "Pod", labels={"b": "2", "a": "1"}) == [{"apiVersion": "v1", "kind": "Pod", "n": 1}]
    assert [path for _method, path, _options in client.requested] == [
        "/api/v1/namespaces/ns/pods/a%2Fb",
        "/api/v1/namespaces/ns/pods/gone",
        "/api/v1/pods",
    ]
    assert client.requested[2][2]["label_selector"] == "a=1,b=2"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("Nothing", "has no Nothing of v1; correct it"),
        ("Unreachable", "cannot be reached ([Errno 111] Connection refused)"),
    ],
)
def test_objects_of_unknown_kind_raise(kind: str, words: str) -> None:
    client = Client()
    client.resources = Resources
    with pytest.raises(api.ApiError) as caught:
        api.Cluster(client).objects("v1", kind, name="a")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("answers", "found", "requests"),
    [
        ([HttpError(404)], [], 1),
        # Another product of the vendor.
        ([{"resources": [{"name": "others"}]}], [], 1),
        ([{"resources": [{"name": "clusterpolicies"}]}, {"items": [{"spec": {}}]}], [{"spec": {}}], 2),
    ],
)
def test_cluster_policies_are_listed_where_the_api_has_them(answers: Any, found: Any, requests: int) -> None:
    client = Client(*answers)
    assert api.Cluster(client).cluster_policies() == found
    assert len(client.requested) == requests


def test_gpu_clusters_are_listed_by_their_version() -> None:
    client = Client({"resources": [{"name": "gpuclusters"}]}, {"items": [{"spec": {}}]})
    assert api.Cluster(client).gpu_clusters() == [{"spec": {}}]
    assert [each[1] for each in client.requested] == [
        "/apis/nvidia.com/v1alpha1",
        "/apis/nvidia.com/v1alpha1/gpuclusters",
    ]


def test_cluster_policies_that_may_not_be_listed_raise() -> None:
    client = Client({"resources": [{"name": "clusterpolicies"}]}, HttpError(403))
    with pytest.raises(api.ApiError):
        api.Cluster(client).cluster_policies()
    with pytest.raises(api.ApiError):
        api.Cluster(Client(HttpError(503))).cluster_policies()


def test_patch_node_sends_merge_patch() -> None:
    client = Client({"metadata": {}})
    api.Cluster(client).patch_node("n", {"metadata": {"labels": {"a": None}}})
    [(method, path, options)] = client.requested
    assert (method, path, options["content_type"]) == ("patch", "/api/v1/nodes/n", "application/merge-patch+json")
    assert options["body"] == {"metadata": {"labels": {"a": None}}}


def test_delete_pod_that_does_not_exist_succeeds() -> None:
    client = Client(HttpError(404, "not found"))
    api.Cluster(client).delete_pod("default", "p")
    assert client.requested == [("delete", "/api/v1/namespaces/default/pods/p", {})]


@pytest.mark.parametrize(
    ("grace", "more"), [(None, {}), (0, {"gracePeriodSeconds": 0}), (9, {"gracePeriodSeconds": 9})]
)
def test_evict_pod_sends_uid_and_grace_period(grace: int | None, more: dict[str, int]) -> None:
    client = Client({"kind": "Status"})
    api.Cluster(client).evict_pod("ns", "p", "uid-1", grace)
    [(method, path, options)] = client.requested
    assert (method, path) == ("post", "/api/v1/namespaces/ns/pods/p/eviction")
    assert options["body"] == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "p", "namespace": "ns"},
        "deleteOptions": {"preconditions": {"uid": "uid-1"}, **more},
    }


def test_evict_pod_as_dry_run_sends_it_twice() -> None:
    """Webhooks read the query, the server reads the body."""
    client = Client({"kind": "Status"})
    api.Cluster(client).evict_pod("ns", "p", "uid-1", dry_run=True)
    [(_method, _path, options)] = client.requested
    assert options["query_params"] == [("dryRun", "All")]
    assert options["body"]["deleteOptions"] == {"preconditions": {"uid": "uid-1"}, "dryRun": ["All"]}


@pytest.mark.parametrize(
    ("details", "causes"),
    [
        (
            {"causes": [{"reason": "DisruptionBudget", "message": "The budget web needs 1."}]},
            {"DisruptionBudget": "The budget web needs 1"},
        ),
        ({"causes": None}, {}),
        ({"causes": [{"message": "no reason"}]}, {}),
        (None, {}),
        ("text", {}),
    ],
)
def test_explain_error_keeps_causes_of_the_server(details: Any, causes: dict[str, str]) -> None:
    error = HttpError(429)
    error.body = json.dumps({"message": "no", "details": details})
    assert errors.explain_error(error, SERVER).causes == causes


def test_explain_error_with_missing_right_names_it() -> None:
    result = (
        'pods "p" is forbidden: User "u" cannot create resource "pods/eviction" in API group "" in the namespace "d"'
    )
    assert errors.explain_error(HttpError(403, result), SERVER).causes == {errors.MISSING_RIGHT: "create pods/eviction"}


@pytest.mark.parametrize(
    ("options", "query"),
    [({}, []), ({"previous": True}, [("previous", "true")])],
)
def test_pod_log_with_invalid_bytes_is_decoded(options: dict[str, Any], query: list[tuple[str, Any]]) -> None:
    client = Client(b"ok\xff\n")
    assert api.Cluster(client).pod_log("default", "p", 10, **options) == "ok\ufffd\n"
    query = [("tailLines", 10), ("limitBytes", api.LOG_BYTES), *query]
    assert client.requested == [("get", "/api/v1/namespaces/default/pods/p/log", {"query_params": query})]


def test_pod_log_of_any_length_is_read_up_to_the_limit() -> None:
    """A kubelet may ignore the limit of the request."""
    log = api.Cluster(Client(b"x" * (api.LOG_BYTES + 1))).pod_log("default", "p", 10)
    assert len(log) == api.LOG_BYTES


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (b"<html>Sign in</html>", "is not JSON"),
        (b"", "is not JSON"),
        (b"[" * 100000, "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        (b"null", "is not an object"),
        (b"[]", "is not an object"),
        (b"7", "is not an object"),
        (b'"text"', "is not an object"),
        (b'{"items": "abc"}', "is not a list of objects"),
        (b'{"items": [null]}', "is not a list of objects"),
        (b'{"items": [], "metadata": "abc"}', "is not a list of objects"),
    ],
)
def test_answer_of_another_program_raises_one_sentence(answer: bytes, fault: str) -> None:
    with pytest.raises(api.ApiError) as caught:
        api.Cluster(Client(answer)).nodes()
    assert f"The answer of {SERVER} to /api/v1/nodes {fault}" in str(caught.value)
    assert not caught.value.is_transient
    assert str(caught.value).isprintable()


def test_explain_error_without_control_characters() -> None:
    error = HttpError(500, "\x1b[2Jbad\u202e")
    assert "answered 500: \\x1b[2Jbad\\u202e." in str(errors.explain_error(error, SERVER))
    deep = HttpError(500)
    deep.body = "[" * 100000
    assert "answered 500: Reason." in str(errors.explain_error(deep, SERVER))


def test_namespace_contents_lists_metadata_of_all_kinds() -> None:
    verbs = ["get", "list", "create", "delete"]

    def resource(name: str, kind: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "kind": kind, "namespaced": True, "verbs": verbs, **more}

    groups = [
        {
            "preferredVersion": {"groupVersion": "a.io/v1"},
            "versions": [{"groupVersion": "a.io/v1beta1"}, {"groupVersion": "a.io/v1"}],
        },
        {"preferredVersion": {"groupVersion": "metrics.k8s.io/v1"}, "versions": []},
    ]
    core = [
        resource("secrets", "Secret"),
        resource("nodes", "Node", namespaced=False),
        resource("bindings", "Binding", verbs=["create"]),
        resource("pods/status", "Pod", verbs=["get", "patch"]),
    ]
    client = Client(
        {"groups": groups},
        {"resources": core},
        {"resources": [resource("widgets", "Widget")]},
        {"resources": [resource("widgets", "Widget"), resource("olds", "Old")]},
        {"resources": [resource("pods", "PodMetrics", verbs=["get", "list"])]},
        {"items": [{"metadata": {"name": "s"}, "data": {"password": "x"}}]},
        {"items": [{"metadata": {"name": "w"}}]},
        {"items": []},
    )
    assert api.Cluster(client).namespace_contents("a b") == [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
        {"apiVersion": "a.io/v1", "kind": "Widget", "metadata": {"name": "w"}},
    ]
    lists = [(path, options["header_params"]) for _method, path, options in client.requested if "limit" in options]
    assert lists == [
        (path, {"Accept": "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"})
        for path in (
            "/api/v1/namespaces/a%20b/secrets",
            "/apis/a.io/v1/namespaces/a%20b/widgets",
            "/apis/a.io/v1beta1/namespaces/a%20b/olds",
        )
    ]


@pytest.mark.parametrize("status", [400, 403])
def test_pod_log_that_cannot_be_read_raises(status: int) -> None:
    with pytest.raises(api.ApiError) as caught:
        api.Cluster(Client(HttpError(status, "no"))).pod_log("default", "p", 10)
    assert caught.value.status == status


def test_connect_to_silent_server_times_out() -> None:
    silent = threading.Event()
    with pytest.raises(TimeoutError):
        api._call_with_timeout(0, silent.wait)
    silent.set()
    assert api._call_with_timeout(wait.LIMIT, lambda: 7) == 7
    with pytest.raises(ValueError, match="x"):
        api._call_with_timeout(wait.LIMIT, lambda: int("x"))
