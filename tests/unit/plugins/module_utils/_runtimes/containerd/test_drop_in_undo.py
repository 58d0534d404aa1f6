# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Undo of a drop-in, and changes between a drop-in and the file itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.change_log import list_changed_files
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import (
    DropInNode,
    load_file,
    load_section,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.samples import (
    KUBEADM_V3,
    SITE_V3,
    V3,
)

CRI = f'plugins."{V3}".containerd'


class TestAbsent:
    @pytest.mark.parametrize("text", [None, "", KUBEADM_V3, SITE_V3])
    @pytest.mark.parametrize("drop_in", [None, ""])
    def test_undo_restores_the_original_bytes(self, tmp_path: Path, text: str | None, drop_in: str | None) -> None:
        node = DropInNode(tmp_path, text)
        node.run("present", set_default=True, systemd_cgroup=True)
        before = node.snapshot()
        predicted = node.run("absent", check=True, drop_in=drop_in)
        assert node.snapshot() == before
        answer = node.run("absent", drop_in=drop_in)
        assert answer["changed"]
        assert answer["files"] == [str(node.file), str(node.config)]
        assert (predicted["diff"], predicted["reasons"]) == (answer["diff"], answer["reasons"])
        assert not node.folder.exists()
        assert (node.text() if node.config.exists() else None) == text
        assert not list(node.root.rglob("*.json"))
        assert not node.run("absent")["changed"]

    def test_imports_of_others_are_kept(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        others = node.text().replace(f"['{node.file}'", f"['/a.toml', '{node.file}', '/b.toml'")
        node.config.write_text(others, encoding="utf-8")
        assert not node.run("present")["changed"]
        node.run("absent")
        assert node.text() == others.replace(f" '{node.file}',", "")

    def test_import_removed_by_others_is_ignored(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        node.config.write_text(KUBEADM_V3 + "# site\n", encoding="utf-8")
        node.run("absent")
        assert node.text() == KUBEADM_V3 + "# site\n"
        assert not node.file.exists()

    @pytest.mark.parametrize("drop_in", [None, ""])
    def test_conflict_changes_neither_file(self, tmp_path: Path, drop_in: str | None) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        text = node.file.read_text(encoding="utf-8")
        node.file.write_text(text.replace("/usr/bin/nvidia-container-runtime", "/opt/other"), encoding="utf-8")
        files = [node.file.read_bytes(), node.config.read_bytes()]
        with pytest.raises(ConfigError, match=r"50-nvidia\.toml .*BinaryName.* remove that setting, then run again\.$"):
            node.run("absent", drop_in=drop_in)
        assert [node.file.read_bytes(), node.config.read_bytes()] == files

    def test_drop_in_removed_by_others_leaves_no_import(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        node.file.unlink()
        node.run("absent", drop_in=None)
        assert node.text() == KUBEADM_V3

    def test_drop_in_with_settings_of_others_stays_imported(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        with node.file.open("a", encoding="utf-8") as stream:
            stream.write(f'[plugins."{V3}".cni]\nbin_dir = "/opt/bin"\n')
        node.run("absent")
        assert load_file(node.file)["plugins"] == {V3: {"cni": {"bin_dir": "/opt/bin"}}}
        assert load_file(node.config)["imports"] == [str(node.file)]
        assert list_changed_files(node.host.state_dir) == []

    def test_two_runtimes_in_one_drop_in(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        node.run("present", runtime_name="nvidia-legacy")
        assert sorted(load_section(node.file)["runtimes"]) == ["nvidia", "nvidia-legacy"]
        for check in (True, False):
            assert [each["after_header"] for each in [node.run("absent", check=check)["diff"]]] == [str(node.file)]
        assert load_file(node.config)["imports"] == [str(node.file)]
        assert list(load_section(node.file)["runtimes"]) == ["nvidia-legacy"]
        node.run("absent", runtime_name="nvidia-legacy")
        assert node.text() == KUBEADM_V3
        assert not node.folder.exists()

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_two_drop_ins_of_one_file(self, tmp_path: Path, order: tuple[int, int]) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        names = {"nvidia": "", "nvidia-legacy": str(node.folder / "60-legacy.toml")}
        for name, file in names.items():
            node.run("present", runtime_name=name, drop_in=file)
        assert len(load_file(node.config)["imports"]) == 2
        for n in order:
            name, file = list(names.items())[n]
            node.run("absent", runtime_name=name, drop_in=file)
        assert node.text() == KUBEADM_V3
        assert not node.folder.exists() or list(node.folder.iterdir()) == []

    def test_removal_of_default_of_others_is_refused(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present", set_default=True)
        node.config.write_text(f'{node.text()}[{CRI}]\ndefault_runtime_name = "nvidia"\n', encoding="utf-8")
        before = node.snapshot()
        with pytest.raises(ConfigError, match="makes nvidia the default runtime"):
            node.run("absent", check=True)
        assert node.snapshot() == before

    def test_undo_with_wildcard_import_finds_the_drop_in(self, tmp_path: Path) -> None:
        text = f'imports = ["conf.d/*.toml"]\n{KUBEADM_V3}'
        node = DropInNode(tmp_path, text)
        node.run("present")
        with pytest.raises(ConfigError, match="is in the drop-in"):
            node.run("present", drop_in=None)
        with pytest.raises(ConfigError, match="is in the drop-in"):
            node.run("present", drop_in=str(node.folder / "99.toml"))
        assert list_changed_files(node.host.state_dir) == [str(node.file)]
        assert list_changed_files(node.host.state_dir, str(node.config)) == []
        assert node.run("absent", drop_in=None)["changed"]
        assert not node.folder.exists()
        assert list_changed_files(node.host.state_dir) == []

    def test_facts_in_check_mode_are_those_after_the_run(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, None)
        node.run("present", set_default=True)
        predicted, done = node.run("absent", check=True), node.run("absent")
        assert predicted == done

    @pytest.mark.parametrize("text", ["version = 3\nplugins = 5\n", "version = 3\nx = [\n"])
    def test_file_broken_by_others_is_refused(self, tmp_path: Path, text: str) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        node.config.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match="correct it and run again"):
            node.run("absent")
        assert node.text() == text
        assert node.file.exists()

    def test_undo_by_another_path_of_the_drop_in(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        link = tmp_path / "link.d"
        node.folder.mkdir()
        link.symlink_to(node.folder)
        node.run("present", drop_in=f"{node.folder}//50-nvidia.toml")
        predicted = node.run("absent", check=True, drop_in=str(link / "50-nvidia.toml"))
        assert len(predicted["diff"]) == 2
        node.run("absent", drop_in=str(link / "50-nvidia.toml"))
        assert node.text() == KUBEADM_V3
        assert list(node.folder.iterdir()) == []


class TestFileAndDropIn:
    def test_runtime_in_the_file_while_in_a_drop_in_is_refused(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        with pytest.raises(ConfigError, match=rf"is in the drop-in {node.file}: give drop_in: "):
            node.run("present", drop_in=None)
        with pytest.raises(ConfigError, match=rf"is in the drop-in {node.file}: give drop_in: "):
            node.run("present", drop_in=str(node.folder / "other.toml"))
        node.run("absent", drop_in=None)
        assert node.run("present", drop_in=None)["files"] == [str(node.config)]

    def test_drop_in_while_runtime_is_in_the_file_is_refused(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present", drop_in=None)
        with pytest.raises(ConfigError, match="describes runtime nvidia itself"):
            node.run("present")
        assert node.run("absent")["changed"]
        assert node.text() == KUBEADM_V3
        assert node.run("present")["changed"]

    def test_missing_drop_in_does_not_block_the_file(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        node.file.unlink()
        assert node.run("present", drop_in=None)["changed"]


def test_run_interrupted_between_the_files_resumes(tmp_path: Path) -> None:
    node = DropInNode(tmp_path, KUBEADM_V3)
    next(node.steps("present"))
    assert node.file.exists()
    assert node.text() == KUBEADM_V3
    answer = node.run("present")
    assert answer["diff"]["after_header"] == str(node.config)
    assert answer["restart_required"]
    next(node.steps("absent"))
    assert not node.file.exists()
    assert node.text() != KUBEADM_V3
    node.run("absent", drop_in=None)
    assert node.text() == KUBEADM_V3
    assert not list(node.root.rglob("*.json"))


def test_links_are_followed(tmp_path: Path) -> None:
    node = DropInNode(tmp_path, KUBEADM_V3)
    real = tmp_path / "real.d"
    real.mkdir()
    os.symlink(real, node.folder)
    node.run("present")
    assert (real / "50-nvidia.toml").exists()
    assert not node.run("present")["changed"]
    node.run("absent")
    assert list(real.iterdir()) == []
    assert node.text() == KUBEADM_V3
