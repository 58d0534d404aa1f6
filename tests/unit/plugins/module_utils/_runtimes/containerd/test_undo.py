# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import NVIDIA_V3, Node

if t.TYPE_CHECKING:
    from pathlib import Path

RUNC_OPTIONS = f'[plugins."{samples.V2}".containerd.runtimes.runc.options]\nSystemdCgroup = true\n'


class TestEditsOfOthers:
    def test_edits_are_kept(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        node.present(set_default=True)
        node.config.write_text(node.text() + "# edited\n[debug]\nlevel = 'debug'\n", encoding="utf-8")
        assert not node.present(set_default=True).changed
        node.absent()
        assert node.text() == samples.KUBEADM_V3 + "# edited\n[debug]\nlevel = 'debug'\n"

    def test_edits_are_kept_after_another_run(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        node.present()
        node.config.write_text("# edited\n" + node.text(), encoding="utf-8")
        assert node.present(set_default=True).changed
        node.absent()
        assert node.text() == "# edited\n" + samples.KUBEADM_V3

    def test_value_of_others_at_managed_key_is_kept(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.DEFAULT_V3 % 3)
        node.present(set_default=True)
        node.config.write_text(
            node.text().replace("default_runtime_name = 'nvidia'", "default_runtime_name = 'runc' # back"),
            encoding="utf-8",
        )
        node.absent()
        assert node.text() == (samples.DEFAULT_V3 % 3).replace("name = 'runc'", "name = 'runc' # back")

    @pytest.mark.parametrize(
        ("managed", "edited", "setting"),
        [
            ("name = 'nvidia'", "name = 'kata' # why", r"containerd\.default_runtime_name"),
            ("/usr/bin/nvidia-container-runtime", "/opt/other", r"runtimes\.nvidia\.options\.BinaryName"),
        ],
    )
    def test_third_value_is_refused(self, tmp_path: Path, managed: str, edited: str, setting: str) -> None:
        node = Node(tmp_path, samples.DEFAULT_V3 % 3)
        node.present(set_default=True)
        text = node.text().replace(managed, edited)
        assert text != node.text()
        node.config.write_text(text, encoding="utf-8")
        for check in (True, False):
            with pytest.raises(ConfigError, match=rf"{setting} after .* former value from .*/backups/"):
                node.absent(check=check)
        assert node.text() == text

    def test_edited_inherited_setting_is_removed_with_the_runtime(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3.replace("true", "false"))
        node.present()
        node.config.write_text(node.text().replace("SystemdCgroup = false", "SystemdCgroup = true"), encoding="utf-8")
        node.absent()
        assert node.text() == samples.KUBEADM_V3

    def test_file_rewritten_by_another_tool_has_a_new_record(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBEADM_V3)
        first = node.present().backup_file
        node.config.write_text(samples.DEFAULT_V3 % 3, encoding="utf-8")
        second = node.present().backup_file
        assert first != second
        node.absent()
        assert node.text() == samples.DEFAULT_V3 % 3

    def test_default_set_by_others_is_removed_with_the_runtime(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.DEFAULT_V3 % 3)
        node.present()
        node.config.write_text(node.text().replace("name = 'runc'", "name = 'nvidia'"), encoding="utf-8")
        outcome = node.absent()
        assert outcome.facts["default_runtime_name"] == "runc"
        assert node.text() == samples.DEFAULT_V3 % 3
        assert any("runc again" in warning for warning in outcome.warnings)

    def test_runc_is_kept_for_runtimes_of_others(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.DEBIAN, "1.7")
        node.present()
        kata = f'[plugins."{samples.V2}".containerd.runtimes.kata]\nruntime_type = "io.containerd.kata.v2"\n'
        node.config.write_text(node.text() + kata, encoding="utf-8")
        warnings = node.absent().warnings
        assert "runtimes.runc]" in node.text()
        assert "nvidia" not in node.text()
        assert any("runc stays" in warning for warning in warnings)

    def test_earlier_runtime_without_a_type_is_kept(self, tmp_path: Path) -> None:
        text = samples.KUBEADM_V3 + f"[plugins.'{samples.V3}'.containerd.runtimes.nvidia]\npod_annotations = ['x']\n"
        node = Node(tmp_path, text)
        node.present()
        node.absent()
        assert node.text() == text
        node.present()
        node.config.write_text("# edited\n" + node.text(), encoding="utf-8")
        node.absent()
        assert node.text() == "# edited\n" + text

    def test_version_is_kept_for_settings_of_others(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.DOCKER, "2.1")
        node.present()
        node.config.write_text(
            node.text() + '[plugins."io.containerd.gc.v1.scheduler"]\npause_threshold = 0.1\n', encoding="utf-8"
        )
        node.absent()
        assert "version = 3" in node.text()
        assert "disabled_plugins = []" in node.text()
        assert "nvidia" not in node.text()

    def test_unmanaged_runtime_is_kept(self, tmp_path: Path) -> None:
        node = Node(tmp_path, "version = 3\n" + NVIDIA_V3)
        outcome = node.absent()
        assert not outcome.changed
        assert any("no record" in warning for warning in outcome.warnings)

    def test_migrated_file_is_undone(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBEADM_V2, "2.1")
        node.present(set_default=True)
        node.config.write_text(
            node.text().replace(samples.V2, samples.V3).replace("version = 2", "version = 3"), encoding="utf-8"
        )
        assert not node.present(set_default=True).changed
        node.absent()
        expected = samples.KUBEADM_V2.replace(samples.V2, samples.V3).replace("version = 2", "version = 3")
        assert loads(node.text()) == loads(expected)
        assert "# the shim" in node.text()


class TestRuncOfOthers:
    @pytest.mark.parametrize("between", [False, True], ids=["at once", "after another run"])
    def test_settings_of_others_keep_the_managed_runc(self, tmp_path: Path, between: bool) -> None:
        node = Node(tmp_path, samples.DEBIAN, "1.7")
        node.present()
        node.config.write_text(node.text() + RUNC_OPTIONS, encoding="utf-8")
        if between:
            node.present(set_default=True)
        outcome = node.absent()
        runtimes = loads(node.text())["plugins"][samples.V2]["containerd"]["runtimes"]
        assert runtimes == {"runc": {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}}
        assert between or any("runc stays" in warning for warning in outcome.warnings)

    def test_built_in_runc_keeps_settings_of_others(self, tmp_path: Path) -> None:
        node = Node(tmp_path, "version = 3\n", "2.1")
        node.present(systemd_cgroup=True)
        table = f'[plugins."{samples.V3}".containerd.runtimes.runc]\n'
        node.config.write_text(node.text().replace(table, table + "snapshotter = 'other'\n"), encoding="utf-8")
        assert any("runc stays" in warning for warning in node.absent().warnings)
        runtimes = loads(node.text())["plugins"][samples.V3]["containerd"]["runtimes"]
        assert runtimes == {"runc": {"runtime_type": "io.containerd.runc.v2", "snapshotter": "other"}}

    @pytest.mark.parametrize("requested", [{}, {"systemd_cgroup": True}])
    def test_replaced_file_is_unchanged(self, tmp_path: Path, requested: dict[str, t.Any]) -> None:
        node = Node(tmp_path, samples.DEBIAN, "1.7")
        node.present(**requested)
        node.config.write_text(samples.KUBEADM_V2, encoding="utf-8")
        outcome = node.absent()
        assert (outcome.changed, outcome.warnings) == (False, [])
        assert node.text() == samples.KUBEADM_V2
        assert not list((tmp_path / "state" / "state").rglob("*.json"))

    def test_cgroup_driver_of_a_replaced_file_is_unchanged(self, tmp_path: Path) -> None:
        node = Node(tmp_path, samples.KUBEADM_V2.replace("true", "false"), "1.7")
        node.present(systemd_cgroup=True)
        node.config.write_text(samples.KUBEADM_V2, encoding="utf-8")
        assert not node.absent().changed
        assert node.text() == samples.KUBEADM_V2

    def test_file_with_kata_alone_is_restored(self, tmp_path: Path) -> None:
        """The original is restored, also without runc on containerd 1.x."""
        kata = samples.KATA_DEFAULT.replace("version = 3", "version = 2").replace(samples.V3, samples.V2)
        kata = kata[: kata.index('[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runsc]')]
        node = Node(tmp_path, kata, "1.7")
        node.present()
        assert "runtimes.runc]" in node.text()
        assert node.absent().warnings == []
        assert node.text() == kata


class TestCriStaysEnabled:
    """disabled_plugins = ["cri"] is restored only with the whole original."""

    def disabled(self, node: Node) -> t.Any:
        return loads(node.text()).get("disabled_plugins")

    @pytest.mark.parametrize("release", ["1.7", "2.1"])
    def test_original_is_restored(self, tmp_path: Path, release: str) -> None:
        node = Node(tmp_path, samples.DOCKER, release)
        node.present()
        node.config.write_text("# a remark\n" + node.text(), encoding="utf-8")
        assert node.absent().changed
        assert node.text() == "# a remark\n" + samples.DOCKER

    @pytest.mark.parametrize("addition", ["", "# a remark\n"])
    @pytest.mark.parametrize("items", ['  # no kubelet here\n  "cri",\n', '  "cri"  # off\n  # no kubelet here\n'])
    def test_comment_of_the_list_is_kept(self, tmp_path: Path, items: str, addition: str) -> None:
        text = f"disabled_plugins = [\n{items}]\n"
        node = Node(tmp_path, text, "2.1")
        node.present()
        assert "disabled_plugins = [\n  # no kubelet here\n]\n" in node.text()
        assert not node.present().changed
        node.config.write_text(addition + node.text(), encoding="utf-8")
        assert node.absent().changed
        assert node.text() == addition + text

    @pytest.mark.parametrize(
        "addition", ["[debug]\nlevel = 'debug'\n", "[plugins.'io.containerd.gc.v1.scheduler']\nx = 1\n"]
    )
    @pytest.mark.parametrize("between", [False, True], ids=["at once", "after another run"])
    @pytest.mark.parametrize("requested", [{}, {"settings": {"disabled_plugins": []}}], ids=["plain", "by settings"])
    def test_edited_file_keeps_cri_enabled(
        self, tmp_path: Path, addition: str, between: bool, requested: dict[str, t.Any]
    ) -> None:
        node = Node(tmp_path, samples.DOCKER, "2.1")
        node.present(**requested)
        node.config.write_text(node.text() + addition, encoding="utf-8")
        if between:
            assert node.present(set_default=True, **requested).changed
        predicted = node.absent(check=True).after
        outcome = node.absent()
        assert outcome.after == predicted
        assert self.disabled(node) == []
        assert loads(node.text())["version"] == 3
        assert "nvidia" not in node.text()
        assert addition in node.text()
        assert between or any("CRI plugin stays" in warning for warning in outcome.warnings)

    @pytest.mark.parametrize(
        "text", ["version = 3\ndisabled_plugins = []\n", "disabled_plugins = []\n", "version = 3\n"]
    )
    def test_replaced_file_is_unchanged(self, tmp_path: Path, text: str) -> None:
        node = Node(tmp_path, samples.DOCKER, "2.1")
        node.present()
        node.config.write_text(text, encoding="utf-8")
        assert not node.absent().changed
        assert node.text() == text

    def test_default_runc_of_others_is_kept(self, tmp_path: Path) -> None:
        node = Node(tmp_path, "version = 3\n", "2.1")
        node.present(systemd_cgroup=True)
        section = f'[plugins."{samples.V3}".containerd]\ndefault_runtime_name = "runc"\n'
        node.config.write_text(node.text() + section, encoding="utf-8")
        assert node.absent().facts["default_runtime_name"] == "runc"


def test_reasons_name_each_change(tmp_path: Path) -> None:
    node = Node(tmp_path, samples.KATA_DEFAULT)
    node.present(set_default=True)
    containerd = f'plugins."{samples.V3}".containerd'
    assert node.absent().reasons == [
        f"remove {containerd}.runtimes.nvidia",
        f"restore {containerd}.default_runtime_name",
    ]
