# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of sharing strategies agrees with the roles and playbooks that use the same names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._sharing.catalogue import (
    DRAINS,
    OWN_PLUGIN,
    STRATEGIES,
    Strategy,
    matching,
    nvidia_resources,
    strategy_of,
)

ROOT = Path(__file__).resolve().parents[5]
#: Fields in which a strategy with its own device plugin differs from those of NVIDIA's.
OWN = ("role", "labelling_role", "tolerations", "counted", "measure", "daemon_set", "plugin_labels")
#: Files that may name one: its role, and the report on memory allocated by gpushare.
NAMING = re.compile(
    r"plugins/(module_utils/(_sharing/catalogue|_allocation/)|(filter|modules)/gpushare_|modules/(gpu_cost|show_report))"
    # Surveys are generated from the argument specs.
    r"|roles/(gpushare_report|gpu_cost)/|roles/awx_objects/vars/controller|playbooks/show_gpu_allocation"
)
ENTRY_POINTS = {"preflight", "cluster_present", "node_absent", "node_present", "cluster_absent", "verify"}


def test_only_strategies_with_a_device_plugin_of_their_own_have_a_label():
    assert [row.name for row in STRATEGIES.values() if row.label] == [row.name for row in OWN_PLUGIN]
    assert all(row.role == row.name and len(row.label) == 1 for row in OWN_PLUGIN)
    assert {row.drain for row in STRATEGIES.values()} <= set(DRAINS)


@pytest.mark.parametrize("row", OWN_PLUGIN, ids=lambda row: row.name)
def test_strategy_with_a_device_plugin_of_its_own_has_fields_of_its_own(row):
    nvidias = Strategy("", ())
    assert [name for name in OWN if getattr(row, name) == getattr(nvidias, name)] == []


def test_no_other_code_names_a_strategy_with_a_device_plugin_of_its_own():
    own = re.compile("|".join(rf"\b{row.name}(?![a-z])" for row in OWN_PLUGIN))
    code = [
        path for kind in ("plugins/**/*.py", "roles/*/[!m]*/**/*.yml", "playbooks/**/*.yml") for path in ROOT.glob(kind)
    ]
    named = {path.relative_to(ROOT).as_posix() for path in code if own.search(path.read_text(encoding="utf-8"))}
    own_roles = tuple(f"roles/{row.role}/" for row in OWN_PLUGIN)
    assert [name for name in sorted(named) if not name.startswith(own_roles) and not NAMING.match(name)] == []


@pytest.mark.parametrize("row", OWN_PLUGIN, ids=lambda row: row.name)
def test_role_of_a_strategy_has_its_entry_points_and_names(row):
    yaml = pytest.importorskip("yaml")
    role = ROOT / "roles" / row.role
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    assert set(specs) >= ENTRY_POINTS
    assert {path.stem for path in (role / "tasks").glob("*.yml")} >= ENTRY_POINTS
    assert f"{row.role}_remove_used" in specs["main"]["options"]
    variables = yaml.safe_load((role / "vars" / "main" / "sharing.yml").read_text())
    assert variables["_extender_sharing_name"] == row.name


@pytest.mark.parametrize(
    "row", [row for row in STRATEGIES.values() if row.host_role == "mps"], ids=lambda row: row.name
)
def test_role_of_a_strategy_of_nvidias_plugin_has_its_entry_points(row):
    yaml = pytest.importorskip("yaml")
    role = ROOT / "roles" / row.host_role
    points = {"preflight", "node_absent", "node_present", "verify", *(["cluster_absent"] if row.in_cluster else [])}
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    assert set(specs) == {*points, "main"}
    assert {path.stem for path in (role / "tasks").glob("*.yml")} >= points
    assert f"{row.host_role}_remove_used" in specs["main"]["options"]


@pytest.mark.parametrize("row", [row for row in STRATEGIES.values() if row.host_role], ids=lambda row: row.name)
def test_role_that_checks_leaving_has_the_entry_point(row):
    yaml = pytest.importorskip("yaml")
    role = ROOT / "roles" / row.host_role
    specs = yaml.safe_load((role / "meta" / "argument_specs.yml").read_text())["argument_specs"]
    assert ("preflight_absent" in specs) is row.checks_leaving
    assert (role / "tasks" / "preflight_absent.yml").exists() is row.checks_leaving


def test_strategies_are_the_choices_of_the_role():
    yaml = pytest.importorskip("yaml")
    specs = yaml.safe_load((ROOT / "roles" / "gpu_sharing" / "meta" / "argument_specs.yml").read_text())
    options = specs["argument_specs"]["main"]["options"]
    assert options["gpu_sharing_strategy"]["choices"] == ["", *STRATEGIES]
    extended = [row.name for row in STRATEGIES.values() if row.scheduler == "extender"]
    assert options["gpu_sharing_second_scheduler"]["choices"] == ["", *extended]


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


def test_roles_and_their_runtime_classes_are_those_of_the_catalogue():
    """The role gpu_smoke_test reads the variable by the name of the role."""
    yaml = pytest.importorskip("yaml")
    for row in STRATEGIES.values():
        defaults = yaml.safe_load((ROOT / "roles" / row.role / "defaults" / "main.yml").read_text())
        assert f"{row.role}_runtime_class" in defaults
        if row.image_without_runtime_class:
            names = ("repository", "tag")
            default = ":".join(defaults[f"{row.role}_extender_image_{name}"] for name in names)
            assert default == row.image_without_runtime_class


def test_shared_resources_are_those_of_the_strategy():
    for row in STRATEGIES.values():
        names = {each.name: 1 for each in row.shared}
        assert matching(names, row.resources) == names
        assert bool(names) is not row.by_nvidia


@pytest.mark.parametrize(
    ("resource", "name"),
    [
        ("nvidia.com/gpu", "exclusive"),
        ("example.com/gpu", "exclusive"),
        ("aliyun.com/gpu-mem", "gpushare"),
        ("aliyun.com/gpu-count", "gpushare"),
        ("elasticgpu.io/gpu-memory", "nano_gpu"),
    ],
)
def test_resource_names_the_strategy_whose_plugin_registers_it(resource, name):
    assert strategy_of(resource).name == name


@pytest.mark.parametrize("row", STRATEGIES.values(), ids=lambda row: row.name)
def test_row_as_plain_types_keeps_pods_off_its_nodes(row):
    plain = row.as_dict()
    assert plain["by_nvidia"] is row.by_nvidia
    assert [each["key"] for each in plain["exclusions"]] == list(row.label)
    assert strategy_of(row.counted[""]).role == row.role
