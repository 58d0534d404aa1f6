# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the module on one node: files that are written, merged and refused."""

from __future__ import annotations

import json
import stat
import typing as t
from pathlib import Path

import pytest

pytest.importorskip("ruamel.yaml")

import yaml as pyyaml

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import node as node_half
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubelet.kubelet_node import (
    HANDWRITTEN,
    KUBEADM,
    VALUES,
    Node,
)

JSON = json.dumps({"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": 50})
TEXTS = {"kubeadm": KUBEADM, "by hand": HANDWRITTEN, "json": JSON}


@pytest.mark.parametrize("text", TEXTS)
def test_check_run_repeat_and_undo_restore_the_file(tmp_path: Path, text: str) -> None:
    node = Node(tmp_path)
    node.config.write_bytes(TEXTS[text].encode())
    first = node.files()
    predicted = node.run(check=True)
    assert predicted["changed"]
    assert predicted["needs_restart"]
    assert node.files() == first
    assert not node.state.exists()
    done = node.run()
    assert node.requests == ["read", "write"]
    assert {**done, "backup_files": 0} == {**predicted, "backup_files": 0}
    assert done["files"] == [*map(str, node.records()), str(node.config)]
    after = node.files()
    for check in (True, False):
        again = node.run(check=check)
        assert (again["changed"], again["needs_restart"], again["diff"], again["files"]) == (False, False, [], [])
        assert (again["reserved"], again["resources"]) == (done["reserved"], ["cpu", "memory"])
    assert node.files() == after
    assert node.run(state="absent", check=True)["changed"]
    assert node.files() == after
    undone = node.run(state="absent")
    assert undone["changed"]
    assert undone["needs_restart"]
    assert node.files() == first
    assert not node.run(state="absent")["changed"]
    assert node.records() == []


def test_only_lines_are_added_to_kubeadms_file(node: Node) -> None:
    node.run()
    assert node.config.read_text() == KUBEADM + (
        "kubeReserved:\n  cpu: '500m'\n  memory: '1Gi'\nsystemReserved:\n  cpu: '1'\n  memory: '512Mi'\n"
    )
    assert stat.S_IMODE(node.config.stat().st_mode) == 0o644


def test_comments_and_other_reservations_are_kept(handwritten_node: Node) -> None:
    done = handwritten_node.run({"kubeReserved": {"memory": "3Gi"}, "evictionHard": {"memory.available": "1Gi"}})
    assert handwritten_node.config.read_text() == HANDWRITTEN.replace("2Gi   #", "'3Gi' #").replace("500Mi", "'1Gi'")
    assert done["warnings"] == []
    assert done["reserved"]["kubeReserved"] == {"memory": "3Gi", "ephemeral-storage": "1Gi"}
    assert done["resources"] == ["memory", "ephemeral-storage"]


@pytest.mark.parametrize("written", ["2Gi", "2048Mi", "2147483648", 2147483648, "2.0Gi"])
def test_equal_value_in_another_spelling_is_kept(handwritten_node: Node, written: t.Any) -> None:
    assert not handwritten_node.run({"kubeReserved": {"memory": written}})["files"]
    assert not handwritten_node.state.exists()


def test_number_is_written_as_text(node: Node) -> None:
    node.run({"kubeReserved": {"cpu": 2, "memory": 1e9}, "systemReserved": {"cpu": 0.5}, "maxPods": 50})
    tree = pyyaml.safe_load(node.config.read_text())
    assert tree["kubeReserved"] == {"cpu": "2", "memory": "1000000000"}
    assert (tree["systemReserved"], tree["maxPods"]) == ({"cpu": "0.5"}, 50)


def test_values_no_longer_requested_are_undone(handwritten_node: Node) -> None:
    handwritten_node.run()
    assert handwritten_node.run({"kubeReserved": {"cpu": "500m"}})["changed"]
    assert pyyaml.safe_load(handwritten_node.config.read_text()) == {
        **pyyaml.safe_load(HANDWRITTEN),
        "kubeReserved": {"memory": "2Gi", "ephemeral-storage": "1Gi", "cpu": "500m"},
    }
    done = handwritten_node.run({"kubeReserved": {}})
    assert handwritten_node.config.read_text() == HANDWRITTEN
    assert done["needs_restart"]
    assert handwritten_node.records() == []


def test_no_values_change_nothing_even_without_a_kubelet(node: Node) -> None:
    node.config.unlink()
    node.started_with = None
    done = node.run({"kubeReserved": {}})
    assert (done["changed"], done["files"], done["reserved"]) == (False, [], {})


