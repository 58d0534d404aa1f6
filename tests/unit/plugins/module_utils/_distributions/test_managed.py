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
    list_admission_plugins,
    plan_preparation,
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


def daemon_set(path: str, name: str = "plugin", labels: t.Any = None) -> dict[str, t.Any]:
    volumes = [{"name": "a", "emptyDir": {}}, {"name": "b", "hostPath": {"path": path}}]
    metadata = {"name": name, "namespace": "gpu", "labels": labels or {}}
    return {"metadata": metadata, "spec": {"template": {"spec": {"volumes": volumes}}}}


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


def test_list_admission_plugins_are_those_of_the_providers_of_the_nodes() -> None:
    nodes = [node("v1.31.4-gke.1183000"), node("v1.31.4-eks-2d5f260"), node()]
    assert list_admission_plugins(nodes) == {"ExtendedResourceToleration"}
    assert list_admission_plugins(nodes[1:]) == set()


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
        ([node("v1.31.4-gke.1", OPT_OUT)], [], ["GKE (1 nodes)", "GKE: n1 has the label gke-no-default"]),
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


EKS, GKE = "v1.34.4-eks-1", "v1.34.4-gke.1"
AKS = {"kubernetes.azure.com/cluster": "MC_a_b_c", "kubernetes.azure.com/accelerator": "nvidia"}
KARPENTER = {"karpenter.k8s.aws/instance-gpu-manufacturer": "nvidia", "karpenter.k8s.aws/instance-gpu-name": "T4"}
MANAGED = daemon_set("/var/lib/kubelet/device-plugins", "ours", {"app.kubernetes.io/managed-by": "gpu.kubernetes"})
OTHER = daemon_set("/var/lib/kubelet/device-plugins", "theirs")
MARK = {"gpu-kubernetes/device-plugin": "true"}


@pytest.mark.parametrize(
    ("found", "daemon_sets", "labels", "is_chosen"),
    [
        pytest.param(node(EKS, KARPENTER), [], {"accelerator": "t4", **MARK}, True, id="karpenter"),
        pytest.param(node(EKS, {"k8s.amazonaws.com/accelerator": "nvidia-tesla-v100"}), [], {"accelerator": "nvidia-tesla-v100", **MARK}, True, id="eks-label"),
        pytest.param(node(EKS, {"nvidia.com/gpu.product": "NVIDIA-L4"}), [], {"accelerator": "nvidia-l4", **MARK}, True, id="gfd"),
        pytest.param(node(EKS, {"feature.node.kubernetes.io/pci-0302_10de.present": "true"}), [], MARK, True, id="nfd"),
        # A plugin of others offers them, unless it is that of an earlier run.
        pytest.param(node(EKS, KARPENTER, gpus=(4, 4)), [OTHER], {"accelerator": "t4"}, False, id="others"),
        pytest.param(node(EKS, KARPENTER, gpus=(4, 4)), [], {"accelerator": "t4"}, False, id="image"),
        pytest.param(node(EKS, KARPENTER, gpus=(4, 4)), [MANAGED], {"accelerator": "t4", **MARK}, True, id="second-run"),
        pytest.param(node(EKS, {**KARPENTER, "eks.amazonaws.com/compute-type": "auto"}, gpus=(1, 1)), [], {}, False, id="read-only"),
        pytest.param(node(EKS, KARPENTER, "Bottlerocket OS 1.32.0"), [], {}, False, id="bottlerocket"),
        pytest.param(node(GKE, {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}), [OTHER], {"accelerator": "nvidia-tesla-t4"}, False, id="gke"),
        # Neither the driver nor the runtime of the provider is there, so that a plugin would find no GPU.
        pytest.param(node(GKE, {"cloud.google.com/gke-accelerator": "nvidia-l4", **OPT_OUT}), [], {"accelerator": "nvidia-l4"}, False, id="gke-opt-out"),
        # The provider says who made the GPUs, and not which they are.
        pytest.param(node(labels=AKS), [], MARK, True, id="aks"),
    ],
)  # fmt: skip
def test_plan_labels_products_and_chooses_nodes_without_a_plugin(
    found: dict[str, t.Any], daemon_sets: t.Any, labels: dict[str, str], is_chosen: bool
) -> None:
    plan = plan_preparation(([found], [], daemon_sets), GPU, {})
    assert (plan.labels, plan.refusals) == ({"n1": labels}, [])
    assert plan.plugin_nodes == (["n1"] if is_chosen else [])
    assert plan.selector == (MARK if is_chosen else {})
    if not is_chosen:
        assert any(note.startswith("No device plugin is deployed on n1, since ") for note in plan.notes)


def test_plan_notes_nodes_whose_product_no_label_names() -> None:
    nodes = [node(labels=AKS, name="a"), node(labels={**AKS, "accelerator": "nvidia"}, name="b")]
    notes = plan_preparation((nodes, [], []), GPU, {}).notes
    assert [note for note in notes if note.startswith("No label of a names the product")]
    assert not [note for note in notes if "b names" in note]


def test_plan_tolerates_lasting_taints_of_the_chosen_nodes() -> None:
    found = node(EKS, KARPENTER)
    names = ("sku", "node.kubernetes.io/unschedulable", "karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler")
    found["spec"] = {"taints": [{"key": name, "value": "gpu", "effect": "NoSchedule"} for name in names]}
    provided = node(GKE, {"cloud.google.com/gke-accelerator": "nvidia-l4"}, name="n2")
    provided["spec"] = {"taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]}
    plan = plan_preparation(([found, provided], [], []), GPU, {})
    assert plan.tolerations == [{"key": "sku", "operator": "Exists", "effect": "NoSchedule"}]


def test_plan_with_a_selector_sets_no_label_for_the_plugin() -> None:
    pool = {"eks.amazonaws.com/nodegroup": "gpu"}
    nodes = [node(EKS, pool, name="a"), node(EKS, name="b"), node(EKS, KARPENTER, name="c")]
    plan = plan_preparation((nodes, [], []), GPU, pool)
    assert (plan.plugin_nodes, plan.selector, plan.labels) == (["a"], pool, {"a": {}, "b": {}, "c": {}})


@pytest.mark.parametrize(
    ("nodes", "selector", "words"),
    [
        ([node("v1.34.4+k3s1", gpus=(1, 1))], {}, "No node is of a managed cluster that is known here, so run gpu.kubernetes.label_gpu_nodes"),
        ([node(EKS)], {}, "No node of the cluster shows by its labels or its capacity that it has GPUs of NVIDIA, so set"),
        ([node(EKS, {"karpenter.k8s.aws/instance-gpu-manufacturer": "amd"})], {}, "No node of the cluster shows"),
        ([node(EKS, {"a": "b"})], {"a": "c"}, "No node of the managed cluster has the labels of gpu_managed_cluster_node_selector, so correct"),
        (
            [node(EKS, {"a": "b"}), node(EKS, {"a": "b"}, "Bottlerocket OS", "n2")],
            {"a": "b"},
            "gpu_managed_cluster_node_selector also selects n2, where others offer the GPUs",
        ),
    ],
)  # fmt: skip
def test_plan_refuses_what_the_api_does_not_show(nodes: t.Any, selector: dict[str, str], words: str) -> None:
    (refusal,) = plan_preparation((nodes, [], []), GPU, selector).refusals
    assert refusal.startswith(words)
