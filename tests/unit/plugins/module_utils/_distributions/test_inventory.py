# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions.inventory import (
    InventoryError,
    build_variables,
    find_missing,
)

RUNTIME = {
    "name": "nvidia",
    "type": "io.containerd.runc.v2",
    "engine": "",
    "root": "",
    "base_runtime_spec": "cri-base.json",
    "options": {"BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": "true"},
}
EXTENDER = {"urlPrefix": "http://10.0.0.1:32766/gpushare-scheduler", "filterVerb": "filter"}


@pytest.mark.parametrize(
    ("managed", "expected"),
    [
        ({}, {"containerd_additional_runtimes": [RUNTIME]}),
        ({"container_runtime": "crio"}, {}),
        (
            {"containerd_nvidia_set_default": "yes", "containerd_nvidia_enable_cdi": False},
            {
                "containerd_additional_runtimes": [RUNTIME],
                "containerd_default_runtime": "nvidia",
                "enable_cdi": False,
            },
        ),
        (
            {
                "containerd_nvidia_runtime_name": "gpu",
                "containerd_nvidia_systemd_cgroup": False,
                "nvidia_container_toolkit_runtime_path": "/opt/nvidia-container-runtime",
                "containerd_nvidia_settings": {"plugins": {"io.containerd.cri.v1.runtime": {"enable_selinux": True}}},
            },
            {
                "containerd_additional_runtimes": [
                    {
                        **RUNTIME,
                        "name": "gpu",
                        "options": {"BinaryName": "/opt/nvidia-container-runtime", "SystemdCgroup": "false"},
                    }
                ],
                "containerd_extra_runtime_args": {"enable_selinux": True},
            },
        ),
        (
            {
                "containerd_nvidia_drop_in": "/etc/containerd/conf.d/99-nvidia.toml",
                "containerd_nvidia_set_default": True,
            },
            {"containerd_extra_args": 'imports = ["/etc/containerd/conf.d/*.toml"]\n'},
        ),
        (
            {
                "container_runtime": "docker",
                "gpu_node_labels_accelerator": "a100",
                "gpu_node_labels_extra": {"pool": "gpu"},
                "kube_scheduler_extender_extenders": [EXTENDER],
                "kubelet_reserved_kube_reserved": {"cpu": "500m", "memory": "1Gi"},
                "kubelet_reserved_system_reserved": {"ephemeral-storage": "2Gi", "pid": 1000},
                "kubelet_reserved_eviction_hard": {"memory.available": "500Mi"},
            },
            {
                "node_labels": {"pool": "gpu", "accelerator": "a100"},
                "kube_scheduler_extenders": [EXTENDER],
                "kube_reserved": True,
                "kube_cpu_reserved": "500m",
                "kube_memory_reserved": "1Gi",
                "system_reserved": True,
                "system_ephemeral_storage_reserved": "2Gi",
                "system_pid_reserved": 1000,
                "eviction_hard": {"memory.available": "500Mi"},
            },
        ),
    ],
)
def test_build_variables_says_the_same_as_those_of_the_collection(
    managed: dict[str, t.Any], expected: dict[str, t.Any]
) -> None:
    assert build_variables({"ansible_host": "10.0.0.9", **managed}) == expected
    assert find_missing(expected, expected) == []


@pytest.mark.parametrize(
    ("managed", "words"),
    [
        ({"containerd_nvidia_settings": {"oom_score": 1}}, "no variable for oom_score"),
        (
            {"containerd_nvidia_settings": {"plugins": {"io.containerd.cri.v1.runtime": {"cni": {"bin_dir": "/x"}}}}},
            r"no variable for plugins\.io\.containerd\.cri\.v1\.runtime\.cni, so",
        ),
        ({"kubelet_reserved_kube_reserved": {"hugepages-2Mi": "1Gi"}}, "no variable for hugepages-2Mi"),
    ],
)
def test_build_variables_refuses_what_the_installer_cannot_keep(managed: dict[str, t.Any], words: str) -> None:
    with pytest.raises(InventoryError, match=words):
        build_variables(managed)


@pytest.mark.parametrize(
    ("inventory", "sentences"),
    [
        (
            {},
            [
                "containerd_additional_runtimes has no entry with name nvidia.",
                "containerd_default_runtime is not set, and has to be nvidia.",
                "node_labels has no value for pool and not gpu.",
            ],
        ),
        (
            {
                "containerd_additional_runtimes": [
                    {"name": "kata"},
                    {key: value for key, value in RUNTIME.items() if key not in ("engine", "root")},
                ],
                "containerd_default_runtime": "nvidia",
                "node_labels": {"pool": "gpu", "other": "x"},
            },
            [],
        ),
        (
            {
                "containerd_additional_runtimes": [{**RUNTIME, "base_runtime_spec": "other.json"}],
                "containerd_default_runtime": "runc",
                "node_labels": {"pool": "cpu"},
            },
            [
                "containerd_additional_runtimes has another entry with name nvidia.",
                "containerd_default_runtime is runc and not nvidia.",
                "node_labels has cpu for pool and not gpu.",
            ],
        ),
    ],
)
def test_find_missing_names_each_variable(inventory: dict[str, t.Any], sentences: list[str]) -> None:
    managed = {"containerd_nvidia_set_default": True, "gpu_node_labels_extra": {"pool": "gpu"}}
    assert find_missing(build_variables(managed), inventory) == sentences


@pytest.mark.parametrize(
    ("text", "count"), [(None, 1), ("imports = []\n", 1), ('# ours\nimports = ["/etc/containerd/conf.d/*.toml"]\n', 0)]
)
def test_find_missing_searches_the_line_of_the_import(text: str | None, count: int) -> None:
    needed = build_variables({"containerd_nvidia_drop_in": "/etc/containerd/conf.d/99-nvidia.toml"})
    assert len(find_missing(needed, {"containerd_extra_args": text})) == count
