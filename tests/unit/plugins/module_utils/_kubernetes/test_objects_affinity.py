# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes a pod may be on, and which DaemonSets leave one that gets a label."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import can_run_on, find_leaving

SHARED = {"gpushare": "true", "cores": "8"}


def need(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def terms(*found: Any) -> dict[str, Any]:
    """A spec with terms of required node affinity, each a list of requirements."""
    listed = [term if isinstance(term, dict) else {"matchExpressions": term} for term in found]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
    return {"affinity": {"nodeAffinity": required}}


def daemon_set(name: str, spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "x"}, "spec": {"template": {"spec": spec}}}


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
def test_can_run_on_by_selector_and_affinity(spec: Any, may: bool) -> None:
    assert can_run_on(spec, SHARED) is may


def test_find_leaving_reads_template_of_daemon_set() -> None:
    """Their pods have nothing but the node's name there."""
    sets = [
        daemon_set("goes", terms([AWAY])),
        daemon_set("stays", {}),
        daemon_set("never", terms([need("x", "Exists")])),
    ]
    assert find_leaving(sets, SHARED) == {"x/goes", "x/never"}
    assert find_leaving(sets, {"x": "", "gpushare": "false"}) == set()
