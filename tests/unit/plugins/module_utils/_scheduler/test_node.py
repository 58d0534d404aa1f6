# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.files import sha256
from ansible_collections.gpu.kubernetes.plugins.module_utils._scheduler import node


@pytest.mark.parametrize(
    ("texts", "folder"),
    [
        ([], "/etc/kubernetes/manifests"),
        (["kind: KubeletConfiguration\n"], "/etc/kubernetes/manifests"),
        (["staticPodPath: /opt/pods\n"], "/opt/pods"),
        (['a: 1\nstaticPodPath: "/opt/pods" # there\n'], "/opt/pods"),
        (["x:\n  staticPodPath: /other\n"], "/etc/kubernetes/manifests"),
        (['staticPodPath: ""\n'], "/etc/kubernetes/manifests"),
        (["staticPodPath: /first\n", "staticPodPath: /opt/pods\n", "a: 1\n"], "/opt/pods"),
    ],
)
def test_folder_of_static_pods(texts: list[str], folder: str) -> None:
    assert node.static_pods([text.encode() for text in texts]) == folder


@pytest.mark.parametrize("single_file", [False, True])
def test_manifest_is_found_by_configuration_of_running_kubelet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, single_file: bool
) -> None:
    manifest = tmp_path / "pods" / "kube-scheduler.yaml"
    manifest.parent.mkdir()
    manifest.write_text("x")
    kubelet, drop_in = tmp_path / "config.yaml", tmp_path / "conf.d" / "10.conf"
    drop_in.parent.mkdir()
    kubelet.write_text("staticPodPath: /elsewhere\n")
    drop_in.write_text(f"staticPodPath: {manifest if single_file else manifest.parent}\n")
    words = ["/usr/bin/kubelet", f"--config={kubelet}", f"--config-dir={drop_in.parent}"]
    monkeypatch.setattr(node, "list_processes", lambda: [words])
    answer = node.read(None, [], str(tmp_path / "state"))
    assert answer["path"] == str(manifest)
    assert base64.b64decode(answer["files"][str(manifest)]["data"]) == b"x"
    assert [file for file, _data in answer["kubelet"]] == [str(kubelet), str(drop_in)]
    assert base64.b64decode(answer["kubelet"][0][1]) == kubelet.read_bytes()


@pytest.mark.parametrize(
    ("flag", "mount"),
    [
        ("- --config={config}", ""),
        ("- --config\n- {config}", ""),
        ("- '--config={config}'", ""),
        ('["--config", "{config}"]', ""),
        ("- --config=/in/side/c.yaml", "hostPath: {{path: {folder}}}, mountPath: /in/side"),
        ("- --config=/in/c.yaml", 'path: "{folder}/c.yaml"\nmountPath: "/in/c.yaml"'),
    ],
)
def test_configuration_is_in_the_first_result(tmp_path: Path, flag: str, mount: str) -> None:
    config, manifest = tmp_path / "c" / "c.yaml", tmp_path / "kube-scheduler.yaml"
    config.parent.mkdir()
    config.write_text("here")
    manifest.write_text((flag + "\n" + mount).format(config=config, folder=config.parent))
    answer = node.read(str(manifest), [], str(tmp_path / "state"))
    assert answer["files"][str(config)] == {"data": base64.b64encode(b"here").decode(), "sha256": sha256(b"here")}


def test_missing_requested_files_are_returned(tmp_path: Path) -> None:
    answer = node.read(str(tmp_path / "m.yaml"), [str(tmp_path / "none")], str(tmp_path / "state"))
    assert [Path(name).name for name in answer["files"]] == ["m.yaml", Path(answer["record_path"]).name, "none"]
    assert all(file == {"data": None, "sha256": None} for file in answer["files"].values())


def test_only_files_that_the_kubelet_reads_are_returned(tmp_path: Path) -> None:
    for name, text in {"kube-scheduler.yaml": "", "a": "kube-scheduler", "b": "other", ".c": "kube-scheduler"}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder").mkdir()
    answer = node.read(str(tmp_path / "kube-scheduler.yaml"), [], str(tmp_path / "state"))
    assert answer["neighbours"] == {"a": base64.b64encode(b"kube-scheduler").decode(), "b": None}


def test_files_beside_a_link_are_those_of_its_folder(tmp_path: Path) -> None:
    pods, real = tmp_path / "pods", tmp_path / "real"
    for folder in (pods, real):
        folder.mkdir()
        (folder / f"in-{folder.name}").write_text("kube-scheduler")
    (real / "scheduler").write_text("kube-scheduler")
    (pods / "kube-scheduler.yaml").symlink_to(real / "scheduler")
    assert list(node.read(str(pods / "kube-scheduler.yaml"), [], str(tmp_path / "state"))["neighbours"]) == ["in-pods"]
