# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The strategy of a node, and the reason of its cordon."""

from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import OWN_PLUGIN
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.node_state import (
    CHANGE_LABEL,
    NodeState,
    reason_of,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.plugin_config import read_configured
from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._sharing.sharing_nodes import SLICED


@pytest.mark.parametrize(
    ("config", "strategy"),
    [
        ({}, "exclusive"),
        ({"sharing": None, "flags": None}, "exclusive"),
        ({"sharing": {"mps": {"resources": []}}}, "mps"),
        ({"sharing": {"mps": {}, "timeSlicing": {"resources": []}}}, "time_slicing"),
        ({"flags": {"migStrategy": "single"}}, "mig"),
        ({"flags": {"migStrategy": "none"}}, "exclusive"),
        ({"flags": {"migStrategy": None}}, "exclusive"),
        ({"sharing": SLICED["sharing"], "flags": {"migStrategy": "mixed"}}, "time_slicing"),
        ({"sharing": "text"}, "exclusive"),
        ("text", "exclusive"),
    ],
)
def test_strategy_is_read_from_the_device_plugins_configuration(config, strategy):
    assert read_configured(config).name == strategy


@pytest.mark.parametrize(
    ("reason", "changing", "names"),
    [
        ("", False, []),
        ("driver of gpushare", False, []),
        (reason_of([], "gpushare"), True, ["gpushare"]),
        (reason_of(["exclusive"], "time_slicing"), True, []),
        (reason_of(["exclusive"], "mps"), True, ["mps"]),
        (reason_of(["gpushare"], "nano_gpu"), True, ["gpushare", "nano_gpu"]),
        (reason_of(["nano_gpu"], "exclusive") + " and-gpushare", True, ["nano_gpu"]),
    ],
)
def test_cordon_reason_names_strategies_of_an_interrupted_change(reason, changing, names):
    state = NodeState({"maintenance": {"reason": reason}})
    assert (state.is_changing, [row.name for row in state.changing]) == (changing, names)


def test_node_outside_the_cluster_has_no_strategy():
    state = NodeState({})
    assert not state.known
    assert not any(state.has(row) for row in OWN_PLUGIN)


def test_plan_and_role_keep_the_plugin_off_by_the_same_label():
    text = (ROOT / "roles" / "k8s_device_plugin" / "vars" / "main.yml").read_text(encoding="utf-8")
    assert f"\n__k8s_device_plugin_change_label: {CHANGE_LABEL}\n" in text
