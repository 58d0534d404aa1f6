# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import command, node

UNIT = (Path(__file__).parent / "fixtures" / "kubelet.service.txt").read_text()
DROP_IN = "/usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"
FLAGS = "/var/lib/kubelet/kubeadm-flags.env"
EXTRA = "/etc/sysconfig/kubelet"
KUBEADM_FLAGS = 'KUBELET_KUBEADM_ARGS="--container-runtime-endpoint=unix:///run/containerd/containerd.sock --v 2"\n'
NOTHING: dict[str, t.Any] = {}


def read_flags(unit: str, files: t.Mapping[str, t.Any] | None = None) -> dict[str, tuple[str, str]]:
    """Return value and source of each flag of a unit."""
    words = command.read_unit(unit, (files or NOTHING).get)
    assert words is not None
    return {flag.name: (flag.value, flag.source) for flag in command.flags(words)}


def test_unit_of_the_package_has_flags_with_sources() -> None:
    extra = 'KUBELET_EXTRA_ARGS=--kube-reserved=cpu=1 --eviction_hard="memory.available<1Gi"\n'
    flags = read_flags(UNIT, {FLAGS: KUBEADM_FLAGS, EXTRA: extra})
    assert flags == {
        "bootstrap-kubeconfig": (
            "/etc/kubernetes/bootstrap-kubelet.conf",
            f"KUBELET_KUBECONFIG_ARGS in {DROP_IN}",
        ),
        "kubeconfig": ("/etc/kubernetes/kubelet.conf", f"KUBELET_KUBECONFIG_ARGS in {DROP_IN}"),
        "config": ("/var/lib/kubelet/config.yaml", f"KUBELET_CONFIG_ARGS in {DROP_IN}"),
        "container-runtime-endpoint": (
            "unix:///run/containerd/containerd.sock",
            f"KUBELET_KUBEADM_ARGS in {FLAGS}",
        ),
        "v": ("2", f"KUBELET_KUBEADM_ARGS in {FLAGS}"),
        "kube-reserved": ("cpu=1", f"KUBELET_EXTRA_ARGS in {EXTRA}"),
        "eviction-hard": ("memory.available<1Gi", f"KUBELET_EXTRA_ARGS in {EXTRA}"),
    }
    assert "container-runtime-endpoint" not in read_flags(UNIT)


@pytest.mark.parametrize(
    ("more", "files", "expected"),
    [
        # a later file overrides an earlier one, and a file the unit
        (
            "Environment=A=--config=/a\nEnvironmentFile=/1\nEnvironmentFile=-/2",
            {"/1": "A=--config=/b"},
            ("/b", "A in /1"),
        ),
        (
            "Environment=A=--config=/a\nEnvironmentFile=/1\nEnvironmentFile=-/2",
            {"/1": "A=--config=/b", "/2": "# A=x\n; A=x\nA='--config=/c'\n"},
            ("/c", "A in /2"),
        ),
        # an empty EnvironmentFile removes the earlier ones
        (
            "EnvironmentFile=/1\nEnvironmentFile=\nEnvironment=A=--config=/a",
            {"/1": "A=--config=/b"},
            ("/a", "A in /x.conf"),
        ),
        ('Environment="A=--v=2 --config=/a" B=1', {}, ("/a", "A in /x.conf")),
        ("Environment=A=--config=/a \\\n  B=1", {}, ("/a", "A in /x.conf")),
        ("EnvironmentFile=/1", {"/1": "A=--v=2 \\\n--config=/a\n"}, ("/a", "A in /1")),
        ("Environment=A=--config=/a%%b", {}, ("/a%b", "A in /x.conf")),
        # a folder is not a file
        ("Environment=A=--config=/a\nEnvironmentFile=/1", {"/1": ["x"]}, ("/a", "A in /x.conf")),
    ],
)
def test_variables_of_the_unit_are_resolved(more: str, files: dict[str, t.Any], expected: tuple[str, str]) -> None:
    unit = f"# /x.service\n[Service]\nExecStart=/usr/bin/kubelet $A $NONE\n\n# /x.conf\n[Unit]\nExecStart=/bin/x\n[Service]\n{more}\n"
    assert read_flags(unit, files)["config"] == expected


