# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A kubelet that the distribution starts itself with a folder of drop-ins, on a fake node."""

from __future__ import annotations

import stat
import typing as t
from pathlib import Path

import pytest

pytest.importorskip("ruamel.yaml")

import yaml as pyyaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._distributions import named
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import node as node_half
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet.own import BLANK, read_flags
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubelet.kubelet_node import DropInNode

WRITTEN = BLANK.decode() + (
    "kubeReserved:\n  cpu: '500m'\n  memory: '1Gi'\nsystemReserved:\n  cpu: '1'\n  memory: '512Mi'\n"
)
KUBEADM_FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
K3S, RKE2 = "/var/lib/rancher/k3s", "/var/lib/rancher/rke2"
K3S_DEFAULTS = f"{K3S}/agent/etc/kubelet.conf.d/00-k3s-defaults.conf"
RKE2_DEFAULTS = f"{RKE2}/agent/etc/kubelet.conf.d/00-rke2-defaults.conf"


@pytest.fixture
def node(tmp_path: Path) -> DropInNode:
    return DropInNode(tmp_path)


@pytest.mark.parametrize("name", ["k3s", "rke2"])
def test_check_run_repeat_and_undo_leave_no_file(tmp_path: Path, name: str) -> None:
    node = DropInNode(tmp_path, name)
    first = node.files()
    predicted = node.run(check=True)
    assert (predicted["changed"], predicted["needs_restart"], predicted["service"]) == (True, True, "agent")
    assert node.files() == first
    done = node.run()
    assert {**done, "backup_files": 0} == {**predicted, "backup_files": 0}
    assert (done["files"], done["backup_files"]) == ([*map(str, node.records()), str(node.config)], {})
    assert node.config.name == "50-gpu-kubernetes.conf"
    assert node.config.read_text() == WRITTEN
    assert stat.S_IMODE(node.config.stat().st_mode) == 0o600
    for check in (True, False):
        again = node.run(check=check)
        assert (again["changed"], again["needs_restart"], again["diff"], again["files"]) == (False, False, [], [])
        assert again["reserved"] == done["reserved"]
    assert node.run(state="absent", check=True)["changed"]
    assert node.config.exists()
    undone = node.run(state="absent")
    assert (undone["changed"], undone["needs_restart"]) == (True, True)
    assert node.files() == first
    assert node.records() == []
    assert not node.run(state="absent")["changed"]


def test_other_values_replace_the_former_ones(node: DropInNode) -> None:
    node.run()
    assert node.run({"kubeReserved": {"cpu": 2}})["needs_restart"]
    assert pyyaml.safe_load(node.config.read_text()) == {
        **pyyaml.safe_load(BLANK),
        "kubeReserved": {"cpu": "2"},
    }
    assert node.run({})["changed"]
    assert not node.config.exists()


def test_thresholds_are_added_to_those_of_the_distribution(node: DropInNode) -> None:
    """Without a main file, the kubelet has none of its own default thresholds, such as memory.available."""
    defaults = {"imagefs.available": "5%", "nodefs.available": "5%"}
    assert node.run()["reserved"]["evictionHard"] == defaults
    done = node.run({"evictionHard": {"memory.available": "500Mi"}})
    assert done["reserved"]["evictionHard"] == {**defaults, "memory.available": "500Mi"}
    assert done["warnings"] == []


def test_earlier_drop_ins_count_where_the_file_says_nothing(node: DropInNode) -> None:
    node.drop_in("10-cli-config.conf", "kubeReserved: {cpu: 250m, pid: '100'}")
    node.drop_in("20-cli-config-dir/90-more.conf", "systemReserved: {memory: 2Gi, ephemeral-storage: 1Gi}")
    node.drop_in("60-later.conf", "kubeReserved: {pid: '200'}")
    reserved = node.run()["reserved"]
    assert reserved["kubeReserved"] == {"cpu": "500m", "memory": "1Gi", "pid": "200"}
    assert reserved["systemReserved"] == {"cpu": "1", "memory": "512Mi", "ephemeral-storage": "1Gi"}


@pytest.mark.parametrize("name", ["60-later.conf", "50-gpu-kubernetes.conf.d/a.conf"])
def test_later_drop_in_that_overrides_the_file_is_refused(node: DropInNode, name: str) -> None:
    path = node.drop_in(name, "kubeReserved: {memory: 3Gi}")
    with pytest.raises(ConfigError, match=rf"^{path} overrides {node.config} and sets kubeReserved\.memory: remove it"):
        node.run()
    assert not node.config.exists()


@pytest.mark.parametrize(
    ("files", "command", "value"),
    [
        ({"config.yaml": "kubelet-arg:\n  - kube-reserved=cpu=1,memory=1Gi\n"}, "", "cpu=1,memory=1Gi"),
        ({"config.yaml": "kubelet-arg: --kube-reserved=cpu=1\n"}, "", "cpu=1"),
        (
            {"config.yaml": "kubelet-arg: [max-pods=50]\n", "a.yaml": "kubelet-arg+: [kube-reserved=cpu=1]\n"},
            "",
            "cpu=1",
        ),
        ({"config.yaml": "kubelet-arg: [kube-reserved=cpu=1]\n", "a.yaml": "kubelet-arg: [max-pods=50]\n"}, "", None),
        ({}, "--kubelet-arg=kube-reserved=cpu=1", "cpu=1"),
        ({}, "--kubelet-arg max-pods=50 --kubelet-arg kube-reserved=cpu=1", "cpu=1"),
        ({"config.yaml": "kubelet-arg: [kube-reserved=cpu=1]\n"}, "--kubelet-arg=max-pods=50", None),
        ({"config.yaml": "token: secret\n", "a.yaml": ""}, "", None),
    ],
)
def test_flag_in_the_settings_of_the_distribution_is_refused(
    node: DropInNode, files: dict[str, str], command: str, value: str | None
) -> None:
    for name, text in files.items():
        folder = node.settings.parent if name == "config.yaml" else node.settings
        (folder / name).write_text(text)
    node.command = node.command.replace("agent", f"agent {command}")
    if value is None:
        assert node.run()["changed"]
        return
    with pytest.raises(ConfigError, match=rf"--kube-reserved={value} \(kubelet-arg (in|on) .*remove the flag there"):
        node.run()
    assert not node.config.exists()
    assert not node.run(state="absent")["changed"]


