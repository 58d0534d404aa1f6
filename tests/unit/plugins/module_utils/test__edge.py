# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""How nodes and hosts of edge frameworks are recognised, and what follows from it."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._edge import (
    FRAMEWORKS,
    find_agent,
    find_framework,
    get_framework,
    keeps_pods,
    list_notes,
)

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("marks", "name"),
    [
        ({"labels": {"superedge.io/node-edge": "enable"}}, "superedge"),
        ({"labels": {"superedge.io/node-edge": "disable"}}, ""),
        # Nodes of the cloud side are not edge nodes.
        ({"labels": {"superedge.io/node-cloud": "enable", "superedge.io/node-master": "enable"}}, ""),
        ({"server": "https://127.0.0.1:51003"}, "superedge"),
        ({"server": "https://169.254.20.11:51003/"}, "superedge"),
        ({"labels": {"openyurt.io/is-edge-worker": "true"}}, "openyurt"),
        ({"labels": {"openyurt.io/is-edge-worker": "false", "apps.openyurt.io/nodepool": "cloud"}}, ""),
        ({"server": "http://127.0.0.1:10261"}, "openyurt"),
        ({"server": "https://127.0.0.1:10268"}, "openyurt"),
        # Ingress nodes of other clusters have it, too.
        ({"labels": {"node-role.kubernetes.io/edge": ""}, "kubelet_version": "v1.34.4"}, ""),
        ({"kubelet_version": "v1.32.10-kubeedge-v1.23.1"}, "kubeedge"),
        # A framework's own label says more than the role of the node.
        ({"labels": {"node-role.kubernetes.io/edge": "", "superedge.io/node-edge": "enable"}}, "superedge"),
        (
            {"labels": {"nvidia.com/gpu.present": "true"}, "kubelet_version": "v1.34.4"},
            "",
        ),
        # The load balancer of k3s, and API servers whose address only looks like a port.
        ({"server": "https://127.0.0.1:6444"}, ""),
        ({"server": "https://10.0.0.1:6443"}, ""),
        ({"server": "https://51003.example.com"}, ""),
        ({"server": "no URL"}, ""),
        ({}, ""),
    ],
)
def test_find_framework_by_each_mark_returns_its_name(marks: dict[str, t.Any], name: str) -> None:
    assert find_framework(**{"labels": {}, **marks}) == name


def test_find_agent_replaces_the_kubelet_on_kubeedge_alone() -> None:
    assert find_agent({"/etc/kubeedge/config/edgecore.yaml"}.__contains__) == "kubeedge"
    assert find_agent({"/etc/kubeedge/config/cloudcore.yaml"}.__contains__) == ""
    assert "modules.edged.tailoredKubeletConfig" in get_framework("kubeedge").kubelet_hint


@pytest.mark.parametrize(
    ("name", "annotations", "kept"),
    [
        ("superedge", {}, True),
        ("kubeedge", {}, True),
        ("openyurt", {}, False),
        ("openyurt", {"node.openyurt.io/autonomy-duration": "24h"}, True),
        ("openyurt", {"node.beta.openyurt.io/autonomy": "false"}, False),
        ("", {"node.openyurt.io/autonomy-duration": "24h"}, False),
    ],
)
def test_keeps_pods_by_framework_and_annotation(name: str, annotations: dict[str, str], kept: bool) -> None:
    assert keeps_pods(name, annotations) is kept


@pytest.mark.parametrize("row", FRAMEWORKS, ids=lambda row: row.name)
def test_notes_are_clauses_that_name_the_framework(row: t.Any) -> None:
    notes = list_notes(row.name)
    assert notes
    assert all(note.startswith(f"{row.title}: ") and not note.endswith(".") for note in notes)


def test_list_notes_of_no_framework_is_empty() -> None:
    assert list_notes("") == []


def test_notes_name_variables_that_exist() -> None:
    specs = "".join(path.read_text() for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"))
    words = " ".join(note for row in FRAMEWORKS for note in row.notes)
    named = set(re.findall(r"\w+_(?:selector|tolerations)\b", words))
    assert named == {"gpu_edge_tolerations", "_extender_node_selector"}
    assert [word for word in sorted(named) if f"{word}:\n" not in specs] == []
