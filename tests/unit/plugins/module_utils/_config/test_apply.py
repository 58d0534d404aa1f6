# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs with each configuration of containerd, and their undo."""

from __future__ import annotations

import difflib
import typing as t
from dataclasses import replace

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import RUNC_V2
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import Node

if t.TYPE_CHECKING:
    from pathlib import Path

REQUESTED: list[dict[str, t.Any]] = [
    {},
    {"set_default": True, "enable_cdi": True, "systemd_cgroup": True},
    {"set_default": False, "systemd_cgroup": False},
    {"settings": {"debug": {"level": "info"}, "plugins": {"io.containerd.gc.v1.scheduler": {"pause_threshold": 0.1}}}},
]


@pytest.mark.parametrize("name", samples.FILES)
@pytest.mark.parametrize("requested", REQUESTED, ids=["plain", "all", "off", "settings"])
def test_check_run_repeat_and_undo_restore_the_file(tmp_path: Path, name: str, requested: dict[str, t.Any]) -> None:
    text, release = samples.FILES[name]
    node = Node(tmp_path, text, release)
    start = node.snapshot()
    predicted = node.present(check=True, **requested)
    assert node.snapshot() == start, "check mode changed a file"
    done = node.present(**requested)
    assert (done.changed, done.after, done.restart_required) == (True, predicted.after, True)
    assert predicted.changed
    assert node.config.read_bytes() == done.after
    middle = node.snapshot()
    assert not node.present(check=True, **requested).changed
    again = node.present(**requested)
    assert (again.changed, again.restart_required) == (False, True)
    assert {k: v for k, v in node.snapshot().items() if "lock" not in k} == {
        k: v for k, v in middle.items() if "lock" not in k
    }

    node.confirm()
    assert not node.present(**requested).restart_required
    predicted = node.absent(check=True)
    assert predicted.changed
    assert node.config.read_bytes() == done.after
    done = node.absent()
    assert (done.changed, done.restart_required, done.after) == (True, True, predicted.after)
    assert node.config.read_bytes() == text.encode(), "the original bytes are not restored"
    assert not node.absent().changed
    assert not list((tmp_path / "state" / "state").rglob("*.json"))


@pytest.mark.parametrize("name", [name for name in samples.FILES if not name.startswith(("empty", "comments"))])
def test_present_adds_lines_and_removes_none(tmp_path: Path, name: str) -> None:
    text, release = samples.FILES[name]
    node = Node(tmp_path, text, release)
    node.present()
    lines = (text.splitlines(keepends=True), node.text().splitlines(keepends=True))
    lost = [line[2:] for line in difflib.ndiff(*lines) if line.startswith("- ")]
    assert lost == (['disabled_plugins = ["cri"]\n'] if name.startswith("docker") else [])
    assert node.text().count("\r\n") == (node.text().count("\n") if name == "CRLF" else 0)