@pytest.mark.parametrize(
    ("start", "value"),
    [
        ("-/usr/local/bin/kubelet --config=${F}", "/f/c.yaml"),
        ("/usr/bin/env LANG=C kubelet --config ${F}", "/f/c.yaml"),
        ("@/opt/bin/kubelet kubelet --config='/my config'", "/my config"),
        ("/usr/bin/kubelet \\\n  --config=/a \\\n  --v=2", "/a"),
        ("/usr/bin/kubelet --config=/a --config=/b", "/b"),
        ("/usr/bin/kubelet --config=/cost$$", "/cost$"),
        ("/usr/bin/kubelet --config=", None),
        ("/usr/bin/kubelet --config '", "'"),
    ],
)
def test_config_of_each_command_line(start: str, value: str | None) -> None:
    unit = f"# /k.service\n[Service]\nEnvironment=F=/f/c.yaml\nExecStart={start}\n"
    words = command.read_unit(unit, NOTHING.get)
    assert words is not None
    assert command.last(command.flags(words), "config") == value


def test_kubelet_without_a_unit_is_found_among_processes() -> None:
    processes = [["/sbin/init"], [], ["/opt/kubelet", "--config", "/c"]]
    for answer in ((1, ""), (127, ""), (0, "# /k.service\n[Service]\nExecStart=/bin/sh -c start-it\n")):
        words = command.find(lambda _command, answer=answer: answer, NOTHING.get, processes)
        assert words == [("--config", "the running kubelet"), ("/c", "the running kubelet")]


def test_kubelet_without_unit_and_process_is_read_from_kubeadm() -> None:
    files = {FLAGS: KUBEADM_FLAGS, "/etc/default/kubelet": "KUBELET_EXTRA_ARGS='--max-pods=5'"}
    words = command.find(lambda _command: (1, ""), files.get, [])
    assert words is not None
    flags = {flag.name: flag.source for flag in command.flags(words)}
    assert flags["config"] == "kubeadm"
    assert flags["max-pods"] == "KUBELET_EXTRA_ARGS in /etc/default/kubelet"
    assert command.find(lambda _command: (1, ""), NOTHING.get, []) is None
    assert command.find(lambda _command: (1, ""), {"/var/lib/kubelet/config.yaml": ""}.get, []) == words[:1]


def test_read_returns_files_and_processes(tmp_path: Path) -> None:
    config, folder = tmp_path / "config.yaml", tmp_path / "more"
    config.write_bytes(b"kind: x\n")
    (folder / "b").mkdir(parents=True)
    for name in ("c.conf", "a.conf", "b/z.conf", "b/y.yaml", ".conf"):
        (folder / name).write_text(name)
    unit = f"# /k.service\n[Service]\nExecStart=/usr/bin/kubelet --config={config} --config-dir={folder}\n"
    answer = node.read(None, str(tmp_path / "state"), lambda _command: (0, unit), list_processes=list)
    assert (answer["path"], answer["named"], answer["is_named"]) == (str(config), str(config), True)
    assert base64.b64decode(answer["files"][answer["path"]]["data"]) == b"kind: x\n"
    assert [Path(path).name for path, _data in answer["drop_ins"]] == [".conf", "a.conf", "z.conf", "c.conf"]
    assert isinstance(answer["processes"], int)
    assert answer["files"][answer["record_path"]] == {"data": None, "sha256": None}
    assert Path(answer["record_path"]).parent == tmp_path / "state" / "state" / "kubelet"


def test_relative_path_starts_at_the_root(tmp_path: Path) -> None:
    unit = "# /k.service\n[Service]\nExecStart=/usr/bin/kubelet --config=etc/none.yaml --config-dir=none\n"
    answer = node.read(None, str(tmp_path), lambda _command: (0, unit), look_at=NOTHING.get, list_processes=list)
    assert (answer["path"], answer["drop_ins"], answer["processes"]) == ("/etc/none.yaml", [], None)
