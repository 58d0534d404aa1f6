# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import difflib
import errno
import os
import stat
import typing as t
from dataclasses import replace

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config import files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import RUNC_V2
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import NVIDIA_V3, Node

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


class TestFile:
    def test_missing_file_is_created_and_removed_with_its_directories(self, tmp_path: Path) -> None:
        node = Node(tmp_path, None, "2.1")
        done = node.present()
        assert done.before is None
        assert done.backup_file is None
        assert node.text() == "version = 3\n\n" + NVIDIA_V3.replace("\n[", "\n\n[")
        assert stat.S_IMODE(node.config.stat().st_mode) == 0o644
        assert stat.S_IMODE(node.config.parent.stat().st_mode) == 0o755
        assert node.absent().after is None
        assert not (tmp_path / "etc").exists()

    def test_directory_that_others_use_stays(self, tmp_path: Path) -> None:
        node = Node(tmp_path, None)
        node.present()
        (node.config.parent / "certs.d").mkdir()
        node.absent()
        assert [place.name for place in node.config.parent.iterdir()] == ["certs.d"]

    def test_mode_and_link_are_kept(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        real = tmp_path / "real.toml"
        node.config.rename(real)
        node.config.symlink_to(real)
        real.chmod(0o640)
        node.present()
        assert node.config.is_symlink()
        assert stat.S_IMODE(real.stat().st_mode) == 0o640
        assert "nvidia" in real.read_text(encoding="utf-8")
        node.absent()
        assert real.read_text(encoding="utf-8") == samples.KUBEADM_V3

    def test_state_is_for_root_only(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBESPRAY, "1.7")
        done = node.present()
        assert done.backup_file is not None
        for place in (tmp_path / "state").rglob("*"):
            assert stat.S_IMODE(place.stat().st_mode) == (0o700 if place.is_dir() else 0o600), place
        with open(done.backup_file, encoding="utf-8") as stream:
            assert stream.read() == samples.KUBESPRAY

    def test_read_only_directory_raises(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        real = os.open

        def read_only(path: t.Any, flags: int, *rest: t.Any, **more: t.Any) -> int:
            if str(path).startswith(str(node.config.parent)) and flags & os.O_CREAT:
                raise OSError(30, "Read-only file system")
            return real(path, flags, *rest, **more)

        monkeypatch.setattr(os, "open", read_only)
        with pytest.raises(files.FilesError, match="read-only"):
            node.present()
        monkeypatch.undo()
        assert node.text() == samples.KUBEADM_V3
        assert node.present().changed
        node.absent()
        assert node.text() == samples.KUBEADM_V3

    @pytest.mark.parametrize("due", [False, True])
    @pytest.mark.parametrize("state", ["present", "absent"])
    def test_failed_write_leaves_no_record_and_no_restart_marker(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, due: bool, state: str
    ) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        node.present(set_default=True)
        if not due:
            node.confirm()
        before, text = (sorted(path.name for path in (tmp_path / "state").rglob("*")), node.text())
        record = node.host.change_log(node.daemon({})).read()
        real = os.replace

        def fill(source: str, target: str) -> None:
            if target == str(node.config):
                raise OSError(errno.ENOSPC, "No space left on device")
            real(source, target)

        monkeypatch.setattr(os, "replace", fill)
        with pytest.raises(files.FilesError, match="no space"):
            node.present(set_default=False) if state == "present" else node.absent()
        monkeypatch.undo()
        assert node.text() == text
        assert sorted(path.name for path in (tmp_path / "state").rglob("*")) == before
        assert node.host.change_log(node.daemon({})).read() == record
        assert node.present(set_default=True).restart_required is due

    def test_new_file_with_credentials_is_for_root_only(self, tmp_path: Path) -> None:
        node = Node(tmp_path, None)
        node.present(settings={"plugins": {"x": {"registry": {"auth": {"password": "opensesame"}}}}})
        assert stat.S_IMODE(node.config.stat().st_mode) == 0o600

    @pytest.mark.parametrize(("mode", "warns"), [(0o644, True), (0o640, False)])
    def test_credentials_in_a_world_readable_file_warn(self, tmp_path: Path, mode: int, warns: bool) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        node.config.chmod(mode)
        settings = {"plugins": {"x": {"password": "opensesame"}}}
        for run, expected in ((node.present(settings=settings), warns), (node.present(settings=settings), False)):
            assert ("every user of the host can read it" in str(run.warnings)) is expected
        assert stat.S_IMODE(node.config.stat().st_mode) == mode

    def test_undo_removes_the_copy_of_restored_content(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBESPRAY, "1.7")
        backup = node.present().backup_file
        assert backup
        assert os.path.exists(backup)
        undo = node.absent()
        assert (undo.changed, undo.backup_file, undo.warnings) == (True, None, [])
        assert not (tmp_path / "state" / "backups").exists()

    def test_undo_of_unknown_content_without_a_record_changes_nothing(self, tmp_path: Path) -> None:
        node = Node(tmp_path, "version = 3\nplugins = 5\n")
        with pytest.raises(ConfigError, match="plugins has to be a table"):
            node.present()
        assert not node.absent().changed
        assert node.text() == "version = 3\nplugins = 5\n"

    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"version = 3\nfoo = [1,\n  = 2]\n", "config.toml, line 3, column 3: "),
            (b"version = 3\nversion = 3\n", "line 2, column 1"),
            (b"version = {{ .Version }}\n", "is a template"),
            (b"{{- range .Runtimes }}\n", "is a template"),
            (b"# k0s_managed=true\n", "containerd.d/nvidia.toml"),
            (b"version = 3\nx = \xff\n", "line 2"),
        ],
    )
    def test_invalid_file_is_refused_and_unchanged(self, tmp_path: Path, content: bytes, words: str) -> None:
        node = Node(tmp_path, content)
        with pytest.raises(ConfigError, match=words):
            node.present()
        assert node.config.read_bytes() == content
        assert not (tmp_path / "state").exists()

    def test_invalid_utf8_and_byte_order_mark_are_kept(self, tmp_path: Path) -> None:
        content = b"\xef\xbb\xbf# caf\xe9\r\n" + samples.KUBEADM_V3.replace("\n", "\r\n").encode()
        node = Node(tmp_path, content)
        after = node.present().after
        assert after is not None
        assert after.startswith(b"\xef\xbb\xbf# caf\xe9\r\n")
        node.absent()
        assert node.config.read_bytes() == content

    def test_template_in_snap_is_refused_before_it_is_read(self, tmp_path: Path) -> None:
        node = Node(tmp_path, None)
        node.config = tmp_path / "microk8s" / "containerd-template.toml"
        with pytest.raises(ConfigError, match="MicroK8s"):
            node.present()


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


