# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which shapes of saved nodes and pods are read, and what is said of others."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fakes.gpushare import share_node, share_pod

from ansible_collections.gpu.kubernetes.plugins.module_utils._gpushare.kubectl_dump import DumpError, read_dump

NODE, POD = share_node("w1"), share_pod("p")
MIXED = {"apiVersion": "v1", "kind": "List", "items": [NODE, POD, {"kind": "Service", "metadata": {"name": "s"}}]}


def bare(item: dict[str, Any]) -> dict[str, Any]:
    """An object as it is in a list of the API server, which says the kind once for all."""
    return {key: value for key, value in item.items() if key != "kind"}


NODES = {"kind": "NodeList", "items": [bare(NODE)]}
PODS = {"kind": "PodList", "items": [bare(POD)]}


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
        [NODES, {"kind": "PodList", "items": [bare(POD), bare(POD)]}],
    ],
    ids=range(10),
)
def test_shapes(given: list[Any]) -> None:
    nodes, pods = read_dump(*given)
    assert [node.name for node in nodes] == ["w1"]
    assert [pod.name for pod in pods] == ["p"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("", "is not JSON (Expecting value"),
        ("[" * 100_000, "is no JSON"),
        ("{}", "An object without a kind"),
        ({"items": [NODE]}, "An object without a kind"),
        ([bare(NODE)], "An object without a kind"),
        (3, "Lists of nodes and pods were expected, not 3;"),
        (PODS, "The input has no node; save nodes and pods by: kubectl get nodes,pods -A -o json."),
        ([], "There is no node"),
        ({"kind": "NodeList", "items": None}, "There is no node"),
    ],
    ids=range(9),
)
def test_other_shapes_are_told_with_the_way_to_mend_them(given: Any, words: str) -> None:
    with pytest.raises(DumpError) as caught:
        read_dump(given)
    assert words in str(caught.value)
