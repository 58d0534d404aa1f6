# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd import imports
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.imports import (
    Imported,
    check_other_section,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.plan import Request
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import Release, schema
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.node import NVIDIA_V3, Node
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.samples import V2, V3

if t.TYPE_CHECKING:
    from pathlib import Path

BINARY = "/usr/bin/nvidia-container-runtime"


def section(version: int, containerd: dict[str, t.Any], stated: int | None = None) -> Imported:
    tree: dict[str, t.Any] = {"plugins": {V2 if version == 2 else V3: {"containerd": containerd}}}
    return Imported("/etc/containerd/conf.d/x.toml", tree if stated is None else {"version": stated, **tree})


def nvidia(binary: str = BINARY) -> dict[str, t.Any]:
    return {"runtimes": {"nvidia": {"options": {"BinaryName": binary}}}}


class TestFiles:
    def load(self, path: str) -> dict[str, t.Any] | None:
        try:
            with open(path, encoding="utf-8") as stream:
                return loads(stream.read())
        except FileNotFoundError:
            return None

    def test_globs_relative_and_nested_in_order_and_once(self, tmp_path: Path) -> None:
        for name, text in {
            "c.d/b.toml": 'root = "b"\nimports = ["deep/*.toml", "../config.toml", "a.toml"]',
            "c.d/a.toml": 'root = "a"',
            "c.d/deep/z.toml": 'root = "z"',
            "c.d/readme": "no TOML",
            "one.toml": 'root = "1"',
        }.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        tree = {"imports": ["c.d/*.toml", str(tmp_path / "one.toml"), "missing.toml", 3]}
        found = imports.imported_files(str(tmp_path / "config.toml"), tree, self.load)
        assert [file.tree["root"] for file in found] == ["a", "b", "1", "z"]

    @pytest.mark.parametrize("value", [None, "c.d/*.toml", []])
    def test_no_imports(self, value: t.Any, tmp_path: Path) -> None:
        tree = {} if value is None else {"imports": value}
        assert imports.imported_files(str(tmp_path / "config.toml"), tree, self.load) == []

    def test_merge_section(self) -> None:
        one = section(3, {"default_runtime_name": "a", "runtimes": {"x": {"snapshotter": "1"}}})
        two = section(2, {"default_runtime_name": "b", "runtimes": {"x": {"runtime_type": "2"}}}, stated=2)
        assert imports.merge_section([one, two], schema(3)) == {
            "default_runtime_name": "b",
            "runtimes": {"x": {"snapshotter": "1", "runtime_type": "2"}},
        }

    def test_section_that_is_not_a_table_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "x.toml").write_text(f"plugins.'{V3}' = 1\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"/x\.toml: plugins.*has to be a table; correct it"):
            imports.imported_files(str(tmp_path / "config.toml"), {"imports": ["x.toml"]}, self.load)

    @pytest.mark.parametrize(
        ("release", "version", "is_read"), [("2.0", 3, False), ("2.2", 3, False), ("2.3", 3, True), ("", 3, True)]
    )
    @pytest.mark.parametrize("stated", [1, 2])
    def test_lower_version_is_read_since_2_3(self, release: str, version: int, stated: int, is_read: bool) -> None:
        known = Release(*map(int, release.split("."))) if release else None
        layout, file = schema(version), section(2 if stated == 2 else 3, {"snapshotter": "x"}, stated=stated)
        assert imports.merge_section([file], layout, known) == ({"snapshotter": "x"} if is_read else {})
        warnings = imports.check_imports([file], layout, Request(path="/c", release=known))
        assert bool(warnings) is not is_read
        assert all("bring both to one version" in warning and file.path in warning for warning in warnings)


@pytest.mark.parametrize(
    ("release", "version", "file", "requested", "problem", "warns"),
    [
        # containerd 1.x: the whole section is replaced
        ("1.7", 2, section(2, {"snapshotter": "x"}), {}, "replaces that of the importing file", 0),
        ("1.7", 2, section(2, nvidia()), {}, None, 1),
        ("1.7", 2, section(3, {"snapshotter": "x"}), {}, None, 0),
        ("1.7", 2, Imported("/x", {"plugins": {"io.containerd.gc.v1.scheduler": {}}}), {}, None, 0),
        ("", 2, section(2, {"snapshotter": "x"}), {}, None, 1),
        # containerd 2.x: leaf by leaf
        ("2.1", 3, section(3, {"snapshotter": "x"}), {}, None, 0),
        ("2.1", 3, section(3, nvidia()), {}, None, 1),
        ("2.1", 3, section(3, nvidia("/other")), {}, "BinaryName of runtime nvidia to /other", 0),
        ("", 3, section(3, nvidia("/other")), {}, "BinaryName", 0),
        ("2.1", 2, section(2, nvidia("/other")), {}, "BinaryName", 0),
        (
            "2.1",
            3,
            section(3, {"default_runtime_name": "crun"}),
            {"set_default": True},
            "default_runtime_name to crun",
            0,
        ),
        ("2.1", 3, section(3, {"default_runtime_name": "crun"}), {"set_default": False}, None, 0),
        ("2.1", 3, section(3, {"default_runtime_name": "nvidia"}), {"set_default": False}, "default_runtime_name", 0),
        ("2.1", 3, section(3, {"default_runtime_name": "nvidia"}), {"set_default": True}, None, 0),
        ("2.1", 3, section(3, {"default_runtime_name": "crun"}), {}, None, 0),
        # conflicting versions
        ("2.1", 2, section(3, {}, stated=3), {}, "bring both to one version", 0),
        ("2.3", 3, section(3, {}, stated=4), {}, "bring both to one version", 0),
        ("2.3", 4, section(3, {}, stated=3), {}, None, 0),
        # an ignored file overrides nothing
        ("2.1", 3, section(2, nvidia("/other"), stated=2), {}, None, 1),
        ("2.3", 3, section(2, nvidia("/other"), stated=2), {}, "BinaryName", 0),
    ],
)
def test_overriding_imports_are_refused_or_warn(
    release: str, version: int, file: Imported, requested: dict[str, t.Any], problem: str | None, warns: int
) -> None:
    known = Release(*map(int, release.split("."))) if release else None
    request = Request(path="/etc/containerd/config.toml", release=known, **requested)
    if problem:
        with pytest.raises(ConfigError, match=problem) as caught:
            imports.check_imports([file], schema(version), request)
        assert file.path in str(caught.value)
    else:
        assert len(imports.check_imports([file], schema(version), request)) == warns


@pytest.mark.parametrize(("release", "refused"), [("", True), ("1.7", False), ("2.1", True)])
def test_section_of_version_3_in_a_version_2_file(release: str, refused: bool) -> None:
    tree: dict[str, t.Any] = {"version": 2, "plugins": {}}
    tree["plugins"][V3] = {"containerd": {"default_runtime_name": "x"}}
    request = Request(path="/c", release=Release(*map(int, release.split("."))) if release else None)
    if refused:
        with pytest.raises(ConfigError, match="move them to " + V2.replace(".", r"\.")):
            check_other_section(tree, request)
    else:
        assert check_other_section(tree, request)
    assert check_other_section({"version": 3}, request) == []


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
