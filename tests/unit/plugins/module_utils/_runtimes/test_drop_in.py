# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runtime in a file of its own, which config.toml imports."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes import containerd_drop_in
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.places import recorded_files
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import NVIDIA_V3, DropInNode
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.samples import (
    DOCKER,
    KUBEADM_V3,
    SITE_V3,
    V2,
    V3,
)

CRI = f'plugins."{V3}".containerd'


def meaning(file: Path) -> t.Any:
    return loads(file.read_text(encoding="utf-8"))


def section(file: Path) -> t.Any:
    return meaning(file)["plugins"][V3]["containerd"]


class TestPresent:
    def test_the_drop_in_says_what_is_not_there_yet(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        answer = node.run("present", set_default=True)
        assert answer["changed"]
        assert answer["restart_required"]
        assert answer["files"] == [str(node.file), str(node.config)]
        assert (answer["config_version"], answer["plugin_id"], answer["default_runtime_name"]) == (3, V3, "nvidia")
        assert meaning(node.file) == {
            "version": 3,
            "plugins": {
                V3: {
                    "containerd": {
                        "default_runtime_name": "nvidia",
                        "runtimes": {
                            "nvidia": {
                                "runtime_type": "io.containerd.runc.v2",
                                "options": {"BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": True},
                            }
                        },
                    }
                }
            },
        }
        assert node.text() != KUBEADM_V3
        assert node.text().replace(node.line, "") == KUBEADM_V3
        assert not node.run("present", set_default=True)["changed"]

    def test_check_mode_tells_both_differences_and_writes_nothing(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        before = node.snapshot()
        answer = node.run("present", check=True)
        assert node.snapshot() == before
        drop_in, config = answer["diff"]
        assert (drop_in["before"], drop_in["after_header"]) == ("", str(node.file))
        assert drop_in["after"].startswith("version = 3\n")
        assert config["after"].replace(node.line, "") == config["before"] == KUBEADM_V3
        real = node.run("present")
        assert {name: real[name] for name in ("diff", "reasons", "changed")} == {
            name: answer[name] for name in ("diff", "reasons", "changed")
        }

    @pytest.mark.parametrize(
        "pattern", ["{folder}/*.toml", "conf.d/*.toml", "{folder}/50-nvidia.toml", "conf.d/5?-*", "./conf.d//*"]
    )
    def test_a_file_that_imports_it_already_is_left_alone(self, tmp_path: Path, pattern: str) -> None:
        folder = tmp_path / "etc" / "containerd" / "conf.d"
        text = f'imports = ["{pattern.format(folder=folder)}"]\n{KUBEADM_V3}'
        node = DropInNode(tmp_path, text)
        answer = node.run("present")
        assert node.text() == text
        assert answer["diff"]["after_header"] == str(node.file)
        assert not node.run("present")["changed"]
        node.run("absent")
        assert node.text() == text
        assert not node.folder.exists()

    @pytest.mark.parametrize(
        "pattern", ["conf.d/*.conf", "*/*/50-nvidia.toml", "conf.d/deep/*.toml", "conf.d/5?-nvidia.toml"]
    )
    def test_other_imports_are_not_enough(self, tmp_path: Path, pattern: str) -> None:
        node = DropInNode(tmp_path, f'imports = ["{pattern}"] # theirs\n{KUBEADM_V3}')
        node.run("present")
        assert node.text() == f'imports = ["{pattern}", "{node.file}"] # theirs\n{KUBEADM_V3}'

    @pytest.mark.parametrize("content", [None, "", "# nothing yet\n", 'root = "/data"\n'])
    def test_a_file_without_a_version_gets_one(self, tmp_path: Path, content: str | None) -> None:
        node = DropInNode(tmp_path, content)
        node.run("present")
        assert meaning(node.config)["version"] == meaning(node.file)["version"] == 3
        node.run("absent")
        assert (node.text() if node.config.exists() else None) == content

    def test_it_follows_the_file(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        text = node.text()
        node.config.write_text(text.replace("SystemdCgroup = true", "SystemdCgroup = false"), encoding="utf-8")
        answer = node.run("present")
        assert section(node.file)["runtimes"]["nvidia"]["options"]["SystemdCgroup"] is False
        assert "inherit from runtime runc" in answer["reasons"]
        assert not node.run("present")["changed"]

    def test_no_longer_the_default(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, f'version = 3\n[{CRI}]\ndefault_runtime_name = "runc"\n')
        node.run("present", set_default=True)
        answer = node.run("present", set_default=False)
        assert "default_runtime_name" not in section(node.file)
        assert answer["default_runtime_name"] == "runc"

    def test_the_default_of_the_file_is_taken_back_in_the_drop_in(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, f'version = 3\n[{CRI}]\ndefault_runtime_name = "nvidia"\n')
        node.run("present", set_default=False)
        assert section(node.file)["default_runtime_name"] == "runc"

    def test_what_others_import_before_counts_and_is_not_repeated(self, tmp_path: Path) -> None:
        crun = (
            f'[{CRI}]\ndefault_runtime_name = "crun"\n[{CRI}.runtimes.crun]\nruntime_type = "io.containerd.runc.v2"\n'
        )
        crun += f'[{CRI}.runtimes.crun.options]\nSystemdCgroup = true\nBinaryName = "/usr/bin/crun"\n'
        node = DropInNode(tmp_path, 'version = 3\nimports = ["conf.d/*.toml"]\n', _10=crun)
        answer = node.run("present")
        assert list(section(node.file)) == ["runtimes"]
        assert list(section(node.file)["runtimes"]) == ["nvidia"]
        assert section(node.file)["runtimes"]["nvidia"]["options"]["SystemdCgroup"] is True
        assert answer["default_runtime_name"] == "crun"

    def test_settings_go_into_the_drop_in(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present", settings={"plugins": {V3: {"max_container_log_line_size": 1}}})
        assert meaning(node.file)["plugins"][V3]["max_container_log_line_size"] == 1

    def test_what_another_file_sets_before_is_set_back(self, tmp_path: Path) -> None:
        ours = f'[plugins."{V3}"]\nenable_cdi = true\nmax_container_log_line_size = 16384\n'
        theirs = ours.replace("true", "false").replace("16384", "8192")
        node = DropInNode(tmp_path, f'version = 3\nimports = ["conf.d/*.toml"]\n{ours}', _10=theirs)
        asked = {"enable_cdi": True, "settings": {"plugins": {V3: {"max_container_log_line_size": 16384}}}}
        node.run("present", **asked)
        mine = meaning(node.file)["plugins"][V3]
        assert (mine["enable_cdi"], mine["max_container_log_line_size"]) == (True, 16384)
        assert not node.run("present", **asked)["changed"]

    @pytest.mark.parametrize(("mode", "expected"), [(0o600, 0o600), (0o640, 0o640), (0o664, 0o644)])
    def test_nobody_reads_it_who_may_not_read_the_file(self, tmp_path: Path, mode: int, expected: int) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.config.chmod(mode)
        node.run("present")
        assert node.file.stat().st_mode & 0o777 == expected

    def test_the_file_may_name_the_default_before(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, f'version = 3\n[{CRI}]\ndefault_runtime_name = "nvidia"\n')
        assert node.run("present", check=True)["default_runtime_name"] == "nvidia"
        assert node.run("present")["default_runtime_name"] == "nvidia"
        with node.file.open("a", encoding="utf-8") as stream:
            stream.write("# theirs\n")
        assert node.run("present", set_default=True, enable_cdi=False)["changed"]

    def test_who_rewrites_the_file_is_named(self, tmp_path: Path) -> None:
        runc = f'[{CRI}.runtimes.runc]\nbase_runtime_spec = "/etc/containerd/cri-base.json"\n'
        node = DropInNode(tmp_path, f"version = 3\n{runc}")
        assert any("kubespray" in warning for warning in node.run("present")["warnings"])

    def test_version_2_keeps_its_own_runc(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, "version = 2\n")
        node.run("present")
        assert list(meaning(node.file)["plugins"][V2]["containerd"]["runtimes"]) == ["nvidia"]


class TestRefused:
    @pytest.mark.parametrize(
        ("release", "text", "asked", "words"),
        [
            ("1.7", KUBEADM_V3, {}, "would replace the whole CRI section"),
            ("?", KUBEADM_V3, {}, "state containerd_version, or leave drop_in out"),
            ("2.1", DOCKER, {}, "switches the CRI plugin off"),
            ("2.1", "version = 3\n" + NVIDIA_V3, {}, "describes runtime nvidia itself"),
            (
                "2.1",
                KUBEADM_V3,
                {"settings": {"disabled_plugins": ["x"]}},
                "does not take disabled_plugins from a drop-in",
            ),
            ("2.1", KUBEADM_V3, {"settings": {"oom_score": 0}}, "does not take oom_score from a drop-in"),
            ("2.1", "version = 1\n", {}, "convert it"),
            ("2.1", "version = 4\n", {}, "reads up to version 3"),
            ("2.1", "version = 3\nplugins = 5\n", {}, r"config\.toml: plugins has to be a table"),
            ("2.1", "# File generated by k3s. DO NOT EDIT.\nversion = 3\n", {}, "rendered by k3s"),
        ],
    )
    def test_what_a_drop_in_cannot_do(
        self, tmp_path: Path, release: str, text: str, asked: dict[str, t.Any], words: str
    ) -> None:
        node = DropInNode(tmp_path, text, release)
        for check in (True, False):
            with pytest.raises(ConfigError, match=words):
                node.run("present", check=check, **asked)
        assert node.text() == text
        assert not node.folder.exists()

    @pytest.mark.parametrize(
        ("name", "text", "asked", "words"),
        [
            ("_60", NVIDIA_V3.replace("/usr/bin/", "/opt/"), {}, "or give drop_in: "),
            ("_60", f'{CRI}.default_runtime_name = "crun"\n', {"set_default": True}, "or give drop_in: "),
            ("_60", "version = 4\n", {}, "bring both to one version"),
            ("_40", 'disabled_plugins = ["cri"]\n', {}, "40.toml switches the CRI plugin off"),
            ("_60", 'disabled_plugins = ["cri"]\n', {}, "60.toml switches the CRI plugin off"),
            (".hidden", "version = 4\n", {}, "bring both to one version"),
            ("_40", "version = 4\n", {}, "bring both to one version"),
            ("_50-nvidia", "version = 2\n", {}, "has configuration version 2 and "),
            ("_50-nvidia", f"plugins.'{V3}' = 1\n", {}, "has to be a table"),
        ],
    )
    def test_files_beside_it(self, tmp_path: Path, name: str, text: str, asked: dict[str, t.Any], words: str) -> None:
        node = DropInNode(tmp_path, 'version = 3\nimports = ["conf.d/*.toml"]\n', **{name: text})
        with pytest.raises(ConfigError, match=words):
            node.run("present", **asked)

    def test_what_comes_before_is_overridden(self, tmp_path: Path) -> None:
        text = NVIDIA_V3.replace("/usr/bin/", "/opt/")
        node = DropInNode(tmp_path, 'version = 3\nimports = ["conf.d/*.toml"]\n', _40=text)
        node.run("present")
        assert section(node.file)["runtimes"] == {
            "nvidia": {"options": {"BinaryName": "/usr/bin/nvidia-container-runtime"}}
        }

    def test_foreign_settings_do_not_come_into_force_by_us(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3, **{"_50-nvidia": 'root = "/elsewhere"\n'})
        with pytest.raises(ConfigError, match="come into force with the runtime: import it there first"):
            node.run("present")
        assert node.text() == KUBEADM_V3

    @pytest.mark.parametrize("name", ["conf.d/x.toml", "/etc/containerd/conf.d/*.toml", "{config}"])
    def test_a_path_that_cannot_be_imported(self, tmp_path: Path, name: str) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        for state in ("present", "absent"):
            with pytest.raises(ConfigError, match="give another file by its absolute path"):
                node.run(state, drop_in=name.format(config=node.config))

    def test_what_cannot_be_imported_is_not_written(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)

        def refuse(*_: t.Any) -> t.Any:
            raise ConfigError("no import")

        monkeypatch.setattr(containerd_drop_in.Import, "check_default", refuse)
        monkeypatch.setattr(containerd_drop_in.Import, "admit", refuse)
        with pytest.raises(ConfigError, match="no import"):
            node.run("present")
        assert not node.file.exists()


class TestAbsent:
    @pytest.mark.parametrize("text", [None, "", KUBEADM_V3, SITE_V3])
    @pytest.mark.parametrize("drop_in", [None, ""])
    def test_the_first_bytes(self, tmp_path: Path, text: str | None, drop_in: str | None) -> None:
        node = DropInNode(tmp_path, text)
        node.run("present", set_default=True, systemd_cgroup=True)
        before = node.snapshot()
        told = node.run("absent", check=True, drop_in=drop_in)
        assert node.snapshot() == before
        answer = node.run("absent", drop_in=drop_in)
        assert answer["changed"]
        assert answer["files"] == [str(node.file), str(node.config)]
        assert (told["diff"], told["reasons"]) == (answer["diff"], answer["reasons"])
        assert not node.folder.exists()
        assert (node.text() if node.config.exists() else None) == text
        assert not list(node.root.rglob("*.json"))
        assert not node.run("absent")["changed"]

    def test_imports_of_others_stay(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        others = node.text().replace(f"['{node.file}'", f"['/a.toml', '{node.file}', '/b.toml'")
        node.config.write_text(others, encoding="utf-8")
        assert not node.run("present")["changed"]
        node.run("absent")
        assert node.text() == others.replace(f" '{node.file}',", "")

    def test_an_import_that_others_took_out_is_no_trouble(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        node.config.write_text(KUBEADM_V3 + "# theirs\n", encoding="utf-8")
        node.run("absent")
        assert node.text() == KUBEADM_V3 + "# theirs\n"
        assert not node.file.exists()

    def test_a_drop_in_that_others_removed_leaves_no_import(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        node.file.unlink()
        node.run("absent", drop_in=None)
        assert node.text() == KUBEADM_V3

    def test_with_settings_of_others_the_drop_in_stays_imported(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        with node.file.open("a", encoding="utf-8") as stream:
            stream.write(f'[plugins."{V3}".cni]\nbin_dir = "/opt/bin"\n')
        node.run("absent")
        assert meaning(node.file)["plugins"] == {V3: {"cni": {"bin_dir": "/opt/bin"}}}
        assert meaning(node.config)["imports"] == [str(node.file)]

    def test_two_runtimes_in_one_drop_in(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        node.run("present", runtime_name="nvidia-legacy")
        assert sorted(section(node.file)["runtimes"]) == ["nvidia", "nvidia-legacy"]
        for check in (True, False):
            assert [each["after_header"] for each in [node.run("absent", check=check)["diff"]]] == [str(node.file)]
        assert meaning(node.config)["imports"] == [str(node.file)]
        assert list(section(node.file)["runtimes"]) == ["nvidia-legacy"]
        node.run("absent", runtime_name="nvidia-legacy")
        assert node.text() == KUBEADM_V3
        assert not node.folder.exists()

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_two_drop_ins_of_one_file(self, tmp_path: Path, order: tuple[int, int]) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        names = {"nvidia": "", "nvidia-legacy": str(node.folder / "60-legacy.toml")}
        for name, file in names.items():
            node.run("present", runtime_name=name, drop_in=file)
        assert len(meaning(node.config)["imports"]) == 2
        for n in order:
            name, file = list(names.items())[n]
            node.run("absent", runtime_name=name, drop_in=file)
        assert node.text() == KUBEADM_V3
        assert not node.folder.exists() or list(node.folder.iterdir()) == []

    def test_a_default_that_others_rely_on_is_refused(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present", set_default=True)
        node.config.write_text(f'{node.text()}[{CRI}]\ndefault_runtime_name = "nvidia"\n', encoding="utf-8")
        before = node.snapshot()
        with pytest.raises(ConfigError, match="makes nvidia the default runtime"):
            node.run("absent", check=True)
        assert node.snapshot() == before

    def test_through_a_wildcard_of_theirs_nothing_has_to_be_given(self, tmp_path: Path) -> None:
        text = f'imports = ["conf.d/*.toml"]\n{KUBEADM_V3}'
        node = DropInNode(tmp_path, text)
        node.run("present")
        with pytest.raises(ConfigError, match="is in the drop-in"):
            node.run("present", drop_in=None)
        with pytest.raises(ConfigError, match="is in the drop-in"):
            node.run("present", drop_in=str(node.folder / "99.toml"))
        assert recorded_files(node.host.state_dir) == [str(node.file)]
        assert recorded_files(node.host.state_dir, str(node.config)) == []
        assert node.run("absent", drop_in=None)["changed"]
        assert not node.folder.exists()
        assert recorded_files(node.host.state_dir) == []

    def test_an_import_that_is_left_is_no_runtime(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        with node.file.open("a", encoding="utf-8") as stream:
            stream.write(f'[plugins."{V3}".cni]\nbin_dir = "/opt/bin"\n')
        node.run("absent")
        assert recorded_files(node.host.state_dir) == []

    def test_facts_in_check_mode_are_those_after_the_run(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, None)
        node.run("present", set_default=True)
        told, done = node.run("absent", check=True), node.run("absent")
        assert told == done

    @pytest.mark.parametrize("text", ["version = 3\nplugins = 5\n", "version = 3\nx = [\n"])
    def test_a_file_that_others_broke_since(self, tmp_path: Path, text: str) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        node.config.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match="correct it and run again"):
            node.run("absent")
        assert node.text() == text
        assert node.file.exists()

    def test_another_spelling_of_the_same_drop_in(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        link = tmp_path / "link.d"
        node.folder.mkdir()
        link.symlink_to(node.folder)
        node.run("present", drop_in=f"{node.folder}//50-nvidia.toml")
        told = node.run("absent", check=True, drop_in=str(link / "50-nvidia.toml"))
        assert len(told["diff"]) == 2
        node.run("absent", drop_in=str(link / "50-nvidia.toml"))
        assert node.text() == KUBEADM_V3
        assert list(node.folder.iterdir()) == []


class TestTheOtherWay:
    def test_in_place_while_it_is_in_a_drop_in(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        with pytest.raises(ConfigError, match=rf"is in the drop-in {node.file}: give drop_in: "):
            node.run("present", drop_in=None)
        with pytest.raises(ConfigError, match=rf"is in the drop-in {node.file}: give drop_in: "):
            node.run("present", drop_in=str(node.folder / "other.toml"))
        node.run("absent", drop_in=None)
        assert node.run("present", drop_in=None)["files"] == [str(node.config)]

    def test_a_drop_in_while_it_is_in_place(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present", drop_in=None)
        with pytest.raises(ConfigError, match="describes runtime nvidia itself"):
            node.run("present")
        assert node.run("absent")["changed"]
        assert node.text() == KUBEADM_V3
        assert node.run("present")["changed"]

    def test_a_drop_in_that_is_gone_is_none(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        node.file.unlink()
        assert node.run("present", drop_in=None)["changed"]


def test_a_run_that_was_killed_between_the_files(tmp_path: Path) -> None:
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