def test_read_flags_names_where_they_are() -> None:
    row = named("k3s").own_kubelet
    assert row is not None
    [flag] = read_flags(row, [{"kubelet-arg": ["system_reserved=cpu=1"]}], "")
    assert (flag.name, flag.value) == ("system-reserved", "cpu=1")
    assert flag.source == "kubelet-arg in /etc/rancher/k3s/config.yaml or /etc/rancher/k3s/config.yaml.d"
    [flag] = read_flags(row, [], "ExecStart={ argv[]=/x server --kubelet-arg=system-reserved=cpu=1 ; }")
    assert (flag.value, flag.source) == ("cpu=1", "kubelet-arg on the command line of the unit")
    assert read_flags(row, [None, {}], "") == ()


def test_rollback_removes_the_file(node: DropInNode) -> None:
    first = node.files()
    node.run(keep_former=True)
    restored = node.run(state="restored")
    assert (restored["changed"], restored["needs_restart"]) == (True, True)
    assert node.files() == first
    assert not node.run(state="restored")["changed"]
    node.run(state="confirmed")
    assert node.records() == []


def test_blank_file_of_the_timer_is_removed_or_filled(node: DropInNode) -> None:
    """The timer on the node restores what is on record, which is a drop-in without settings."""
    node.run(keep_former=True)
    node.config.write_bytes(BLANK)
    assert node.run(keep_former=True)["changed"]
    assert node.config.read_text() == WRITTEN
    node.config.write_bytes(BLANK)
    undone = node.run(state="absent", keep_former=True)
    assert (undone["changed"], undone["unverified"], node.config.exists()) == (True, True, False)
    node.run(state="confirmed")
    assert node.records() == []


@pytest.mark.parametrize("writes", [0, 1])
def test_interrupted_run_is_resumed_and_undone(node: DropInNode, writes: int) -> None:
    first = node.files()
    node.run_interrupted(writes)
    assert node.files() == first
    node.run()
    assert node.config.read_text() == WRITTEN
    node.run_interrupted(1, state="absent")
    node.run(state="absent")
    assert node.files() == first
    assert node.records() == []


def test_settings_that_others_added_to_the_file_stay(node: DropInNode) -> None:
    node.run()
    node.change("kubeReserved:", "maxPods: 50\nkubeReserved:")
    undone = node.run(state="absent")
    assert undone["needs_restart"]
    assert pyyaml.safe_load(node.config.read_text()) == {**pyyaml.safe_load(BLANK), "maxPods": 50}
    assert node.records() == []


def test_too_many_processes_are_refused(node: DropInNode) -> None:
    node.drop_in("10-cli-config.conf", "systemReserved: {pid: '32000'}")
    with pytest.raises(ConfigError, match="32768 processes"):
        node.run({"kubeReserved": {"pid": 768}})
    assert node.run({"kubeReserved": {"pid": 767}})["changed"]


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        ({f"{K3S}/agent", K3S_DEFAULTS}, (K3S, "k3s-agent")),
        ({f"{K3S}/agent", K3S_DEFAULTS, f"{K3S}/server/tls"}, (K3S, "k3s")),
        ({"/etc/rancher/rke2", RKE2_DEFAULTS}, (RKE2, "rke2-agent")),
        ({"/etc/rancher/rke2", RKE2_DEFAULTS, f"{RKE2}/server/tls"}, (RKE2, "rke2-server")),
        # Releases before 1.32, and another data-dir.
        ({f"{K3S}/agent"}, None),
        ({"/etc/rancher/rke2"}, None),
        # A leftover beside kubeadm's kubelet.
        ({f"{K3S}/agent", K3S_DEFAULTS, KUBEADM_FLAGS}, None),
        ({"/etc/k0s"}, None),
        ({"/var/snap/microk8s"}, None),
        ({KUBEADM_FLAGS}, None),
        (set(), None),
    ],
)
def test_find_own_requires_the_folder_of_drop_ins(paths: set[str], found: tuple[str, str] | None) -> None:
    own = node_half.find_own(paths.__contains__)
    if found is None:
        assert own is None
        return
    assert own is not None
    data, unit = found
    assert (own[0].drop_in, own[1]) == (f"{data}/agent/etc/kubelet.conf.d/50-gpu-kubernetes.conf", unit)


def test_given_path_is_edited_as_on_other_nodes(
    node: DropInNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other.yaml"
    other.write_bytes(BLANK)
    monkeypatch.setattr(node_half, "find_own", lambda: pytest.fail("the path is given"))
    found: dict[str, t.Any] = node_half.read(
        str(other), str(tmp_path / "state"), lambda _command: (1, ""), {}.get, list
    )
    assert (found["path"], found["service"], found.get("own")) == (str(other), "kubelet", None)
