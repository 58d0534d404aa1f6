# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading nodes and pods as the API server sends them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes.kubernetes_api import node, pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.objects import (
    APPLIED_ANNOTATION,
    find_untolerated_taints,
    format_taint,
    get_node_name,
    group_by_node,
    is_applied,
    is_tolerated,
    parse_units,
)


@pytest.mark.parametrize(
    ("value", "units"),
    [
        ("8", 8),
        (8, 8),
        ("0", 0),
        (None, 0),
        ("", 0),
        ("1500m", 2),
        ("2k", 2000),
        ("1.5", 2),
        ("nonsense", 0),
        ("-1", 0),
        ("16Ki", 16384),
        ("1Gi", 2**30),
        ("1.5Ki", 1536),
        ("0.1Ki", 103),
        ("1u", 1),
        ("2000000n", 1),
        ("2T", 2 * 10**12),
        ("3Ei", 3 * 2**60),
        ("1E", 10**18),
        ("1E3", 1000),
        ("15e-1", 2),
        ("5.", 5),
        (".5", 1),
        (".", 0),
        # What a float would round up to 1000000000000000001.
        ("1000000000000000000.0", 10**18),
        ("1.1k", 1100),
        ("1Ki3", 0),
        ("1e999999999", 0),
        ("\u0663", 0),
    ],
)
def test_parse_units_rounds_up(value: Any, units: int) -> None:
    assert parse_units(value) == units


TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("toleration", "accepted"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "other"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({}, False),
    ],
)
def test_is_tolerated_by_scheduler_rules(toleration: dict[str, Any], accepted: bool) -> None:
    assert is_tolerated([toleration], TAINT) is accepted


def test_find_untolerated_taints_ignores_preferences() -> None:
    soft = {"key": "soft", "effect": "PreferNoSchedule"}
    assert find_untolerated_taints(node("w", taints=[TAINT, soft]), []) == [TAINT]
    assert find_untolerated_taints(node("w", taints=[TAINT]), [], ignore=["k"]) == []
    assert find_untolerated_taints(node("w"), []) == []
    assert (format_taint(TAINT), format_taint(soft)) == ("k=v:NoSchedule", "soft:PreferNoSchedule")


def pinned(*values: str) -> dict[str, Any]:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(values)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


@pytest.mark.parametrize(
    ("made", "name"),
    [
        (pod("p", on="w1"), "w1"),
        (pod("p", affinity=pinned("w2")), "w2"),
        (pod("p", affinity=pinned("w1", "w2")), ""),
        (pod("p", affinity={"nodeAffinity": {}}), ""),
        (pod("p"), ""),
    ],
)
def test_get_node_name_reads_spec_or_affinity(made: dict[str, Any], name: str) -> None:
    assert get_node_name(made) == name
    assert list(group_by_node([made])) == ([name] if name else [])


DESIRED: dict[str, Any] = {
    "kind": "DaemonSet",
    "metadata": {"name": "a", "labels": {"b": "c"}},
    "spec": {
        "containers": [{"name": "d", "args": ["-v"]}],
        "tolerations": [{"key": "e", "operator": "Exists"}],
        "groups": [{"name": "f", "rules": []}],
        "volumes": [{"name": "g", "emptyDir": {}}],
        "imagePullSecrets": [],
        "nodeSelector": {},
    },
}


def apply(spec: dict[str, Any] | None = None, applied: Any = DESIRED, **labels: str) -> dict[str, Any]:
    """DESIRED as the API server has it."""
    annotations = {APPLIED_ANNOTATION: applied if isinstance(applied, str) else json.dumps(applied)}
    metadata = {"name": "a", "uid": "1", "labels": {"b": "c", **labels}, "annotations": annotations}
    container = {"name": "d", "args": ["-v"], "imagePullPolicy": "Always"}
    kept = {name: DESIRED["spec"][name] for name in ("tolerations", "groups", "volumes")}
    own = {**kept, "containers": [container], "paused": False}
    return {"kind": "DaemonSet", "metadata": metadata, "spec": {**own, **(spec or {})}, "status": {}}


@pytest.mark.parametrize(
    ("existing", "is_current"),
    [
        (apply(), True),
        (apply(x="y"), True),
        (apply(b="other"), False),
        (apply(applied="no JSON"), False),
        (apply(applied={**DESIRED, "data": {}}), False),
        ({**apply(), "metadata": {"name": "a", "labels": {"b": "c"}}}, False),
        (apply({"containers": [{"name": "d", "args": ["-w"]}]}), False),
        (apply({"containers": [{"name": "d", "args": ["-v", "-w"]}]}), False),
        (apply({"containers": [{"name": "d", "args": ["-v"]}, {"name": "sidecar"}]}), False),
        (apply({"containers": None}), False),
        (apply({"tolerations": [{"key": "e", "operator": "Exists", "effect": "NoSchedule"}]}), False),
        (apply({"tolerations": []}), False),
        (apply({"groups": [{"name": "f", "rules": [], "interval": "1h"}]}), False),
        (apply({"volumes": [{"name": "g"}]}), False),
        (apply({"imagePullSecrets": [{"name": "h"}]}), False),
        (apply({"nodeSelector": {"i": "j"}}), False),
    ],
)
def test_object_that_was_applied_and_is_as_desired_is_current(existing: dict[str, Any], is_current: bool) -> None:
    assert is_applied(DESIRED, existing) is is_current
