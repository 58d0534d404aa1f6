# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent the kubelets are as they were."""

from __future__ import annotations

from typing import Any

from lab.wait import until

testinfra_hosts = ["ansible://gpu_nodes"]


def test_configuration_equals_the_former_one(host: Any) -> None:
    command = "cmp /root/kubelet-before.yaml /var/lib/kubelet/config.yaml && echo same"
    assert host.check_output(command) == "same"


def test_nothing_is_left(host: Any) -> None:
    command = "find /var/lib/gpu-kubernetes -type f -path '*kubelet*' -not -path '*/backups/*'; true"
    assert host.check_output(command) == ""


def test_allocatable_equals_capacity_again(host: Any, api: Any) -> None:
    """The lab's kubelets reserve nothing, and have thresholds for file systems only."""

    def read_amounts() -> dict[str, tuple[str, str]]:
        status = api.read_node(host.backend.get_hostname()).status
        return {name: (status.allocatable[name], status.capacity[name]) for name in ("cpu", "memory")}

    until(read_amounts, lambda amounts: all(allocatable == capacity for allocatable, capacity in amounts.values()))
    assert host.service("kubelet").is_running
