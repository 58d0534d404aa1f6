# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions.managed import (
    OWNERS,
    add_test,
    describe_cluster,
    find_owner,
    find_plugins,
)

GPU = "nvidia.com/gpu"
OPT_OUT = {"gke-no-default-nvidia-gpu-device-plugin": "true"}


def node(
    version: str = "v1.34.4",
    labels: t.Any = None,
    image: str = "Debian",
    name: str = "n1",
    gpus: tuple[int, int] = (0, 0),
) -> dict[str, t.Any]:
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "status": {
            "nodeInfo": {"kubeletVersion": version, "osImage": image},
            "capacity": {GPU: str(gpus[0])},
            "allocatable": {GPU: str(gpus[1])},
        },
    }


def daemon_set(path: str, name: str = "plugin") -> dict[str, t.Any]:
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": path}}]
    return {"metadata": {"name": name, "namespace": "gpu"}, "spec": {"template": {"spec": {"volumes": volumes}}}}


@pytest.mark.parametrize(
    ("found", "groups", "name"),
    [
        (node("v1.31.4-eks-2d5f260"), (), "EKS"),
        (node("v1.31.4-eks-2d5f260", image="Bottlerocket OS 1.32.0"), (), "EKS with Bottlerocket"),
        (node("v1.31.4-eks-2d5f260", {"eks.amazonaws.com/compute-type": "auto"}), (), "EKS Auto Mode"),
        (node("v1.31.4-gke.1183000"), (), "GKE"),
        (node("v1.31.4", {"kubernetes.azure.com/cluster": "MC_a_b_c"}), (), "AKS"),
        (node("v1.31.4"), ("apps", "config.openshift.io"), "OpenShift"),
        (node("v1.31.4", {"eks.amazonaws.com/compute-type": "auto"}), ("apps",), None),
        (node("v1.31.4+k3s1"), (), None),
        ({"metadata": {"name": "new"}}, (), None),
    ],
)
def test_find_owner_reads_version_image_labels_and_groups(
    found: dict[str, t.Any], groups: tuple[str, ...], name: str | None
) -> None:
    owner = find_owner(found, groups)
    assert (owner.name if owner else None) == name


def test_each_row_has_a_mark_and_an_owner_of_each_part() -> None:
    for row in OWNERS:
        assert any((row.kubelet, row.image, row.label, row.api_group))
        assert all((row.driver, row.plugin))
    assert len({row.name for row in OWNERS}) == len(OWNERS)


@pytest.mark.parametrize(
    ("path", "is_found"),
    [
        ("/var/lib/kubelet/device-plugins", True),
        ("/var/lib/kubelet/device-plugins/", True),
        ("/var/lib/kubelet", False),
    ],
)
def test_find_plugins_by_the_folder_that_they_mount(path: str, is_found: bool) -> None:
    assert find_plugins([daemon_set(path)]) == (["gpu/plugin"] if is_found else [])
    assert find_plugins([{"metadata": {"name": "x"}, "spec": {"template": {"spec": {}}}}]) == []


@pytest.mark.parametrize(
    ("nodes", "daemon_sets", "words"),
    [
        (
            [node("v1.31.4-eks-1")],
            [],
            ["EKS (1 nodes): driver and toolkit are owned by the image", "EKS: no DaemonSet mounts"],
        ),
        ([node("v1.31.4-eks-1")], [daemon_set("/var/lib/kubelet/device-plugins")], ["EKS (1 nodes)"]),
        ([node("v1.31.4-gke.1")], [], ["GKE (1 nodes)"]),
        ([node("v1.31.4-gke.1", OPT_OUT)], [], ["GKE (1 nodes)", "GKE: no DaemonSet mounts"]),
        (
            [node("v1.31.4-gke.1", OPT_OUT, name="a"), node("v1.31.4-gke.1", name="b")],
            [],
            ["GKE (2 nodes)", "GKE: a has the label gke-no-default"],
        ),
        ([node()], [], ["No node is of a managed cluster that is known here"]),
    ],
)
def test_describe_cluster_notes_who_installs_the_plugin(nodes: t.Any, daemon_sets: t.Any, words: list[str]) -> None:
    notes = describe_cluster(nodes, [], daemon_sets, GPU)["notes"]
    assert len(notes) == len(words)
    assert all(note.startswith(word) for note, word in zip(notes, words))


def test_describe_cluster_finds_unhealthy_and_missing_gpus() -> None:
    nodes = [node(name="a", gpus=(8, 7)), node(name="b", gpus=(2, 2)), node(name="c")]
    services = [{"spec": {"group": "config.openshift.io"}}, {"spec": {}}]
    found = describe_cluster(nodes, services, [], GPU)
    assert found["gpu_nodes"] == ["a", "b"]
    assert found["owners"][0]["name"] == "OpenShift"
    assert found["problems"] == ["Node a: 1 of 8 nvidia.com/gpu are unhealthy."]
    assert describe_cluster(nodes[2:], [], [], GPU)["problems"] == ["None of the 1 nodes offers nvidia.com/gpu."]


def test_add_test_separates_failed_and_skipped_nodes() -> None:
    cluster: dict[str, t.Any] = {"problems": ["one."], "notes": []}
    results = [
        {"node": "a", "passed": True, "skipped": False, "reason": ""},
        {"node": "b", "passed": False, "skipped": False, "reason": "no GPU"},
        {"node": "c", "passed": False, "skipped": True, "reason": "cordoned"},
    ]
    found = add_test(cluster, {"results": results})
    assert found["problems"] == ["one.", "Node b did not pass the test: no GPU."]
    assert found["untested"] == ["Node c was not tested: cordoned."]
    assert add_test(cluster, {"msg": "no access."})["problems"] == ["one.", "The test could not run: no access."]
    assert add_test(cluster, {"skipped": True, "changed": False})["problems"] == ["one."]
