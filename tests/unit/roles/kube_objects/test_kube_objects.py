# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects whose kind the API server does not have, and namespaces that the role creates."""

from __future__ import annotations

import pytest
from fakes import small_cluster
from fakes.loopback_api import serve_in_thread, write_kubeconfig

LABELS = {"app.kubernetes.io/managed-by": "gpu.kubernetes"}
POLICY = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicy",
    "metadata": {"name": "policy", "labels": LABELS},
    "spec": {"failurePolicy": "Fail"},
}


def make_namespace(name, **labels):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {**LABELS, **labels}}}


@pytest.fixture
def apply(refusals, tmp_path):
    """Run task files of the role on a cluster: the error message, or empty."""

    def run(server, *parts, **variables):
        extra = {
            "cluster": str(write_kubeconfig(server.url, tmp_path / "kubeconfig")),
            **{f"kube_objects_{key}": value for key, value in variables.items()},
        }
        connection = {"kubeconfig": "{{ cluster }}"}
        groups = dict.fromkeys(("group/gpu.kubernetes.api", "group/kubernetes.core.k8s"), connection)
        return refusals("kube_objects", parts, {"h": {}}, extra=extra, module_defaults=groups)["h"]

    return run


def test_objects_of_an_unknown_kind_are_left_out(apply, monkeypatch):
    """The scenarios have a cluster with all kinds."""
    kinds = {group: plurals for group, plurals in small_cluster.KINDS.items() if "admission" not in group}
    monkeypatch.setattr(small_cluster, "KINDS", kinds)
    maps = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n", "labels": LABELS}}
        for name in ("one", "two")
    ]
    with serve_in_thread(small_cluster.SmallCluster(make_namespace("n"))) as server:
        assert not apply(server, "check", "main", owned=[POLICY, *maps])
        assert set(server.objects) == {("Namespace", "", "n"), ("ConfigMap", "n", "one"), ("ConfigMap", "n", "two")}
        assert not apply(server, "main", owned=[POLICY, *maps], state="absent", wait_timeout=5)
        assert {kind for kind, _place, _name in server.objects} == {"Namespace"}


def test_created_namespace_has_a_level_of_pod_security(apply):
    level = "pod-security.kubernetes.io/enforce"
    with serve_in_thread(small_cluster.SmallCluster(make_namespace("there"))) as server:
        shared = [make_namespace("there"), make_namespace("new"), make_namespace("own", **{level: "restricted"})]
        assert not apply(server, "main", shared=shared)
        labels = {item["metadata"]["name"]: item["metadata"]["labels"] for item in server.all("Namespace")}
    assert {name: found.get(level) for name, found in labels.items()} == {
        "there": None,
        "new": "privileged",
        "own": "restricted",
    }
    assert labels["new"].items() >= LABELS.items()


def test_only_an_object_that_someone_changed_is_applied_again(apply):
    desired = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "one", "namespace": "n", "labels": LABELS},
        "data": {"key": "desired"},
    }
    with serve_in_thread(small_cluster.SmallCluster(make_namespace("n"))) as server:
        assert not apply(server, "main", owned=[desired])
        found = server.objects["ConfigMap", "n", "one"]
        assert found["data"] == {"key": "desired"}
        reads = []
        server.before_read = reads.append
        assert not apply(server, "main", owned=[desired])
        assert len(reads) == 1
        found["data"]["key"] = "changed"
        assert not apply(server, "main", owned=[desired])
        assert server.objects["ConfigMap", "n", "one"]["data"] == {"key": "desired"}