def test_lost_defaults_are_named(node: Node) -> None:
    done = node.run({"evictionHard": {"memory.available": "500Mi", "nodefs.available": "5%"}})
    [warning] = done["warnings"]
    assert "nodefs.inodesFree 5%, imagefs.available 15%, imagefs.inodesFree 5%" in warning
    assert done["reserved"]["evictionHard"] == {"memory.available": "500Mi", "nodefs.available": "5%"}
    merged = node.run({"evictionHard": {"memory.available": "500Mi"}, "mergeDefaultEvictionSettings": True})
    assert merged["warnings"] == []
    assert merged["reserved"]["evictionHard"]["nodefs.available"] == "10%"


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        (
            "--kube-reserved=cpu=100m",
            r"--kube-reserved=cpu=100m \(/lib/kubelet\.service\).* kubeReserved\.cpu .*remove",
        ),
        ("--system_reserved cpu=100m", r"--system-reserved=cpu=100m"),
        ("--reserved-cpus=0-1", r"reservedSystemCPUs is 0-1, beside which the kubelet ignores kubeReserved\.cpu"),
    ],
)
def test_flag_that_overrides_the_file_is_named(node: Node, flag: str, message: str) -> None:
    node.started_with = f"{node.started_with} {flag}"
    with pytest.raises(ConfigError, match=message):
        node.run()
    assert node.files() == {"kubelet/config.yaml": KUBEADM.encode()}
    assert not node.run(state="absent")["changed"]


def test_flags_of_other_settings_are_accepted(node: Node) -> None:
    node.started_with = (
        f"{node.started_with} --v=2 --kube-reserved-cgroup=/x --max-pods 50 --eviction-hard=memory.available<1Gi"
    )
    done = node.run()
    assert done["reserved"]["evictionHard"] == {"memory.available": "1Gi"}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("kubeReserved: {memory: 3Gi}", "kubeReserved.memory"),
        ("kubeReserved:", "kubeReserved.cpu"),
        ("systemReserved: {cpu: }", "systemReserved.cpu"),
        ("kubeReserved: {memory: 1024Mi}", ""),
        ("kubeReserved: {pid: '100'}", ""),
        ("maxPods: 5", ""),
    ],
)
def test_drop_in_that_overrides_the_file_is_named(node: Node, text: str, named: str) -> None:
    folder = node.folder / "kubelet.conf.d"
    (folder / "deep").mkdir(parents=True)
    drop_in = folder / "deep" / "20-more.conf"
    drop_in.write_text(f"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n{text}\n")
    (folder / "10-first.conf.bak").write_text("kubeReserved:\n")
    node.started_with = f"{node.started_with} --config-dir={folder}"
    if not named:
        assert node.run()["reserved"]["kubeReserved"]["cpu"] == "500m"
        return
    with pytest.raises(ConfigError, match=rf"^{drop_in} overrides {node.config} and sets {named}: remove it there"):
        node.run()


@pytest.mark.parametrize(
    ("started_with", "path", "message"),
    [
        ("--v=2", None, "started without --config"),
        ("--config=/other/config.yaml", "{config}", r"reads /other/config\.yaml and not"),
        ("--config=/nowhere/config.yaml", None, r"There is no configuration of the kubelet at /nowhere/config\.yaml"),
    ],
)
def test_file_that_the_kubelet_does_not_read_is_refused(
    node: Node, started_with: str, path: str | None, message: str
) -> None:
    node.started_with = started_with
    with pytest.raises(ConfigError, match=message):
        node.run(path=path and path.format(config=node.config))


def test_path_without_a_kubelet_and_link_are_accepted(node: Node) -> None:
    link = node.folder / "link.yaml"
    link.symlink_to(node.config)
    node.started_with = f"--config={link}"
    assert node.run(path=str(node.config))["changed"]
    node.started_with = None
    assert not node.run(path=str(node.config))["changed"]
    assert node.run(path=str(link), state="absent")["changed"]
    assert node.config.read_text() == KUBEADM


