# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module: parameters and results, and its requests to an API server over HTTP."""

from __future__ import annotations

import gc
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Iterator

import pytest
import yaml

pytest.importorskip("kubernetes")

from fakes.gpushare import share_node, share_pod
from fakes.kubernetes_api import FakeCluster
from fakes.loopback_api import LoopbackApi, encode_list, serve_in_thread, write_kubeconfig

from ansible_collections.gpu.kubernetes.plugins.modules import gpushare_info

OBJECTS = (
    [share_node("w1"), share_node("w2", 640, 8)],
    [
        share_pod("a"),
        share_pod("b", amounts=(5,)),
        share_pod("c", on="w2", index=7, amounts=(40,)),
    ],
)


@pytest.fixture
def run(run_module: Any) -> Any:
    return partial(run_module, gpushare_info)


def test_allocation_is_returned(run: Any) -> None:
    result = run(FakeCluster(*OBJECTS))
    assert {*result} - {"changed", "invocation"} == {*yaml.safe_load(gpushare_info.RETURN)}
    assert result["changed"] is False
    assert [node["percent"] for node in result["nodes"]] == [50, 6]
    assert [pod["name"] for pod in result["nodes"][0]["pods"]] == ["a", "b"]
    assert result["cluster"] == {"allocated": 48, "total": 656, "percent": 7}
    assert gc.isenabled()


def test_options_are_passed_on(run: Any) -> None:
    result = run(FakeCluster(*OBJECTS), node="w2", unit="MiB", pods=False)
    assert [node["name"] for node in result["nodes"]] == ["w2"]
    assert "pods" not in result["nodes"][0]
    assert result["unit"] == "MiB"


def test_unknown_node_fails(run: Any) -> None:
    result = run(FakeCluster(*OBJECTS), node="w9")
    assert result["failed"] is True
    assert result["msg"].startswith("There is no node w9 in the cluster; ")
    assert gc.isenabled()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Return serve(nodes, pods): an API server, and a kubeconfig that leads to it."""
    with ExitStack() as stack:

        def start(nodes: list[Any], pods: list[Any]) -> tuple[LoopbackApi, str]:
            lists = {"/api/v1/nodes": encode_list(nodes), "/api/v1/pods": encode_list(pods)}
            server = stack.enter_context(serve_in_thread(LoopbackApi(lists)))
            return server, str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))

        yield start


@pytest.fixture
def run_over_http(run: Any) -> Callable[..., dict[str, Any]]:
    """Run the module on the cluster of a kubeconfig, over HTTP."""
    connect = gpushare_info.connect

    def run_on(kubeconfig: str, **arguments: Any) -> dict[str, Any]:
        cluster = connect(SimpleNamespace(params={"kubeconfig": kubeconfig}, fail_json=pytest.fail))
        return dict(run(cluster, **arguments))

    return run_on


MANY = [share_pod(f"p{number:04}", on=f"w{number % 2 + 1}", amounts=(1,)) for number in range(1100)]


def pages(server: Any) -> list[tuple[str, str]]:
    return [(path.rpartition("/")[2], query.get("continue", "")) for _method, path, query in server.requests]


def test_lists_are_read_completely_and_once(serve: Any, run_over_http: Any) -> None:
    nodes = [*OBJECTS[0], *(share_node(f"x{number}", None, None) for number in range(600))]
    server, kubeconfig = serve(nodes, MANY)
    result = run_over_http(kubeconfig=kubeconfig)
    assert [node["allocated"] for node in result["nodes"]] == [550, 550]
    assert sorted(pages(server)) == [("nodes", ""), ("nodes", "500"), ("pods", ""), ("pods", "1000"), ("pods", "500")]
    assert {method for method, _path, _query in server.requests} == {"GET"}
    assert {query["limit"] for _method, _path, query in server.requests} == {"500"}


def test_node_limits_the_requests(serve: Any, run_over_http: Any) -> None:
    server, kubeconfig = serve(OBJECTS[0], MANY[:10])
    result = run_over_http(kubeconfig=kubeconfig, node="w2")
    assert [(node["name"], node["allocated"]) for node in result["nodes"]] == [("w2", 5)]
    requested = {path: query.get("fieldSelector") for _method, path, query in server.requests}
    unfinished = "status.phase!=Succeeded,status.phase!=Failed"
    assert requested == {
        "/api/v1/nodes": "metadata.name=w2",
        "/api/v1/pods": f"{unfinished},spec.nodeName=w2",
    }


def test_expired_list_is_read_again(serve: Any, run_over_http: Any) -> None:
    server, kubeconfig = serve(OBJECTS[0], MANY)
    # The nodes are one request, the pods' pages the second to the fourth.
    server.expire = lambda _path, number: number == 4
    result = run_over_http(kubeconfig=kubeconfig)
    assert result["cluster"]["allocated"] == 1100
    assert pages(server)[1:] == [("pods", token) for token in ("", "500", "1000", "", "500", "1000")]


def test_list_that_expires_repeatedly_fails(serve: Any, run_over_http: Any) -> None:
    server, kubeconfig = serve(OBJECTS[0], MANY)
    server.expire = lambda path, _number: path.endswith("pods")
    result = run_over_http(kubeconfig=kubeconfig)
    assert result["failed"] is True
    assert result["msg"] == (
        f"The Kubernetes API at {server.url} answered 410: The provided continue parameter is too old to display a consistent "
        "list result; run again when the API server and the network are less busy."
    )
    assert len(pages(server)) == 5
