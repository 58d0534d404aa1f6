# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of NVIDIA's GPU Operator takes the device plugin of a node over from this collection, and ``share_gpus`` shares its GPUs the operator's way.

API server, kubelet and scheduler are real, and so is the kind of the ClusterPolicy, without the operator's schema. No program of the operator runs: the tests
set its labels and deploy a fake of its device plugin. Each test depends on the tests before it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fakes import gpu_operator
from lab import cluster
from lab import fingerprint as prints
from lab.strategies import FIRST, GPU, LABEL, SECOND, SLICED, WHOLE, Run, list_plugins
from lab.wait import until

pytestmark = pytest.mark.thorough
#: The first run with the operator's device plugin has the smoke test.
UNTESTED = ("--skip-tags", "smoke_test")


def create(settings: Any, path: Path, *objects: dict[str, Any]) -> None:
    """Create or change objects as kubectl does."""
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    cluster.kubectl(settings, "apply", "-f", str(path))


def set_deploy_labels(api: Any, first: str | None, second: str | None) -> None:
    """Set the labels by which the operator, and an administrator, choose the nodes of its device plugin; None removes them."""
    for node, value in ((FIRST, first), (SECOND, second)):
        api.patch_node(node, {"metadata": {"labels": {gpu_operator.DEPLOY_PLUGIN: value}}})


def read_operator_keys(api: Any) -> dict[str, str]:
    return api.read_namespaced_config_map(gpu_operator.CONFIG_MAP, gpu_operator.NAMESPACE).data


def test_own_plugin_beside_that_of_a_fake_gpu_operator_is_refused(
    share: Run, settings: Any, api: Any, tmp_path: Path
) -> None:
    create(settings, tmp_path / "kind.json", gpu_operator.KIND)
    name = gpu_operator.KIND["metadata"]["name"]
    cluster.kubectl(settings, "wait", f"crd/{name}", "--for=condition=Established", "--timeout=60s")
    create(settings, tmp_path / "operator.json", *gpu_operator.declare_operator())
    policy = f"clusterpolicy/{gpu_operator.POLICY['metadata']['name']}"
    status = ("--subresource=status", "--type=merge", f"--patch={json.dumps(gpu_operator.STATUS)}")
    cluster.kubectl(settings, "patch", policy, *status)
    set_deploy_labels(api, "true", "false")
    code, changed, printed = share(SLICED, WHOLE)
    assert (code, changed) == (2, 0), printed
    assert "registers the same GPUs as the device plugin of NVIDIA's GPU Operator; remove it first" in printed


def test_gpu_operator_shares_by_its_label_and_config_map(
    share: Run, playbook: Any, settings: Any, api: Any, inventory: Any, read_allocatable: Any, tmp_path: Path
) -> None:
    code, _recap, printed = playbook("remove_gpu_nodes", "--tags", "device_plugin")
    assert code == 0, printed
    image = "{k8s_device_plugin_image_registry}/{k8s_device_plugin_image_repository}:{k8s_device_plugin_image_tag}"
    create(settings, tmp_path / "plugin.json", *gpu_operator.deploy_plugin(image.format(**inventory["all"]["vars"])))
    until(lambda: read_allocatable(FIRST), lambda found: found == {GPU: "8"})

    code, _changed, printed = share(SLICED, WHOLE)
    assert code == 0, printed
    assert (read_allocatable(FIRST), read_allocatable(SECOND)) == ({GPU: "32"}, {GPU: "2"})
    # The other node has this collection's device plugin.
    assert list(list_plugins(api)) == [SECOND]
    keys, label = read_operator_keys(api), api.read_node(FIRST).metadata.labels[LABEL]
    assert set(keys) == {*gpu_operator.OTHERS, label}
    assert json.loads(keys[label])["sharing"]["timeSlicing"]["resources"][0]["replicas"] == 4
    code, changed, printed = share(SLICED, WHOLE, words=UNTESTED)
    assert (code, changed) == (0, 0), printed


def test_driver_and_toolkit_are_left_to_the_gpu_operator(share: Run) -> None:
    """Elsewhere, the variable changes the container runtime."""
    code, changed, printed = share(SLICED, WHOLE, "prepare_gpu_nodes", ("--check",), containerd_nvidia_set_default=True)
    assert (code, changed) == (0, 0), printed
    for node in (FIRST, SECOND):
        assert f"LEFT TO THE GPU OPERATOR: {node}: its ClusterPolicy deploys the driver, toolkit," in printed
    assert "so this run installs no driver and no toolkit on the host" in printed


def test_gpu_operator_shares_whole_gpus_again(share: Run, read_allocatable: Any, api: Any) -> None:
    code, _changed, printed = share(WHOLE, WHOLE, words=UNTESTED)
    assert code == 0, printed
    assert read_allocatable(FIRST) == {GPU: "8"}
    assert LABEL not in api.read_node(FIRST).metadata.labels
    # The API server removes a key that is patched with null, and keeps those of others.
    assert read_operator_keys(api) == gpu_operator.OTHERS


def test_own_plugin_comes_back_after_the_gpu_operator(
    share: Run, settings: Any, api: Any, read_allocatable: Any
) -> None:
    for kind in ("daemonset", "serviceaccount"):
        cluster.kubectl(settings, "delete", kind, gpu_operator.PLUGIN, "-n", gpu_operator.NAMESPACE)
    for kind in ("runtimeclass", "clusterrole", "clusterrolebinding"):
        cluster.kubectl(settings, "delete", kind, gpu_operator.PLUGIN)
    cluster.kubectl(settings, "delete", "crd", gpu_operator.KIND["metadata"]["name"])
    cluster.kubectl(settings, "delete", "namespace", gpu_operator.NAMESPACE)
    set_deploy_labels(api, None, None)
    code, _changed, printed = share(WHOLE, WHOLE, words=UNTESTED)
    assert code == 0, printed
    assert (read_allocatable(FIRST), read_allocatable(SECOND)) == ({GPU: "8"}, {GPU: "2"})
    assert sorted(list_plugins(api)) == [FIRST, SECOND]


def test_nodes_and_cluster_are_as_before_the_operator(before: dict[str, str], settings: Any) -> None:
    assert prints.remaining(before, settings) == []
