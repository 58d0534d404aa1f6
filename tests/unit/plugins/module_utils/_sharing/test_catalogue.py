# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of sharing strategies agrees with the roles and playbooks that use the same names."""

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubernetes.drain.plan import ANNOTATION
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import (
    EXTENDED,
    STRATEGIES,
    matching,
    nvidia_resources,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.decision import MAINTENANCE, PLUGIN_TAG

ROOT = Path(__file__).resolve().parents[5]


def test_strategies_without_nvidias_plugin_are_gpushare_and_nano_gpu():
    assert [row.name for row in EXTENDED] == ["gpushare", "nano_gpu"]
    assert all(row.label and row.daemon_set for row in EXTENDED)
    assert not any(row.label or row.daemon_set for row in STRATEGIES.values() if row.by_nvidia)


def test_strategies_are_the_choices_of_the_role():
    yaml = pytest.importorskip("yaml")
    specs = yaml.safe_load((ROOT / "roles" / "gpu_sharing" / "meta" / "argument_specs.yml").read_text())
    options = specs["argument_specs"]["main"]["options"]
    assert options["gpu_sharing_strategy"]["choices"] == ["", *STRATEGIES]
    assert options["gpu_sharing_second_scheduler"]["choices"] == ["", *(row.name for row in EXTENDED)]


def test_labels_of_the_role_are_those_of_the_catalogue():
    yaml = pytest.importorskip("yaml")
    variables = yaml.safe_load((ROOT / "roles" / "gpu_sharing" / "vars" / "main" / "strategy.yml").read_text())
    assert variables["__gpu_sharing_labels"] == {row.name: row.label for row in EXTENDED}


def test_names_of_the_roles_are_those_of_the_catalogue():
    yaml = pytest.importorskip("yaml")
    found = {}
    for role in ("gpushare", "nano_gpu"):
        for path in sorted((ROOT / "roles" / role / "vars" / "main").glob("*.yml")):
            found.update(yaml.safe_load(path.read_text()))
    gpushare, nano_gpu = EXTENDED
    assert found["__gpushare_node_label"] == gpushare.label
    assert found["__gpushare_plugin_daemon_set"] == gpushare.daemon_set
    assert found["__nano_gpu_node_label"] == nano_gpu.label
    assert found["__nano_gpu_agent_name"] == nano_gpu.daemon_set


def test_tags_are_those_of_the_playbooks():
    yaml = pytest.importorskip("yaml")
    variables = yaml.safe_load((ROOT / "playbooks" / "vars" / "hosts.yml").read_text())
    assert {row.tag for row in STRATEGIES.values()} == {PLUGIN_TAG, "gpushare", "nano_gpu"}
    assert {row.tag for row in STRATEGIES.values()} <= set(variables["__gpu_tags"])


def test_annotation_is_the_one_of_node_maintenance():
    assert MAINTENANCE == ANNOTATION


@pytest.mark.parametrize(
    ("resource", "is_nvidias"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/mig-1g.5gb", True),
        ("nvidia.com/mig-", False),
        ("nvidia.com/hostdev", False),
        ("nvidia.com/gpu.other", False),
        ("example.com/a100", True),
        ("example.com/a1000", False),
        ("aliyun.com/gpu-mem", False),
    ],
)
def test_resources_of_nvidias_plugin(resource, is_nvidias):
    assert matching({resource: 3}, nvidia_resources("example.com/a100")) == ({resource: 3} if is_nvidias else {})


def test_a_configured_resource_name_is_not_a_pattern():
    assert matching({"example.com/a": 1, "example.com/*": 2}, nvidia_resources("example.com/*")) == {"example.com/*": 2}


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ({}, []),
        ({"gpushare": "true"}, ["gpushare"]),
        ({"gpushare": "no"}, []),
        ({"gpu-kubernetes/nano-gpu": "true", "other": "true"}, ["nano_gpu"]),
    ],
)
def test_labels_of_a_node_name_its_strategy(labels, names):
    assert [row.name for row in STRATEGIES.values() if row.is_labelled(labels)] == names