class TestValidate:
    """With a fake for containerd's answers."""

    def node(self, tmp_path: Path, *answers: tuple[int, str, str]) -> Node:
        replies = list(answers)
        node = Node(tmp_path, samples.KUBEADM_V3)
        node.host = replace(node.host, binary="/usr/bin/containerd", execute=lambda _command: replies.pop(0))
        return node

    def dump(self, default: str = "runc", binary: str = "/usr/bin/nvidia-container-runtime") -> tuple[int, str, str]:
        section = f"plugins.'{samples.V3}'.containerd"
        text = (
            f"version = 3\n[{section}]\ndefault_runtime_name = '{default}'\n[{section}.runtimes.runc]\n"
            f"[{section}.runtimes.nvidia.options]\nBinaryName = '{binary}'\n"
        )
        return 0, text, ""

    def test_accepted_change_is_written(self, tmp_path: Path) -> None:
        assert self.node(tmp_path, self.dump()).present().changed

    @pytest.mark.parametrize("state", ["present", "absent"])
    def test_edit_during_the_validation_is_kept(self, tmp_path: Path, state: str) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        if state == "absent":
            node.present()
            node.confirm()
        edited = node.text() + "# site\n"
        changes = [edited]

        def execute(_command: t.Sequence[str]) -> tuple[int, str, str]:
            if changes:
                node.config.write_text(changes.pop(), encoding="utf-8")
            return self.dump()

        node.host = replace(node.host, binary="/usr/bin/containerd", execute=execute)
        run = node.present if state == "present" else node.absent
        with pytest.raises(
            files.FilesError, match="was changed by others since it was read, and was not replaced; run again"
        ):
            run()
        assert node.text() == edited
        assert not os.path.exists(node.host.restart_marker("containerd"))
        assert run().changed
        assert "# site" in node.text()

    @pytest.mark.parametrize("check", [True, False])
    @pytest.mark.parametrize(
        ("answers", "words"),
        [
            (
                [(1, "", "containerd: no such thing"), (0, "version = 3", "")],
                "with the change: no such thing; nothing was",
            ),
            ([(1, "", "containerd: bad"), (1, "", "containerd: bad before")], "even as it is now: bad before"),
            ([(0, "DUMP", "")], "has no runtime nvidia"),
        ],
    )
    def test_refused_change_is_not_written(
        self, tmp_path: Path, check: bool, answers: list[tuple[int, str, str]], words: str
    ) -> None:
        replies = [self.dump(binary="/other") if answer[1] == "DUMP" else answer for answer in answers]
        node = self.node(tmp_path, *replies)
        with pytest.raises(ConfigError, match=words):
            node.present(check=check)
        assert node.text() == samples.KUBEADM_V3
        assert not (tmp_path / "state").exists()

    def test_undo_restores_original_that_containerd_rejects(self, tmp_path: Path) -> None:
        node = self.node(tmp_path, self.dump(), (1, "", "containerd: rejected before"))
        node.present()
        assert any("rejected before" in warning for warning in node.absent().warnings)
        assert node.text() == samples.KUBEADM_V3

    def test_other_removals_are_validated(self, tmp_path: Path) -> None:
        node = self.node(tmp_path, self.dump(), (1, "", "containerd: no"))
        node.present()
        node.config.write_text(node.text() + "# edited\n", encoding="utf-8")
        before = node.text()
        with pytest.raises(ConfigError, match="without the change: no; nothing was written"):
            node.absent()
        assert node.text() == before


