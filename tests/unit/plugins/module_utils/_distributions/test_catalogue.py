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
    describe_own,
    detect,
    list_kubelet_units,
    named,
)

ROOT = Path(__file__).resolve().parents[5]
#: The tool whose cluster is the default is named where its own files are edited; the last row has a common word for a name.
OTHERS = [row for row in DISTRIBUTIONS if row not in (DEFAULT, HIDDEN)]
#: They are named after the tool whose variables they return.
FILTERS = ("plugins/filter/kubespray_missing.py", "plugins/filter/kubespray_vars.py")
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
    assert bool(row.own_containerd) == bool(row.containerd_hint)
    assert row.containerd_path or row.containerd_mark


@pytest.mark.parametrize("row", [row for row in OTHERS if row.own_containerd], ids=lambda row: row.name)
def test_own_containerd_has_what_its_way_needs(row: Distribution) -> None:
    own = row.own_containerd
    assert own is not None
    assert own.units[-1][1] == ""
    assert all(marker for _unit, marker in own.units[:-1])
    assert all(path.startswith("/") for path in (own.config, own.socket, *own.programs))
    needed = {"automatic": (own.settings_folder, own.default_key), "drop_in": (own.edited,), "template": (own.edited,)}
    assert all(needed[own.way])


@pytest.mark.parametrize(
    ("name", "paths", "service", "program"),
    [
        ("k3s", {"/var/lib/rancher/k3s/server/tls"}, "k3s", "/var/lib/rancher/k3s/data/b/bin/containerd"),
        # Early releases have made this folder on agents, too.
        ("k3s", {"/var/lib/rancher/k3s/server"}, "k3s-agent", "/var/lib/rancher/k3s/data/b/bin/containerd"),
        ("k3s", set(), "k3s-agent", "/var/lib/rancher/k3s/data/b/bin/containerd"),
        ("rke2", set(), "rke2-agent", None),
        ("k0s", {"/etc/systemd/system/k0sworker.service"}, "k0sworker", "/var/lib/k0s/bin/containerd"),
        ("k0s", set(), "k0scontroller", "/var/lib/k0s/bin/containerd"),
        ("MicroK8s", set(), "snap.microk8s.daemon-containerd", None),
    ],
)
def test_describe_own_names_unit_and_program_of_the_host(
    name: str, paths: set[str], service: str, program: str | None
) -> None:
    found = {
        "/var/lib/rancher/k3s/data/*/bin/containerd": ["/var/lib/rancher/k3s/data/b/bin/containerd"],
        "/var/lib/k0s/bin/containerd": ["/var/lib/k0s/bin/containerd"],
    }
    own = describe_own(name, paths.__contains__, lambda pattern: found.get(pattern, []))
    assert (own["service"], own["program"]) == (service, program)


@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("k3s", ["k3s.service", "k3s-agent.service"]),
        ("rke2", ["rke2-server.service", "rke2-agent.service"]),
        ("k0s", ["k0sworker.service", "k0scontroller.service"]),
        ("MicroK8s", ["snap.microk8s.daemon-kubelite.service"]),
        ("kubespray", ["kubelet.service"]),
        ("kubeadm", ["kubelet.service"]),
        (None, ["kubelet.service"]),
    ],
)
def test_list_kubelet_units_names_the_units_of_the_distribution(name: str | None, units: list[str]) -> None:
    assert list_kubelet_units(name) == units


def test_describe_own_of_a_host_with_its_own_containerd_is_empty() -> None:
    assert describe_own("kubeadm") == describe_own(None) == {}


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row.name)
def test_row_with_a_hint_for_the_kubelet_has_its_form(row: Distribution) -> None:
    assert bool(row.kubelet_hint) == (row.kubelet_form in ("arguments", "flags", "profile"))


@pytest.mark.parametrize("row", [row for row in OTHERS if row.own_kubelet], ids=lambda row: row.name)
def test_own_kubelet_is_read_after_the_files_of_the_distribution(row: Distribution) -> None:
    own = row.own_kubelet
    assert own is not None
    assert row.own_containerd is not None, "its unit runs the kubelet, too"
    assert row.kubelet_hint, "for releases without the folder"
    assert {unit for unit, _marker in row.own_containerd.units} == set(row.kubelet_units)
    copies = f"{Path(own.drop_in).parent}/20-cli-config-dir"
    assert own.defaults < copies < own.drop_in
    assert own.drop_in.endswith(".conf")
    assert own.settings_folder.endswith(".d")


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
    assert found == {"plugins/module_utils/_distributions/rows.py", *FILTERS}
