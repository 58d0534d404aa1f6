# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module: parameters, results and failures."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from fakes.kubernetes_api import FakeCluster, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.modules import objects_info


@pytest.fixture
def run(run_module: Any) -> Any:
    return partial(run_module, objects_info)


def query(kind: str = "Pod", **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": meta, "spec": "does not count"}


def test_results_are_in_order_of_objects(run: Any) -> None:
    first = pod("a", namespace="ns", labels={"app": "x"})
    first["metadata"]["managedFields"] = [{"manager": "m"}]
    cluster = FakeCluster([], [first, pod("b", namespace="ns", labels={"app": "x"})])
    result = run(
        cluster,
        objects=[
            query(name="a", namespace="ns"),
            query("Secret", name="none", namespace="ns"),
            query(namespace="ns", labels={"app": "x"}),
            query(namespace="other"),
        ],
    )
    assert result["changed"] is False
    assert [[item["metadata"]["name"] for item in found] for found in result["found"]] == [["a"], [], ["a", "b"], []]
    assert "managedFields" not in result["found"][0][0]["metadata"]


def test_pods_are_selected_by_node(run: Any) -> None:
    cluster = FakeCluster([], [pod("a", on="w1"), pod("b", on="w2")])
    result = run(cluster, objects=[{**query(), "spec": {"nodeName": "w2"}}])
    assert [item["metadata"]["name"] for item in result["found"][0]] == ["b"]


@pytest.mark.parametrize("bad", [{}, {"kind": "Pod"}, {"apiVersion": "v1", "kind": "Pod", "metadata": "name"}])
def test_object_without_kind_fails(run: Any, bad: dict[str, Any]) -> None:
    assert "must each have apiVersion, kind and metadata" in run(FakeCluster(), objects=[bad])["msg"]


def test_namespaces_list_unmanaged_objects(run: Any) -> None:
    label = {"app.kubernetes.io/managed-by": "gpu.kubernetes"}
    cluster = FakeCluster()
    cluster.contents["a"] = [{"kind": "Secret", "metadata": {"name": "unmanaged"}}]
    namespaces = [{"kind": "Namespace", "metadata": {"name": name, "labels": label}} for name in ("a", "b")]
    assert run(cluster, namespaces=namespaces)["tenants"] == {
        "a": ["Secret unmanaged"],
        "b": ["objects that cannot be listed (cannot list widgets)"],
    }


def test_unknown_kind_fails_unless_allowed(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = FakeCluster([], [pod("a")])
    requested: list[str] = []

    def objects(_version: str, kind: str, **more: Any) -> list[dict[str, Any]]:
        requested.append(more["fields"])
        if kind == "Pod":
            return cluster.pods()
        raise ApiError(f"no {kind}", status=404 if kind == "ResourceSlice" else 403)

    monkeypatch.setattr(cluster, "objects", objects)
    slices = {**query("ResourceSlice"), "spec": {"driver": "gpu.nvidia.com"}}
    result = run(cluster, objects=[slices, query()], unknown_kinds="none")
    assert [len(found) for found in result["found"]] == [0, 1]
    assert requested == ["spec.driver=gpu.nvidia.com", ""]
    assert run(cluster, objects=[slices])["msg"] == "no ResourceSlice"
    assert run(cluster, objects=[query("Secret")], unknown_kinds="none")["msg"] == "no Secret"