@pytest.mark.parametrize(
    ("distribution", "remedy"),
    [
        ("k3s", "/etc/rancher/k3s/config.yaml"),
        ("rke2", "/etc/rancher/rke2/config.yaml"),
        ("k0s", "workerProfiles"),
        ("MicroK8s", "args/kubelet"),
    ],
)
def test_distributions_with_own_kubelet_name_the_remedy(
    node: Node, monkeypatch: pytest.MonkeyPatch, distribution: str, remedy: str
) -> None:
    node.started_with = None
    monkeypatch.setattr(node_half, "detect", lambda _exists: distribution)
    with pytest.raises(ConfigError, match=f"a part of {distribution}.*{remedy}"):
        node.run()
    assert not node.run(state="absent")["changed"]


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (
            "arguments",
            '{"kubelet-arg+": ["kube-reserved=cpu=500m,memory=1Gi", "eviction-hard=memory.available<500Mi", "max-pods=50", "registry-qps=3"]}',
        ),
        (
            "flags",
            "--kube-reserved=cpu=500m,memory=1Gi --eviction-hard=memory.available<500Mi --max-pods=50 --registry-qps=3",
        ),
        (
            "profile",
            (
                '{"spec": {"workerProfiles": [{"name": "gpu", "values": {"kubeReserved": {"cpu": "500m", "memory": "1Gi"}, '
                '"evictionHard": {"memory.available": "500Mi"}, "maxPods": 50, "registryPullQPS": 3}}]}}'
            ),
        ),
    ],
)
def test_format_settings_is_what_the_distribution_reads(form: str, text: str) -> None:
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet.node_state import format_settings

    values = {
        "kubeReserved": {"cpu": "500m", "memory": "1Gi"},
        "evictionHard": {"memory.available": "500Mi"},
        "maxPods": 50,
        "registryPullQPS": 3,
    }
    assert format_settings(form, values) == text


def test_agent_that_replaces_the_kubelet_is_refused_with_its_section(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.started_with = None
    monkeypatch.setattr(node_half, "find_agent", lambda _exists: "kubeedge")
    with pytest.raises(ConfigError, match=r"tailoredKubeletConfig in /etc/kubeedge/config/edgecore\.yaml"):
        node.run()
    assert not node.run(state="absent")["changed"]


def test_kubesprays_file_is_edited_with_a_warning(node: Node) -> None:
    from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet.node_state import NodeState, warn_rewritten

    assert "kube_memory_reserved" in warn_rewritten(NodeState("/etc/kubernetes/kubelet-config.yaml", b""))[0]
    assert node.run()["warnings"] == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "kubelet.config.k8s.io/v1beta1",
            "kubelet.config.k8s.io/v2",
            "is not a KubeletConfiguration of .*v1beta1, but has",
        ),
        ("kind: KubeletConfiguration", "kind: Pod", "but has kubelet.config.k8s.io/v1beta1 Pod"),
        (KUBEADM, "- 1\n", "neither apiVersion nor kind"),
        (KUBEADM, "", "neither apiVersion nor kind"),
        (KUBEADM, KUBEADM.replace("\n", "\r\n"), "line ends of Windows"),
        (KUBEADM, KUBEADM + "kubeReserved: [cpu]\n", "kubeReserved has to be a mapping"),
        ("authentication:\n", "authentication: &all\n  <<: {}\n", "merge key"),
        (KUBEADM, KUBEADM + "kubeReserved: &r {}\nsystemReserved: *r\n", "anchor"),
    ],
)
def test_file_that_cannot_be_edited_is_refused(node: Node, old: str, new: str, message: str) -> None:
    node.config.write_text(KUBEADM.replace(old, new, 1) if old else new)
    before = node.files()
    with pytest.raises(ConfigError, match=message):
        node.run()
    assert node.files() == before


def test_too_many_processes_are_refused(handwritten_node: Node) -> None:
    handwritten_node.change("ephemeral-storage: 1Gi", "pid: '32000'")
    with pytest.raises(ConfigError, match=r"32768 processes .* and the node can have 32768 in all"):
        handwritten_node.run({"systemReserved": {"pid": 768}})
    assert handwritten_node.run({"systemReserved": {"pid": 767}})["changed"]


def test_token_is_masked(node: Node) -> None:
    node.config.write_text(KUBEADM + "staticPodURLHeader:\n  Authorization:\n  - Bearer c2VjcmV0\n# more\n")
    [shown] = node.run()["diff"]
    assert "c2VjcmV0" not in shown["before"] + shown["after"]
    assert "# more" in shown["after"]
    assert "kubeReserved" in shown["after"]
    node.config.write_text(JSON.replace("}", ', "staticPodURLHeader": {"A": ["c2VjcmV0"]}}'))
    [shown] = node.run(state="present", values=VALUES)["diff"]
    assert "c2VjcmV0" not in shown["before"] + shown["after"]


def test_diff_is_returned_only_in_diff_mode(node: Node) -> None:
    assert "diff" not in node.run(check=True, diff=False)
    assert node.run(check=True)["diff"]


def test_only_content_of_others_is_backed_up(node: Node) -> None:
    [copy] = node.run()["backup_files"].values()
    assert Path(copy).read_text() == KUBEADM
    assert node.run({"kubeReserved": {"cpu": 1}})["backup_files"] == {}
