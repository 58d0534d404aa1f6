# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filters of the role _extender_sharing pass their input on and turn errors into Ansible's."""

from __future__ import annotations

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter import node_capacities, restart_time

CAPACITIES = node_capacities.FilterModule().filters()["node_capacities"]
RESTART = restart_time.FilterModule().filters()["restart_time"]
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
