# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After the undo nothing of driver or upgrade is left, on machines and in the cluster."""

from __future__ import annotations

from typing import Any

testinfra_hosts = ["ansible://gpu_nodes"]


def test_nothing_is_left_on_the_machine(host: Any) -> None:
    assert not host.file("/usr/bin/nvidia-uninstall").exists
    assert host.run("find /var/lib/gpu-kubernetes /etc/modprobe.d -name '*driver*'").stdout == ""


def test_nothing_is_left_on_the_node(host: Any, api: Any) -> None:
    node = api.read_node(host.backend.get_hostname())
    assert not [key for key in {**node.metadata.annotations, **node.metadata.labels} if "gpu-kubernetes" in key]
    assert not node.spec.unschedulable
