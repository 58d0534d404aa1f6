# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wait for kubelets after a restart on their nodes."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.kubernetes_api import FakeClock, FakeCluster, node

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.heartbeats import wait_for_nodes
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.retries import Timing


class Kubelets:
    """Nodes w0 to w3, whose kubelets renew their Leases at times of the clock."""

    def __init__(self, **renewals: float) -> None:
        self.clock = FakeClock()
        self.cluster = FakeCluster([node(f"w{number}", ready=number != 3) for number in range(4)])
        self.renewals = renewals
        self.cluster.on_call = self._renew

    def _renew(self, _call: str) -> None:
        self.cluster.leases = [
            {"metadata": {"name": name}, "spec": {"renewTime": str(self.clock() >= when)}}
            for name, when in self.renewals.items()
        ]

    def wait(self, *names: str, timeout: float = 60) -> dict[str, tuple[bool, bool, bool]]:
        found = wait_for_nodes(self.cluster, set(names), timeout, timing=Timing(self.clock, self.clock.sleep))
        return {each.name: (each.known, each.renewed, each.ready) for each in found}


def test_wait_reads_nodes_once_after_all_renewals() -> None:
    kubelets = Kubelets(w0=8, w1=4, w2=1000)
    assert kubelets.wait("w0", "w1") == {"w0": (True, True, True), "w1": (True, True, True)}
    assert kubelets.clock() == 8
    assert kubelets.cluster.calls.count("nodes") == 1
    assert kubelets.cluster.calls.count("leases") == 6, "the first one, and one for each of five rounds"


def test_wait_does_not_wait_for_node_without_lease() -> None:
    kubelets = Kubelets(w0=2)
    assert kubelets.wait("w0", "new") == {"w0": (True, True, True), "new": (False, False, False)}
    assert Kubelets().wait("new") == {"new": (False, False, False)}


def test_wait_after_timeout_names_each_node() -> None:
    kubelets = Kubelets(w0=1000, w1=2, w3=2)
    found = wait_for_nodes(
        kubelets.cluster, {"w0", "w1", "w3"}, 20, timing=Timing(kubelets.clock, kubelets.clock.sleep)
    )
    assert {each.name: each.reason for each in found} == {
        "w0": "its kubelet has not reported",
        "w1": "",
        "w3": "is not Ready (CNI is missing)",
    }
    assert kubelets.clock() == 20


@pytest.mark.parametrize(("status", "ends"), [(0, 20), (503, 20), (403, 0)])
def test_wait_with_failing_server_raises(status: int, ends: float) -> None:
    kubelets = Kubelets(w0=2)

    def refuse(_call: str) -> None:
        raise ApiError("cannot be reached", status)

    kubelets.cluster.on_call = refuse
    with pytest.raises(ApiError, match="cannot be reached"):
        kubelets.wait("w0", timeout=20)
    assert kubelets.clock() == ends


def test_wait_reads_other_nodes_without_keeping_them() -> None:
    kubelets = Kubelets(w0=0, w1=0, w2=0)
    kept: list[Any] = []
    gather = kubelets.cluster.gather
    kubelets.cluster.gather = lambda *given: kept.extend(gather(*given)) or kept  # type: ignore[method-assign, func-returns-value]
    kubelets.renewals = {"w0": 1, "w1": 1, "w2": 1}
    kubelets.wait("w1")
    assert [name for name, _condition in kept] == ["w1"]
