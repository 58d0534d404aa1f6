# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of the role _extender_sharing pass their input on and turn errors into Ansible's."""

from __future__ import annotations

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter import node_capacities, restart_time, scheduler_extenders

CAPACITIES = node_capacities.FilterModule().filters()["node_capacities"]
RESTART = restart_time.FilterModule().filters()["restart_time"]
EXTENDERS = scheduler_extenders.FilterModule().filters()["scheduler_extenders"]
NOW = "2026-03-01T12:00:00Z"


def test_filters_pass_all_arguments_on():
    pods = [{"metadata": {"creationTimestamp": "2026-02-01T00:00:00Z"}}]
    assert (RESTART([[], pods], "20", NOW), RESTART([[], pods], 30, NOW)) == (NOW, "")
    rows = [{"name": "a", "gpu_capacity": {"x": 2}}]
    assert CAPACITIES(rows, ["x"], planned={"b": [1]}) == {"a": [2], "b": [1]}


@pytest.mark.parametrize("arguments", [(None, 1, NOW), ([[1]], 1, NOW), ([], 1, "today")])
def test_restart_time_names_input_of_another_form(arguments):
    with pytest.raises(AnsibleFilterError, match="restart_time cannot read its input"):
        RESTART(*arguments)


@pytest.mark.parametrize("rows", [None, [{}], "text"])
def test_node_capacities_names_input_of_another_form(rows):
    with pytest.raises(AnsibleFilterError, match="node_capacities cannot read its input"):
        CAPACITIES(rows, ["x"])


def plan_of(*extenders, leaves=()):
    return {"cluster": {"extenders": list(extenders), "leaves": list(leaves)}}


def test_extenders_are_those_of_the_plan():
    own, old = {"urlPrefix": "http://a/x"}, {"urlPrefix": "http://b/gpushare-scheduler"}
    settings = {"gpushare": {"urlPrefix": ""}, "nano_gpu": {"urlPrefix": "http://c"}}
    assert EXTENDERS([own, old], plan_of("nano_gpu", leaves=["gpushare"]), settings) == [own, settings["nano_gpu"]]
    assert EXTENDERS([own, old], plan_of("nano_gpu"), settings) == [own, old, settings["nano_gpu"]]
    assert EXTENDERS([], plan_of("gpushare"), settings) == [{"urlPrefix": ""}]
    assert EXTENDERS([], plan_of("gpushare"), settings, address="http://d") == [{"urlPrefix": "http://d"}]


@pytest.mark.parametrize("arguments", [(None, plan_of(), {}), ([], {}, {}), ([], plan_of("other"), {})])
def test_scheduler_extenders_names_input_of_another_form(arguments):
    with pytest.raises(AnsibleFilterError, match="scheduler_extenders cannot read its input"):
        EXTENDERS(*arguments)
