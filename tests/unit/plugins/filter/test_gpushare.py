# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError
from fakes.gpushare import share_node, share_pod

from ansible_collections.gpu.kubernetes.plugins.filter import gpushare_allocation, gpushare_render

compute = gpushare_allocation.FilterModule().filters()["gpushare_allocation"]
render = gpushare_render.FilterModule().filters()["gpushare_render"]

NODES = {"kind": "NodeList", "items": [share_node("w1"), share_node("w2")]}
PODS = {"kind": "PodList", "items": [share_pod("p")]}
SAVED = {"kind": "List", "items": [*NODES["items"], *PODS["items"]]}


@pytest.mark.parametrize("given", [(SAVED,), (json.dumps(SAVED),), (NODES, PODS), ([NODES, PODS],)])
def test_gpushare_allocation_of_saved_objects(given: tuple[Any, ...]) -> None:
    assert compute(*given)["cluster"] == {"allocated": 3, "total": 32, "percent": 9}
    assert compute(*given, node="w1", unit="MiB")["unit"] == "MiB"
    assert compute(*given, node="w1")["cluster"]["percent"] == 18


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        (SAVED, {"node": "w9"}, "There is no node w9"),
        (SAVED, {"unit": "GB"}, "has no unit GB; choose one of GiB, MiB."),
        (PODS, {}, "The input has no node"),
        ("{", {}, "is not JSON"),
        ({"kind": "Node", "status": "text"}, {}, "cannot read what it was given"),
    ],
)
def test_gpushare_allocation_with_invalid_input_raises(given: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        compute(given, **options)


def test_gpushare_render_of_allocation() -> None:
    allocation = compute(SAVED)
    assert render(allocation).startswith("NAME  IPADDRESS  GPU0(Allocated/Total)  GPU Memory(GiB)\nw1 ")
    assert "default    3" in render(allocation, details=True)
    assert "###" in render(allocation, bars=True)
    assert json.loads(render(allocation, "json")) == allocation
    assert render(allocation, format="csv").startswith("node,address,gpu,")


@pytest.mark.parametrize(
    ("allocation", "form", "words"),
    [
        ({}, "table", "cannot read"),
        ([], "json", "cannot read"),
        ({}, "yaml", "has no format yaml; choose one of table, "),
    ],
)
def test_gpushare_render_with_invalid_input_raises(allocation: Any, form: str, words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        render(allocation, form)
