# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command reads a cluster, which needs the API client of the controller."""

from __future__ import annotations

import socket

import pytest

pytest.importorskip("kubernetes")

from fakes import small_cluster
from fakes.loopback_api import serve_in_thread, write_kubeconfig

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._lint.live import (
    TEMPLATES,
    read_facts,
    read_templates,
    read_workloads,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._lint.test_manifests import BAD, run


def test_command_reads_a_live_cluster(capsys, tmp_path):
    node = {"kind": "Node", "metadata": {"name": "a"}, "status": {"allocatable": {"nvidia.com/gpu": "1"}}}
    container = {"name": "main", "image": "busybox", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    pod = {"kind": "Pod", "metadata": {"name": "train", "namespace": "team"}, "spec": {"containers": [container]}}
    path = tmp_path / "pod.yaml"
    path.write_text(BAD.replace("500m", "3"))
    with serve_in_thread(small_cluster.SmallCluster(node, pod)) as server:
        kubeconfig = str(write_kubeconfig(server.url, tmp_path / "kubeconfig"))
        status, text, _errors = run(capsys, "--live", "--kubeconfig", kubeconfig)
        assert (status, f"{server.url}:1: error GPU014 Pod/team/train asks for 2" in text) == (1, True)
        status, text, _errors = run(capsys, path, "--kubeconfig", kubeconfig)
        assert (status, "asks for 3" in text, "asks for 2" in text) == (1, True, False)


def test_command_exits_with_3_for_a_cluster_that_does_not_answer(capsys, tmp_path):
    with socket.socket() as closed:  # bound and not listening: connections are refused
        closed.bind(("127.0.0.1", 0))
        kubeconfig = write_kubeconfig(f"http://127.0.0.1:{closed.getsockname()[1]}", tmp_path / "kubeconfig")
        status, text, errors = run(capsys, "--live", "--kubeconfig", kubeconfig)
    assert (status, text, "cannot be reached" in errors) == (3, "", True)


class Lists:
    """A fake of the API client that has *objects* by API version and kind, and answers with *status* for any other kind."""

    server = "https://api.example.com"

    def __init__(self, status=404, **objects):
        self.status, self.objects_by_kind, self.calls = status, objects, []

    def objects(self, api_version, kind, namespace=""):
        self.calls.append((api_version, kind, namespace))
        found = self.objects_by_kind.get(f"{api_version} {kind}")
        if found is None:
            raise ApiError(f"no {kind}", self.status)
        return found


def make_set(name, replicas, created, owner=None):
    owners = {"ownerReferences": [{"kind": owner, "name": "web", "uid": "u1"}]} if owner else {}
    metadata = {"name": name, "uid": name, "creationTimestamp": f"2026-01-0{created}T00:00:00Z", **owners}
    return {"kind": "ReplicaSet", "metadata": metadata, "spec": {"replicas": replicas}}


@pytest.mark.parametrize(
    ("sets", "read"),
    [
        # A Deployment is read itself.
        ([make_set("web-1", 1, 1, "Deployment")], []),
        # Of the revisions of a custom resource, the running one counts, else the newest.
        ([make_set("web-1", 1, 1, "Rollout"), make_set("web-2", 0, 2, "Rollout")], ["web-1"]),
        ([make_set("web-1", 0, 1, "Rollout"), make_set("web-2", 0, 2, "Rollout")], ["web-2"]),
        ([make_set("a", 0, 1), make_set("b", 0, 1)], ["a", "b"]),
    ],
)
def test_replica_sets_are_read_but_for_those_of_deployments(sets, read):
    pod = {"kind": "Pod", "metadata": {"name": "p", "ownerReferences": [{"kind": "ReplicaSet", "name": "web-1"}]}}
    cluster = Lists(**{"apps/v1 ReplicaSet": sets, "v1 Pod": [pod]})
    assert [each.object["metadata"]["name"] for each in read_workloads(cluster, [])] == read


def test_classes_and_claims_of_older_versions_are_read():
    item = {"metadata": {"name": "gpu"}}
    cluster = Lists(
        **{"resource.k8s.io/v1beta1 DeviceClass": [item], "resource.k8s.io/v1beta2 ResourceClaimTemplate": [item]}
    )
    assert read_facts(cluster)["device_classes"] == [item]
    assert [each.object for each in read_workloads(cluster, ["team"])] == [item]


def test_templates_are_one_list_of_each_kind_and_none_without_the_right():
    cluster = Lists(**{"batch/v1 CronJob": [{"kind": "CronJob", "metadata": {"name": "nightly", "uid": "1"}}]})
    assert [each.kind for each in read_templates(cluster)] == ["CronJob"]
    assert len(cluster.calls) == len(TEMPLATES)
    assert read_templates(Lists(status=403)) == []
    with pytest.raises(ApiError):
        read_templates(Lists(status=500))
