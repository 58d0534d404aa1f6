# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import configuration


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kubeReserved": {"memory": "1gb"}}, "kubeReserved.memory is 1gb: give a quantity such as 500m, 2 or 1Gi"),
        ({"kubeReserved": {"memory": ""}}, "kubeReserved.memory is empty: give"),
        ({"kubeReserved": {"memory": " 1Gi"}}, "give a quantity"),
        ({"kubeReserved": {"memory": "512m"}}, "which is not a whole number (m is a thousandth, Mi is MiB)"),
        ({"kubeReserved": {"cpu": "-1"}}, "give an amount that is not below 0"),
        ({"kubeReserved": {"cpu": True}}, "has to be a mapping of names to texts"),
        ({"kubeReserved": {"cpu": float("nan")}}, "give a quantity"),
        ({"kubeReserved": {"cpu": ["1"]}}, "has to be a mapping of names to texts"),
        ({"kubeReserved": {"cpu": {"min": 1}}}, "has to be a mapping of names to texts"),
        ({"kubeReserved": "cpu=500m"}, "has to be a mapping of names to texts"),
        ({"kubeReserved": None}, "kubeReserved has no value"),
        (
            {"systemReserved": {"nvidia.com/gpu": 1}},
            "the kubelet reserves cpu, memory, ephemeral-storage, pid, and not nvidia.com/gpu",
        ),
        ({"kube-reserved": {"cpu": 1}}, "has no setting kube-reserved: write kubeReserved"),
        ({"systemreserved": {"cpu": 1}}, "write systemReserved"),
        ({"eviction_hard": {"memory.available": "1Gi"}}, "write evictionHard"),
        ({"evictionHard": {"memory": "1Gi"}}, "evictionHard.memory: the kubelet has the signals memory.available, "),
        (
            {"evictionHard": {"memory.available": "nonsense"}},
            "give a quantity such as 500Mi or a percentage such as 10%",
        ),
        ({"evictionHard": {"memory.available": "150%"}}, "give a quantity such as 500Mi or a percentage"),
        ({"evictionHard": {"memory.available": "-1%"}}, "or a percentage"),
        ({"evictionHard": {"memory.available": "nan%"}}, "or a percentage"),
        ({"evictionHard": {"memory.available": "%"}}, "or a percentage"),
        ({"evictionHard": {"memory.available": "1_0%"}}, "or a percentage"),
        ({"evictionHard": {"memory.available": 0}}, "give an amount above 0, or 0% for none"),
        ({"apiVersion": "v1"}, "apiVersion states what the file is"),
        ({"kind": "KubeletConfiguration"}, "kind states what the file is"),
        ({"maxPods": None}, "maxPods has no value"),
    ],
)
def test_invalid_values_are_refused(values: t.Any, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        configuration.check_values(values)


@pytest.mark.parametrize(
    ("values", "tree"),
    [
        ({}, {}),
        ({"kubeReserved": {}, "systemReserved": {}}, {}),
        ({"kubeReserved": {"cpu": 0.5, "pid": 1000}}, {"kubeReserved": {"cpu": "0.5", "pid": "1000"}}),
        ({"kubeReserved": {"memory": "1e9", "cpu": "0"}}, {"kubeReserved": {"memory": "1e9", "cpu": "0"}}),
        ({"evictionHard": {"nodefs.available": "10.5%"}}, {"evictionHard": {"nodefs.available": "10.5%"}}),
        ({"evictionHard": {"imagefs.available": "0%"}}, {"evictionHard": {"imagefs.available": "0%"}}),
        ({"evictionMinimumReclaim": {"nodefs.available": 0}}, {"evictionMinimumReclaim": {"nodefs.available": "0"}}),
        ({"maxPods": 50, "enforceNodeAllocatable": ["pods"]}, {"maxPods": 50, "enforceNodeAllocatable": ["pods"]}),
        ({"memorySwap": {"swapBehavior": "NoSwap"}}, {"memorySwap": {"swapBehavior": "NoSwap"}}),
    ],
)
def test_accepted_values(values: t.Any, tree: t.Any) -> None:
    assert configuration.check_values(values) == tree
