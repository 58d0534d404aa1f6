# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases on the fake API server: two runs at the same time, and the leases that remain."""

from __future__ import annotations

import copy
from datetime import datetime, timedelta, timezone
from typing import Any, Callable

import pytest
from fakes.kubernetes_api import FakeClock

from ansible_collections.gpu.kubernetes.plugins.module_utils._kube_error import ApiError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.retries import Timing
from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.decide import (
    ACQUIRE,
    REFUSE,
    RENEW,
    TAKE_OVER,
    Request,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._lease.leases import (
    hold_leases,
    read_lease,
    release_leases,
)

NOW = datetime(2026, 8, 23, 7, tzinfo=timezone.utc)
ONE, TWO = Request("root@one/1.2.b.3", 600), Request("eve@two/7.8.c.9", 600)


class Leases:
    """The calls for Leases of an API server; ``before_write`` is called before each change."""

    def __init__(self) -> None:
        self.store: dict[str, dict[str, Any]] = {}
        self.server_time: datetime | None = NOW
        self.calls: list[str] = []
        self.before_write: Callable[[], None] = lambda: None

    def _check(self, name: str, version: str | None) -> None:
        act, self.before_write = self.before_write, lambda: None
        act()
        if name not in self.store:
            raise ApiError("not found", 404)
        if version not in (None, self.store[name]["metadata"]["resourceVersion"]):
            raise ApiError("conflict", 409)

    def leases(self, namespace: str, labels: dict[str, str]) -> list[dict[str, Any]]:
        self.calls.append("list")
        assert (namespace, labels) == ("kube-system", {"app.kubernetes.io/managed-by": "gpu.kubernetes"})
        return copy.deepcopy(list(self.store.values()))

    def lease(self, _namespace: str, name: str) -> dict[str, Any] | None:
        self.calls.append("get")
        return copy.deepcopy(self.store.get(name))

    def create_lease(self, _namespace: str, manifest: dict[str, Any]) -> None:
        self.calls.append("create")
        act, self.before_write = self.before_write, lambda: None
        act()
        name = manifest["metadata"]["name"]
        if name in self.store:
            raise ApiError("exists", 409)
        self.store[name] = {**manifest, "metadata": {**manifest["metadata"], "resourceVersion": "1"}}

    def patch_lease(self, _namespace: str, name: str, patch: dict[str, Any]) -> None:
        self.calls.append("patch")
        self._check(name, patch["metadata"]["resourceVersion"])
        lease = self.store[name]
        lease["spec"] = {**lease["spec"], **patch["spec"]}
        lease["metadata"]["resourceVersion"] = str(int(lease["metadata"]["resourceVersion"]) + 1)

    def delete_lease(self, _namespace: str, name: str, version: str | None) -> None:
        self.calls.append("delete")
        self._check(name, version)
        del self.store[name]


@pytest.fixture
def cluster() -> Any:
    return Leases()


def actions(cluster: Any, request: Request, *names: str, check_mode: bool = False) -> dict[str, str]:
    verdicts = hold_leases(cluster, names or ("a",), request, check_mode)
    return {name: verdict.action for name, verdict in verdicts.items()}


def test_leases_of_a_batch_cost_one_list_and_one_request_each(cluster: Any) -> None:
    assert actions(cluster, ONE, "a", "b") == {"a": ACQUIRE, "b": ACQUIRE}
    assert sorted(cluster.calls) == ["create", "create", "list"]
    spec = cluster.store["a"]["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == (ONE.holder, 600)
    assert spec["renewTime"] == "2026-08-23T07:00:00.000000Z"


def test_second_run_is_refused_until_the_lease_expires_by_the_servers_clock(cluster: Any) -> None:
    assert actions(cluster, ONE) == {"a": ACQUIRE}
    first = copy.deepcopy(cluster.store)
    assert actions(cluster, TWO, "a", "b") == {"a": REFUSE, "b": ACQUIRE}
    assert cluster.store["a"] == first["a"]
    cluster.server_time = NOW + timedelta(seconds=300)
    assert actions(cluster, ONE) == {"a": RENEW}
    cluster.server_time = NOW + timedelta(seconds=899)
    assert actions(cluster, TWO) == {"a": REFUSE}
    cluster.server_time = NOW + timedelta(seconds=900)
    assert actions(cluster, TWO) == {"a": TAKE_OVER}
    assert cluster.store["a"]["spec"]["leaseTransitions"] == 1
    assert actions(cluster, ONE) == {"a": REFUSE}


def test_one_of_two_simultaneous_runs_is_refused(cluster: Any) -> None:
    """The other run writes between the list and the change."""
    cluster.before_write = lambda: actions(cluster, TWO)
    assert actions(cluster, ONE) == {"a": REFUSE}
    cluster.server_time = NOW + timedelta(seconds=600)
    cluster.before_write = lambda: actions(cluster, ONE)
    assert actions(cluster, Request("third@one/1.2.b.3", 60)) == {"a": REFUSE}
    found = read_lease(cluster.store["a"])
    assert found is not None
    assert found.holder == ONE.holder


def test_lease_released_after_the_list_is_acquired(cluster: Any) -> None:
    actions(cluster, ONE)
    cluster.before_write = lambda: release_leases(cluster, ["a"], ONE.holder)
    assert actions(cluster, Request(TWO.holder, 60, take_over=True)) == {"a": ACQUIRE}


def test_check_mode_only_reads(cluster: Any) -> None:
    assert actions(cluster, ONE, check_mode=True) == {"a": ACQUIRE}
    assert cluster.calls == ["list"]
    actions(cluster, ONE)
    assert actions(cluster, TWO, check_mode=True) == {"a": REFUSE}


def test_release_deletes_only_own_leases(cluster: Any) -> None:
    actions(cluster, ONE, "a")
    actions(cluster, TWO, "b")
    assert release_leases(cluster, ["a", "b", "c"], ONE.holder) == ["a"]
    assert set(cluster.store) == {"b"}
    cluster.before_write = lambda: actions(cluster, Request(ONE.holder, 60, take_over=True), "b")
    assert release_leases(cluster, ["b"], TWO.holder) == []
    assert set(cluster.store) == {"b"}


@pytest.mark.parametrize("status", [0, 429, 503])
def test_busy_server_gets_a_change_again(cluster: Any, status: int) -> None:
    """A run whose Leases are not written has no protection from runs of other controllers."""
    clock = FakeClock()
    timing = Timing(clock, clock.sleep)

    def refuse() -> None:
        if clock() < 10:
            cluster.before_write = refuse
            raise ApiError("busy", status)

    cluster.before_write = refuse
    assert hold_leases(cluster, ["a"], ONE, timing=timing)["a"].action == ACQUIRE
    assert clock() >= 10
    clock.time, cluster.before_write = 0.0, refuse
    assert release_leases(cluster, ["a"], ONE.holder, timing) == ["a"]
    clock.time, cluster.before_write = -100.0, refuse
    with pytest.raises(ApiError, match="busy"):
        hold_leases(cluster, ["a"], ONE, timing=timing)


def test_other_errors_are_raised(cluster: Any) -> None:
    def deny() -> None:
        raise ApiError("forbidden", 403)

    cluster.before_write = deny
    with pytest.raises(ApiError):
        actions(cluster, ONE)


@pytest.mark.parametrize(
    ("spec", "expires"),
    [
        ({"holderIdentity": "x@y", "renewTime": "2026-08-23T07:00:00Z", "leaseDurationSeconds": 60}, 2026),
        ({"holderIdentity": "x@y", "renewTime": "2026-08-23T07:00:00Z", "leaseDurationSeconds": "60"}, 2026),
        ({"holderIdentity": "x@y"}, 1970),
    ],
)
def test_lease_of_others_with_missing_parts_is_read(spec: dict[str, Any], expires: int) -> None:
    found = read_lease({"metadata": {}, "spec": spec})
    assert found is not None
    assert found.expires.year == expires


@pytest.mark.parametrize("lease", [{}, {"spec": None}, {"spec": {}}, {"spec": {"holderIdentity": ""}}])
def test_lease_without_holder_is_free(lease: dict[str, Any]) -> None:
    assert read_lease(lease) is None