class TestImports:
    def test_import_is_named(self, tmp_path: Path) -> None:
        node = Node(tmp_path, 'imports = ["conf.d/*.toml"]\n' + samples.KUBEADM_V3)
        (node.config.parent / "conf.d").mkdir()
        drop_in = node.config.parent / "conf.d" / "99.toml"
        drop_in.write_text(NVIDIA_V3.replace("/usr/bin", "/opt"), encoding="utf-8")
        with pytest.raises(ConfigError, match=r"conf\.d/99\.toml"):
            node.present()
        drop_in.write_text("broken =\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"99\.toml, line 1"):
            node.present()
        drop_in.unlink()
        assert node.present().changed

    def test_runc_of_an_import_is_inherited(self, tmp_path: Path) -> None:
        node = Node(tmp_path, 'version = 3\nimports = ["runc.toml"]\n')
        (node.config.parent / "runc.toml").write_text(samples.KUBEADM_V3, encoding="utf-8")
        node.present()
        assert "SystemdCgroup = true" in node.text()

    def test_lower_version_is_ignored_before_2_3(self, tmp_path: Path) -> None:
        for release, inherits in (("2.1", False), ("2.3", True)):
            node = Node(tmp_path / release, 'version = 3\nimports = ["runc.toml"]\n', release)
            (node.config.parent / "runc.toml").write_text(samples.KUBEADM_V2, encoding="utf-8")
            done = node.present()
            assert ("SystemdCgroup = true" in node.text()) is inherits
            assert any("ignores" in warning for warning in done.warnings) is not inherits


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
        for step, requested in enumerate(sequence):
            predicted = node.present(check=True, **requested).after
            assert node.present(**requested).after == predicted
            assert not node.present(**requested).changed
            if step == 0:
                node.config.write_bytes(node.config.read_bytes() + addition.encode())
        for runtime in ("nvidia", "nvidia-cdi"):
            predicted = node.absent(check=True, runtime_name=runtime).after
            assert node.absent(runtime_name=runtime).after == predicted
        managed = {"version": loads(node.text()).get("version")} if addition.startswith("[") else {}
        assert {**loads(node.text()), "disabled_plugins": 0} == {
            **loads(text + addition),
            **managed,
            "disabled_plugins": 0,
        }
        if not managed:
            assert node.text() == text + addition

    check()