class TestSeveralRuns:
    def test_default_is_set_and_undone(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KATA_DEFAULT)
        assert node.present(set_default=True).facts["default_runtime_name"] == "nvidia"
        assert node.present().facts["default_runtime_name"] == "nvidia"
        assert node.present(set_default=False).facts["default_runtime_name"] == "kata"
        node.absent()
        assert node.text() == samples.KATA_DEFAULT

    def test_result_names_cgroup_driver_of_runtime(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        assert node.present().facts["systemd_cgroup"] is True
        assert node.present(systemd_cgroup=False).facts["systemd_cgroup"] is False
        assert node.absent().facts["systemd_cgroup"] is None

    def test_inherited_settings_follow_runc(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3.replace("true", "false"))
        node.present()
        node.config.write_text(
            node.text().replace("SystemdCgroup = false", "SystemdCgroup = true", 1), encoding="utf-8"
        )
        assert node.present().changed
        assert node.text().count("SystemdCgroup = true") == 2

    def test_two_runtimes_are_undone_one_by_one(self, tmp_path: Path) -> None:
        cdi: dict[str, t.Any] = {"runtime_name": "nvidia-cdi", "runtime_path": "/usr/bin/nvidia-container-runtime.cdi"}
        node = Node(tmp_path, samples.DOCKER, "1.7")
        node.present(set_default=True)
        node.present(**cdi)
        assert node.absent().changed
        assert "version = 2" in node.text()
        assert "runtimes.runc]" in node.text()
        assert "runtimes.nvidia]" not in node.text()
        assert "default_runtime_name" not in node.text()
        node.absent(**cdi)
        assert node.text() == samples.DOCKER

    def test_edit_of_others_is_copied_before_another_change(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.DEFAULT_V3 % 3)
        first = node.present().backup_file
        assert "is kept in" not in str(node.present(set_default=True).warnings)
        runs: list[t.Callable[[], t.Any]] = [lambda: node.present(set_default=False), node.absent]
        for run in runs:
            edited = node.text() + "# site\n"
            node.config.write_text(edited, encoding="utf-8")
            done = run()
            assert done.changed
            [warning] = [text for text in done.warnings if "what it held is kept in" in text]
            copy = warning.rpartition(" ")[2].rstrip(".")
            assert copy != first
            with open(copy, encoding="utf-8") as stream:
                assert stream.read() == edited

    def test_undo_needs_no_backup(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.DEFAULT_V3 % 3)
        node.host = replace(node.host, keep_backup=False)
        assert node.present(set_default=True).backup_file is None
        assert not (tmp_path / "state" / "backups").exists()
        node.absent()
        assert node.text() == samples.DEFAULT_V3 % 3


SPELLINGS = {
    "inline": f'version = 3\nplugins."{samples.V3}".containerd.runtimes.runc = {{ runtime_type = "io.containerd.runc.v2", '
    "options = { SystemdCgroup = true } }\n",
    "format_path": f'version = 3 # three\n[plugins]\n"{samples.V3}".containerd.runtimes.runc.runtime_type = "{RUNC_V2}"\n'
    f'"{samples.V3}".containerd.runtimes.runc.options.SystemdCgroup = true\n',
    "out of order": samples.KUBEADM_V3.replace("version = 3\n", "version = 3\n[plugins.x.y]\na = 1\n")
    + "[debug]\nlevel = '''\n[plugins]\n'''\n[plugins.x.z]\nb = 0xff # octets\n",
    "no end of line": samples.KUBEADM_V3.rstrip("\n"),
    "header of the parent last": samples.KUBEADM_V3 + f"[plugins.'{samples.V3}'.containerd]\nsnapshotter = 'x'\n",
}


@pytest.mark.parametrize("name", SPELLINGS)
@pytest.mark.parametrize("requested", REQUESTED, ids=["plain", "all", "off", "settings"])
def test_other_spellings_of_the_same(tmp_path: Path, name: str, requested: dict[str, t.Any]) -> None:
    node = Node(tmp_path, SPELLINGS[name])
    node.present(**requested)
    assert not node.present(**requested).changed
    systemd = requested.get("systemd_cgroup", True)
    tree = loads(node.text())
    runtimes = tree["plugins"][samples.V3]["containerd"]["runtimes"]
    assert {runtime["options"]["SystemdCgroup"] for runtime in runtimes.values()} == {systemd}
    node.config.write_text("# edited\n" + node.text(), encoding="utf-8")
    node.absent()
    assert node.text() == "# edited\n" + SPELLINGS[name]


def test_any_sequence_of_runs_can_be_undone(tmp_path_factory: pytest.TempPathFactory) -> None:
    hypothesis = pytest.importorskip("hypothesis")
    from hypothesis import strategies as st

    switch = st.sampled_from([None, True, False])
    runs = st.fixed_dictionaries(
        {
            "set_default": switch,
            "enable_cdi": switch,
            "systemd_cgroup": switch,
            "runtime_name": st.sampled_from(["nvidia", "nvidia-cdi"]),
            "settings": st.sampled_from(
                [{}, *(requested["settings"] for requested in REQUESTED if "settings" in requested)]
            ),
        }
    )
    additions = st.sampled_from(["", "# edited\n", "[proxy_plugins]\nx = '1s'\n"])

    @hypothesis.given(st.sampled_from(sorted(samples.FILES)), st.lists(runs, min_size=1, max_size=3), additions)
    @hypothesis.settings(max_examples=hypothesis.settings().max_examples // 3)
    def check(name: str, sequence: list[dict[str, t.Any]], addition: str) -> None:
        text, release = samples.FILES[name]
        node = Node(tmp_path_factory.mktemp("node"), text, release)
        node.apply_and_undo(sequence, lambda content: content + addition.encode())
        managed = {"version": loads(node.text()).get("version")} if addition.startswith("[") else {}
        assert {**loads(node.text()), "disabled_plugins": 0} == {
            **loads(text + addition),
            **managed,
            "disabled_plugins": 0,
        }
        if not managed:
            assert node.text() == text + addition

    check()
