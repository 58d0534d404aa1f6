# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of NVIDIA's device plugin for one node, and its name."""

from __future__ import annotations

import re

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import STRATEGIES
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import (
    Request,
    build_config,
    list_uses,
    name_resource,
    read_configured,
    strategy_of_name,
)

BASE = {"version": "v1", "flags": {"plugin": {"deviceListStrategy": ["cdi-cri"]}}}
TWO = {"resources": [{"name": "nvidia.com/gpu", "replicas": 2}]}
FOUR = {"failRequestsGreaterThanOne": True, "resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}
#: The configuration of all nodes, the strategy and what the host declares, and the name without the hash and the document of its node.
CASES = {
    "as-it-is": (BASE, "exclusive", Request(), "", {}),
    "empty": ({}, "exclusive", Request(), "", {}),
    "written-otherwise": ({"flags": {"migStrategy": "none"}, "sharing": {}}, "exclusive", Request(), "", {}),
    "sliced": (BASE, "time_slicing", Request(4), "time_slicing-4", {**BASE, "sharing": {"timeSlicing": FOUR}}),
    "renamed": (
        {},
        "time_slicing",
        Request(4, rename=True),
        "time_slicing-4-shared",
        {"version": "v1", "sharing": {"timeSlicing": {**FOUR, "renameByDefault": True}}},
    ),
    "mps-replaces-slices": (
        {"sharing": {"timeSlicing": TWO}},
        "mps",
        Request(4),
        "mps-4",
        {"version": "v1", "sharing": {"mps": FOUR}},
    ),
    "as-configured": ({"sharing": {"timeSlicing": TWO}}, "time_slicing", Request(), "", {}),
    "requests-may-be-larger": (
        {"sharing": {"timeSlicing": {**TWO, "failRequestsGreaterThanOne": False}}},
        "time_slicing",
        Request(4),
        "time_slicing-4",
        {"version": "v1", "sharing": {"timeSlicing": {**FOUR, "failRequestsGreaterThanOne": False}}},
    ),
    "whole-beside-slices": ({"sharing": {"timeSlicing": TWO}}, "exclusive", Request(), "exclusive", {"version": "v1"}),
    "mig": (BASE, "mig", Request(), "mig-single", {**BASE, "flags": {**BASE["flags"], "migStrategy": "single"}}),
    "mig-mixed": (
        {},
        "mig",
        Request(mig_strategy="mixed"),
        "mig-mixed",
        {"version": "v1", "flags": {"migStrategy": "mixed"}},
    ),
    "mig-as-configured": ({"flags": {"migStrategy": "mixed"}}, "mig", Request(), "", {}),
    "another-plugin": (BASE, "gpushare", Request(4), "", {}),
    "unreadable": ("text", "exclusive", Request(), "", {}),
}


@pytest.mark.parametrize(("base", "strategy", "request_", "name", "document"), CASES.values(), ids=CASES)
def test_configuration_of_a_node_is_made_from_that_of_all_nodes(base, strategy, request_, name, document):
    built = build_config(base, STRATEGIES[strategy], request_)
    assert (re.sub("-[0-9a-f]{8}$", "", built.name), built.document, built.problem) == (name, document, "")
    if name:
        assert read_configured(built.document).name == strategy
        assert strategy_of_name(built.name).name == strategy
        # Kubernetes allows 63 characters in the value of a label.
        assert len(built.name) < 40


def test_another_content_has_another_name():
    base = {"flags": {"failOnInitError": False}}
    names = {
        build_config(given, STRATEGIES["mps"], Request(replicas)).name for given in ({}, base) for replicas in (2, 4)
    }
    assert len(names) == 4


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Request(), "needs the number of pods that share a GPU"),
        (Request(1), "gpu_sharing_replicas is 1"),
        (Request(-1), ""),
    ],
)
def test_configuration_without_replicas_is_refused(request_, words):
    built = build_config({}, STRATEGIES["mps"], request_)
    assert words in built.problem
    assert built.problem
    assert (built.name, built.document) == ("", {})


@pytest.mark.parametrize("name", ["", "default", "mine", "time_slicing-4", "unknown-4-0123abcd", "mps-4-0123ABCD"])
def test_names_of_others_have_no_strategy(name):
    assert strategy_of_name(name) is None


def test_resource_and_uses_follow_from_the_configuration():
    renamed, mig = {"sharing": {"mps": {"renameByDefault": True}}}, {"flags": {"migStrategy": "single"}}
    assert [name_resource(config) for config in ({}, renamed)] == ["nvidia.com/gpu", "nvidia.com/gpu.shared"]
    assert name_resource(renamed, "nvidia.com/gpu.shared") == "nvidia.com/gpu.shared"
    assert [list_uses(each) for each in ([{}], [renamed], [mig, renamed])] == [[], ["mps"], ["mig", "mps"]]
