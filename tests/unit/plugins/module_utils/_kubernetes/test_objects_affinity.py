# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that a pod can run on, and DaemonSets that leave a node with a label."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import can_run_on, find_leaving

SHARED = {"gpushare": "true", "cores": "8"}


def requirement(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def terms(*found: Any) -> dict[str, Any]:
    """A spec with terms of required node affinity, each a list of requirements."""
    listed = [term if isinstance(term, dict) else {"matchExpressions": term} for term in found]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": listed}}
    return {"affinity": {"nodeAffinity": required}}


def daemon_set(name: str, spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "x"}, "spec": {"template": {"spec": spec}}}


NOT_SHARED = requirement("gpushare", "NotIn", "true")


@pytest.mark.parametrize(
    ("spec", "may"),
    [
        ({}, True),
        ({"affinity": {"nodeAffinity": {}}}, True),
        ({"nodeSelector": {"gpushare": "true"}}, True),
        ({"nodeSelector": {"gpushare": "false"}}, False),
        ({"nodeSelector": {"other": "x"}, **terms([requirement("gpushare", "Exists")])}, False),
        (terms([NOT_SHARED]), False),
        (terms([requirement("gpushare", "NotIn", "false")]), True),
        (terms([requirement("other", "NotIn", "true")]), True),
        # A text search would find gpushare here, too.
        (terms([requirement("gpushare", "In", "true")]), True),
        (terms([requirement("gpushare", "In", "false", "no")]), False),
        (terms([requirement("other", "In", "true")]), False),
        (terms([requirement("gpushare", "DoesNotExist")]), False),
        (terms([requirement("other", "DoesNotExist")]), True),
        (terms([requirement("other", "Exists")]), False),
        (terms([requirement("cores", "Gt", "7")]), True),
        (terms([requirement("cores", "Lt", "8")]), False),
        (terms([requirement("gpushare", "Gt", "7")]), False),
        (terms([requirement("cores", "Gt")]), False),
        # One of several terms is enough, but a term requires all its requirements.
        (terms([NOT_SHARED], [requirement("cores", "Exists")]), True),
        (terms([NOT_SHARED, requirement("cores", "Exists")]), False),
        (terms([NOT_SHARED], [requirement("other", "Exists")]), False),
        (terms([]), False),
        (terms(), False),
        # As the DaemonSet controller writes them.
        (terms({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["w1"]}]}), True),
        (terms({"matchFields": [{}], "matchExpressions": [NOT_SHARED]}), False),
    ],
)
def test_can_run_on_by_selector_and_affinity(spec: Any, may: bool) -> None:
    assert can_run_on(spec, SHARED) is may


def test_find_leaving_reads_template_of_daemon_set() -> None:
    """The affinity of their pods has only the name of the node."""
    sets = [
        daemon_set("goes", terms([NOT_SHARED])),
        daemon_set("stays", {}),
        daemon_set("never", terms([requirement("x", "Exists")])),
    ]
    assert find_leaving(sets, SHARED) == {"x/goes", "x/never"}
    assert find_leaving(sets, {"x": "", "gpushare": "false"}) == set()
