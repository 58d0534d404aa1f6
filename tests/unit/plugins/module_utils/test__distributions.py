# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue of Kubernetes distributions, and that no other code names one of its rows."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions import (
    DEFAULT,
    DISTRIBUTIONS,
    HIDDEN,
    Distribution,
    detect,
    named,
)

ROOT = Path(__file__).resolve().parents[4]
#: The tool whose cluster is the default is named where its own files are edited; the last row has a common word for a name.
OTHERS = [row for row in DISTRIBUTIONS if row not in (DEFAULT, HIDDEN)]
KUBEADM = "/var/lib/kubelet/kubeadm-flags.env"


@pytest.mark.parametrize(
    ("paths", "name"),
    [
        ({"/var/lib/rancher/k3s/agent"}, "k3s"),
        ({"/etc/rancher/rke2"}, "rke2"),
        ({"/etc/k0s"}, "k0s"),
        ({"/var/snap/microk8s"}, "MicroK8s"),
        ({"/etc/kubernetes/kubelet-config.yaml", KUBEADM}, "kubespray"),
        ({KUBEADM}, "kubeadm"),
        ({"/etc/rancher", "/etc/kubernetes"}, None),
        (set(), None),
    ],
)
def test_detect_marker_exists_returns_first_distribution(paths: set[str], name: str | None) -> None:
    assert detect(paths.__contains__) == name


def test_named_unknown_name_returns_row_without_hints() -> None:
    assert named("k0s").marker == "/etc/k0s"
    assert named(None) == named("another") == Distribution("")


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row.name)
@pytest.mark.parametrize("daemon", ["containerd", "kubelet", "scheduler"])
def test_row_of_each_daemon_has_either_hint_or_variables(row: Distribution, daemon: str) -> None:
    hint, variables = (getattr(row, f"{daemon}_{kind}") for kind in ("hint", "variables"))
    assert bool(hint) != bool(variables)
    assert not (hint + variables).endswith("."), "it is a part of a sentence"


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row.name)
def test_row_with_own_containerd_refuses_its_files(row: Distribution) -> None:
    assert bool(row.runtime_hint) == bool(row.containerd_hint)
    assert row.containerd_path or row.containerd_mark


def test_names_and_markers_are_unique() -> None:
    for field in ("name", "marker"):
        values = [getattr(row, field) for row in DISTRIBUTIONS if getattr(row, field)]
        assert len(values) == len(set(values))


def sources() -> t.Iterator[Path]:
    """The files that run on controllers and nodes."""
    for folder in ("plugins", "roles", "playbooks"):
        yield from (
            path for path in (ROOT / folder).rglob("*") if path.is_file() and path.suffix not in (".md", ".pyc")
        )


def test_no_other_file_names_a_distribution() -> None:
    names = re.compile("|".join(re.escape(row.name) for row in OTHERS), re.IGNORECASE)
    found = {path.relative_to(ROOT).as_posix() for path in sources() if names.search(path.read_text(encoding="utf-8"))}
    assert found == {"plugins/module_utils/_distributions.py"}
