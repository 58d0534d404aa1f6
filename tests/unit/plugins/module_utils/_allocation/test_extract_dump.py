# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shapes of saved nodes and pods, and the errors for others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes.gpushare import share_node, share_pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._allocation.extract import DumpError, read_dump

NODE, POD = share_node("w1"), share_pod("p")
MIXED = {"apiVersion": "v1", "kind": "List", "items": [NODE, POD, {"kind": "Service", "metadata": {"name": "s"}}]}


def drop_kind(item: dict[str, Any]) -> dict[str, Any]:
    """An object as in a list of the API server, which has the kind only once."""
    return {key: value for key, value in item.items() if key != "kind"}


NODES = {"kind": "NodeList", "items": [drop_kind(NODE)]}
PODS = {"kind": "PodList", "items": [drop_kind(POD)]}


@pytest.mark.parametrize(
    "given",
    [
        [MIXED],
        [json.dumps(MIXED)],
        [NODES, PODS],
        [json.dumps(NODES), json.dumps(PODS)],
        [[NODES, PODS]],
        [[NODE, POD]],
        [NODES, [POD]],
        [NODE, POD],
        [MIXED, PODS],
        [NODES, {"kind": "PodList", "items": [drop_kind(POD), drop_kind(POD)]}],
    ],
    ids=range(10),
)
def test_read_dump_of_each_shape(given: list[Any]) -> None:
    nodes, pods = read_dump(*given)
    assert [node.name for node in nodes] == ["w1"]
    assert [pod.name for pod in pods] == ["p"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "is not JSON (Expecting value"),
        ("[" * 100_000, "is not JSON"),
        ("{}", "an object without a kind"),
        ({"items": [NODE]}, "an object without a kind"),
        ([drop_kind(NODE)], "an object without a kind"),
        (3, "Lists of nodes and pods were expected, not 3;"),
        (PODS, "The input has no node; save nodes and pods by: kubectl get nodes,pods -A -o json."),
        ([], "The input has no node"),
        ({"kind": "NodeList", "items": None}, "The input has no node"),
    ],
    ids=range(9),
)
def test_read_dump_of_other_shape_raises_with_remedy(given: Any, words: str) -> None:
    with pytest.raises(DumpError) as caught:
        read_dump(given)
    assert words in str(caught.value)
