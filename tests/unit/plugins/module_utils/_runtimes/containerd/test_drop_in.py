# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The runtime in a drop-in that config.toml imports."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd import drop_in
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import (
    NVIDIA_V3,
    DropInNode,
    load_file,
    load_section,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.samples import (
    DOCKER,
    KUBEADM_V3,
    V2,
    V3,
)

CRI = f'plugins."{V3}".containerd'


class TestPresent:
    def test_drop_in_has_only_missing_settings(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        answer = node.run("present", set_default=True)
        assert answer["changed"]
        assert answer["restart_required"]
        assert answer["files"] == [str(node.file), str(node.config)]
        assert (answer["config_version"], answer["plugin_id"], answer["default_runtime_name"]) == (3, V3, "nvidia")
        assert load_file(node.file) == {
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

    def test_check_mode_returns_both_differences_and_writes_nothing(self, tmp_path: Path) -> None:
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
    def test_file_with_the_import_is_unchanged(self, tmp_path: Path, pattern: str) -> None:
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
    def test_other_imports_are_extended(self, tmp_path: Path, pattern: str) -> None:
        node = DropInNode(tmp_path, f'imports = ["{pattern}"] # site\n{KUBEADM_V3}')
        node.run("present")
        assert node.text() == f'imports = ["{pattern}", "{node.file}"] # site\n{KUBEADM_V3}'

    @pytest.mark.parametrize("content", [None, "", "# nothing yet\n", 'root = "/data"\n'])
    def test_a_file_without_a_version_gets_one(self, tmp_path: Path, content: str | None) -> None:
        node = DropInNode(tmp_path, content)
        node.run("present")
        assert load_file(node.config)["version"] == load_file(node.file)["version"] == 3
        node.run("absent")
        assert (node.text() if node.config.exists() else None) == content

    def test_drop_in_follows_the_file(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present")
        text = node.text()
        node.config.write_text(text.replace("SystemdCgroup = true", "SystemdCgroup = false"), encoding="utf-8")
        answer = node.run("present")
        assert load_section(node.file)["runtimes"]["nvidia"]["options"]["SystemdCgroup"] is False
        assert "inherit from runtime runc" in answer["reasons"]
        assert not node.run("present")["changed"]

    def test_set_default_false_removes_the_default(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, f'version = 3\n[{CRI}]\ndefault_runtime_name = "runc"\n')
        node.run("present", set_default=True)
        answer = node.run("present", set_default=False)
        assert "default_runtime_name" not in load_section(node.file)
        assert answer["default_runtime_name"] == "runc"

    def test_the_default_of_the_file_is_overridden_in_the_drop_in(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, f'version = 3\n[{CRI}]\ndefault_runtime_name = "nvidia"\n')
        node.run("present", set_default=False)
        assert load_section(node.file)["default_runtime_name"] == "runc"

    def test_earlier_imports_are_read_and_not_repeated(self, tmp_path: Path) -> None:
        crun = (
            f'[{CRI}]\ndefault_runtime_name = "crun"\n[{CRI}.runtimes.crun]\nruntime_type = "io.containerd.runc.v2"\n'
        )
        crun += f'[{CRI}.runtimes.crun.options]\nSystemdCgroup = true\nBinaryName = "/usr/bin/crun"\n'
        node = DropInNode(tmp_path, 'version = 3\nimports = ["conf.d/*.toml"]\n', _10=crun)
        answer = node.run("present")
        assert list(load_section(node.file)) == ["runtimes"]
        assert list(load_section(node.file)["runtimes"]) == ["nvidia"]
        assert load_section(node.file)["runtimes"]["nvidia"]["options"]["SystemdCgroup"] is True
        assert answer["default_runtime_name"] == "crun"

    def test_settings_are_written_to_the_drop_in(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.run("present", settings={"plugins": {V3: {"max_container_log_line_size": 1}}})
        assert load_file(node.file)["plugins"][V3]["max_container_log_line_size"] == 1

    def test_settings_of_earlier_files_are_overridden(self, tmp_path: Path) -> None:
        file = f'[plugins."{V3}"]\nenable_cdi = true\nmax_container_log_line_size = 16384\n'
        earlier = file.replace("true", "false").replace("16384", "8192")
        node = DropInNode(tmp_path, f'version = 3\nimports = ["conf.d/*.toml"]\n{file}', _10=earlier)
        requested = {"enable_cdi": True, "settings": {"plugins": {V3: {"max_container_log_line_size": 16384}}}}
        node.run("present", **requested)
        section = load_file(node.file)["plugins"][V3]
        assert (section["enable_cdi"], section["max_container_log_line_size"]) == (True, 16384)
        assert not node.run("present", **requested)["changed"]

    @pytest.mark.parametrize(("mode", "expected"), [(0o600, 0o600), (0o640, 0o640), (0o664, 0o644)])
    def test_mode_follows_the_file(self, tmp_path: Path, mode: int, expected: int) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        node.config.chmod(mode)
        node.run("present")
        assert node.file.stat().st_mode & 0o777 == expected

    def test_default_named_by_the_file_is_kept(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, f'version = 3\n[{CRI}]\ndefault_runtime_name = "nvidia"\n')
        assert node.run("present", check=True)["default_runtime_name"] == "nvidia"
        assert node.run("present")["default_runtime_name"] == "nvidia"
        with node.file.open("a", encoding="utf-8") as stream:
            stream.write("# site\n")
        assert node.run("present", set_default=True, enable_cdi=False)["changed"]

    def test_a_program_that_rewrites_the_file_is_named(self, tmp_path: Path) -> None:
        runc = f'[{CRI}.runtimes.runc]\nbase_runtime_spec = "/etc/containerd/cri-base.json"\n'
        node = DropInNode(tmp_path, f"version = 3\n{runc}")
        assert any("kubespray" in warning for warning in node.run("present")["warnings"])

    def test_version_2_keeps_its_own_runc(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, "version = 2\n")
        node.run("present")
        assert list(load_file(node.file)["plugins"][V2]["containerd"]["runtimes"]) == ["nvidia"]


class TestRefused:
    @pytest.mark.parametrize(
        ("release", "text", "requested", "words"),
        [
            ("1.7", KUBEADM_V3, {}, "would replace the whole CRI section"),
            ("?", KUBEADM_V3, {}, "install containerd first, or leave drop_in out"),
            ("2.1", DOCKER, {}, "switches the CRI plugin off"),
            ("2.1", "version = 3\n" + NVIDIA_V3, {}, "describes runtime nvidia itself"),
            (
                "2.1",
                KUBEADM_V3,
                {"settings": {"disabled_plugins": ["x"]}},
                "does not read disabled_plugins from a drop-in",
            ),
            ("2.1", KUBEADM_V3, {"settings": {"oom_score": 0}}, "does not read oom_score from a drop-in"),
            ("2.1", "version = 1\n", {}, "convert it"),
            ("2.1", "version = 4\n", {}, "reads up to version 3"),
            ("2.1", "version = 3\nplugins = 5\n", {}, r"config\.toml: plugins has to be a table"),
            ("2.1", "# File generated by k3s. DO NOT EDIT.\nversion = 3\n", {}, "rendered by k3s"),
        ],
    )
    def test_impossible_drop_in_is_refused(
        self, tmp_path: Path, release: str, text: str, requested: dict[str, t.Any], words: str
    ) -> None:
        node = DropInNode(tmp_path, text, release)
        for check in (True, False):
            with pytest.raises(ConfigError, match=words):
                node.run("present", check=check, **requested)
        assert node.text() == text
        assert not node.folder.exists()

    @pytest.mark.parametrize(
        ("name", "text", "requested", "words"),
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
    def test_conflicting_drop_ins_are_refused(
        self, tmp_path: Path, name: str, text: str, requested: dict[str, t.Any], words: str
    ) -> None:
        node = DropInNode(tmp_path, 'version = 3\nimports = ["conf.d/*.toml"]\n', **{name: text})
        with pytest.raises(ConfigError, match=words):
            node.run("present", **requested)

    def test_earlier_drop_ins_are_overridden(self, tmp_path: Path) -> None:
        text = NVIDIA_V3.replace("/usr/bin/", "/opt/")
        node = DropInNode(tmp_path, 'version = 3\nimports = ["conf.d/*.toml"]\n', _40=text)
        node.run("present")
        assert load_section(node.file)["runtimes"] == {
            "nvidia": {"options": {"BinaryName": "/usr/bin/nvidia-container-runtime"}}
        }

    def test_unmanaged_settings_do_not_come_into_force(self, tmp_path: Path) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3, **{"_50-nvidia": 'root = "/elsewhere"\n'})
        with pytest.raises(ConfigError, match="come into force with the runtime: import it there first"):
            node.run("present")
        assert node.text() == KUBEADM_V3

    @pytest.mark.parametrize("name", ["conf.d/x.toml", "/etc/containerd/conf.d/*.toml", "{config}"])
    def test_path_that_cannot_be_imported_is_refused(self, tmp_path: Path, name: str) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)
        for state in ("present", "absent"):
            with pytest.raises(ConfigError, match="give another file by its absolute path"):
                node.run(state, drop_in=name.format(config=node.config))

    def test_failed_import_writes_no_drop_in(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        node = DropInNode(tmp_path, KUBEADM_V3)

        def refuse(*_: t.Any) -> t.Any:
            raise ConfigError("no import")

        monkeypatch.setattr(drop_in.Import, "check_default", refuse)
        monkeypatch.setattr(drop_in.Import, "check_owner", refuse)
        with pytest.raises(ConfigError, match="no import"):
            node.run("present")
        assert not node.file.exists()
