# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes a pod may be on, and which pods go when a node gets a label."""

from __future__ import annotations

from typing import Any

import pytest
from fakes.kubernetes_api import pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.affinity import admits, leaves

SHARED = {"gpushare": "true", "cores": "8"}


def need(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def terms(*found: Any) -> dict[str, Any]:
    """A spec with terms of required node affinity, each a list of requirements."""
    listed = [term if isinstance(term, dict) else {"matchExpressions": term} for term in found]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
    return {"affinity": {"nodeAffinity": required}}


AWAY = need("gpushare", "NotIn", "true")


@pytest.mark.parametrize(
    ("spec", "may"),
    [
        ({}, True),
        ({"affinity": {"nodeAffinity": {}}}, True),
        ({"nodeSelector": {"gpushare": "true"}}, True),
        ({"nodeSelector": {"gpushare": "false"}}, False),
        ({"nodeSelector": {"other": "x"}, **terms([need("gpushare", "Exists")])}, False),
        (terms([AWAY]), False),
        (terms([need("gpushare", "NotIn", "false")]), True),
        (terms([need("other", "NotIn", "true")]), True),
        # A text search would find gpushare here, too.
        (terms([need("gpushare", "In", "true")]), True),
        (terms([need("gpushare", "In", "false", "no")]), False),
        (terms([need("other", "In", "true")]), False),
        (terms([need("gpushare", "DoesNotExist")]), False),
        (terms([need("other", "DoesNotExist")]), True),
        (terms([need("other", "Exists")]), False),
        (terms([need("cores", "Gt", "7")]), True),
        (terms([need("cores", "Lt", "8")]), False),
        (terms([need("gpushare", "Gt", "7")]), False),
        (terms([need("cores", "Gt")]), False),
        # Of several terms one is enough, of a term all that it asks.
        (terms([AWAY], [need("cores", "Exists")]), True),
        (terms([AWAY, need("cores", "Exists")]), False),
        (terms([AWAY], [need("other", "Exists")]), False),
        (terms([]), False),
        (terms(), False),
        # As the DaemonSet controller writes them.
        (terms({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["w1"]}]}), True),
        (terms({"matchFields": [{}], "matchExpressions": [AWAY]}), False),
    ],
)
def test_which_pods_a_node_admits(spec: Any, may: bool) -> None:
    assert admits(spec, SHARED) is may


@pytest.mark.parametrize(
    ("owner", "spec", "goes"),
    [
        ({"owner": "d"}, terms([AWAY]), True),
        ({"owner": "d"}, {}, False),
        # Nobody takes a pod away for what it needed when it was scheduled.
        ({"owner": "r", "owner_kind": "ReplicaSet"}, terms([AWAY]), False),
        ({}, terms([AWAY]), False),
    ],
)
def test_only_those_of_daemon_sets_leave(owner: Any, spec: Any, goes: bool) -> None:
    assert leaves(pod("plugin", **owner, **spec), SHARED) is goes
