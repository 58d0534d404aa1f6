# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent the kubelets are as they were."""

from __future__ import annotations

from typing import Any

from lab.wait import until

testinfra_hosts = ["ansible://gpu_nodes"]


def test_the_configuration_is_the_one_from_before(host: Any) -> None:
    compared = "cmp /root/kubelet-before.yaml /var/lib/kubelet/config.yaml && echo same"
    assert host.check_output(compared) == "same"


def test_nothing_is_left(host: Any) -> None:
    left = "find /var/lib/gpu-kubernetes -type f -path '*kubelet*' -not -path '*/backups/*'; true"
    assert host.check_output(left) == ""


def test_pods_get_all_again(host: Any, api: Any) -> None:
    """The lab's kubelets keep nothing, and name thresholds of file systems alone."""

    def look() -> dict[str, tuple[str, str]]:
        status = api.read_node(host.backend.get_hostname()).status
        return {name: (status.allocatable[name], status.capacity[name]) for name in ("cpu", "memory")}

    until(look, lambda amounts: all(offered == there for offered, there in amounts.values()))
    assert host.service("kubelet").is_running
