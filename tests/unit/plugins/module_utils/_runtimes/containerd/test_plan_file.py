# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration of containerd as a whole: its version, settings, and what every sample keeps."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.tree import get
from ansible_collections.gpu.kubernetes.plugins.module_utils._document import is_same
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.schema import is_nvidia, is_runc_type
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.containerd.decisions import (
    BINARY,
    KATA,
    RUNC,
    decide,
    default,
    runtime,
    tree_of,
)
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.samples import V2, V3


class TestVersion:
    @pytest.mark.parametrize(
        ("tree", "release", "words"),
        [
            ({"version": 1}, "1.7", "states configuration version 1"),
            ({"version": 0}, "1.7", "states configuration version 0"),
            ({"plugins": {"cri": {}}}, "1.7", "read as version 1"),
            ({"plugins": {V2: {}}}, "1.7", "read as version 1"),
            ({"version": "2"}, "1.7", "has to be an integer"),
            ({"version": True}, "1.7", "has to be an integer"),
            ({"version": 2.0}, "1.7", "has to be an integer"),
            ({"version": 3}, "1.7", "reads up to version 2"),
            ({"version": 4}, "2.2", "reads up to version 3"),
            ({"version": 5}, "2.4", "reads up to version 4"),
            ({}, "", "or, in a task of your own, set containerd_version"),
            ({"disabled_plugins": ["cri"]}, "", "or, in a task of your own, set containerd_version"),
            ({"disabled_plugins": ["restart"]}, "1.7", "names restart in disabled_plugins"),
            ({"version": 2, "disabled_plugins": "cri"}, "1.7", "has to be a list"),
            ({"version": 2, "plugins": 3}, "1.7", "plugins has to be a table"),
            (
                {"version": 3, "plugins": {V3: {"containerd": {"runtimes": []}}}},
                "2.1",
                "runtimes has to be a table",
            ),
            (tree_of(3, {"nvidia": {"options": 1}}), "2.1", "nvidia.options has to be a table"),
        ],
    )
    def test_invalid_file_is_refused_with_a_remedy(self, tree: dict[str, t.Any], release: str, words: str) -> None:
        with pytest.raises(ConfigError, match=words) as caught:
            decide(tree, release)
        assert str(caught.value).startswith("/etc/c.toml")
        assert str(caught.value).endswith(".")

    @pytest.mark.parametrize(("release", "version"), [("1.6", 2), ("1.7", 2), ("2.0", 3), ("2.4", 3)])
    def test_new_file_has_version_of_release(self, release: str, version: int) -> None:
        result = decide({}, release)
        assert result.target["version"] == version
        assert list(result.target) == ["version", "plugins"]

    def test_settings_without_a_version_are_kept(self) -> None:
        tree = {"root": "/data", "disabled_plugins": ["cri", "aufs", "io.containerd.x.v1.y"], "grpc": {"gid": 1}}
        result = decide(tree, "1.7")
        assert result.target["disabled_plugins"] == ["io.containerd.snapshotter.v1.aufs", "io.containerd.x.v1.y"]
        assert result.target["root"] == "/data"
        assert result.target["grpc"] == {"gid": 1}
        assert any("switched on" in warning for warning in result.warnings)

    @pytest.mark.parametrize("name", ["cri", V2, V3, "io.containerd.cri.v1.images"])
    def test_cri_is_switched_on(self, name: str) -> None:
        result = decide({**tree_of(3, {"runc": RUNC}), "disabled_plugins": [name, "io.containerd.a.v1.b"]})
        assert result.target["disabled_plugins"] == ["io.containerd.a.v1.b"]


class TestSettings:
    def test_settings_are_merged_deeply(self) -> None:
        settings = {"plugins": {V3: {"x": 1, "containerd": {"runtimes": {"runc": {"snapshotter": "s"}}}}}, "debug": {}}
        result = decide(tree_of(3, {"runc": RUNC}), settings=settings)
        assert get(result.target, ("plugins", V3, "x")) == 1
        assert result.target["debug"] == {}
        assert runtime(result, "runc") == {**RUNC, "snapshotter": "s"}
        assert runtime(result)["snapshotter"] == "s", "settings are not inherited"
        assert result.kinds["plugins", V3, "x"] == "settings"

    def test_options_override_settings(self) -> None:
        settings = {"plugins": {V3: {"containerd": {"default_runtime_name": "runc"}}}}
        assert default(decide(tree_of(3, {"runc": RUNC}), settings=settings, set_default=True)) == "nvidia"

    @pytest.mark.parametrize(
        ("settings", "words"),
        [
            ({"version": 3}, "version"),
            ({"a": {"b": None}}, "a.b is null"),
            ({"a": [1, None]}, "a is null"),
            ({"plugins": 1}, "plugins is a table"),
            ({"version_note": {"x": 1}, "root": {"x": 1}}, "root is a value in /etc/c.toml, not a table"),
        ],
    )
    def test_invalid_settings_are_refused(self, settings: dict[str, t.Any], words: str) -> None:
        with pytest.raises(ConfigError, match=words):
            decide({**tree_of(3, {"runc": RUNC}), "root": "/data"}, settings=settings)


@pytest.mark.parametrize("name", samples.FILES)
@pytest.mark.parametrize("requested", [{}, {"set_default": True, "systemd_cgroup": True, "enable_cdi": True}])
def test_each_sample_keeps_its_settings(name: str, requested: dict[str, t.Any]) -> None:
    text, release = samples.FILES[name]
    tree = loads(text.replace("\r\n", "\n"))
    result = decide(tree, release, **requested)
    assert runtime(result)["options"]["BinaryName"] == BINARY
    assert "runtime_root" not in runtime(result)
    assert "runtime_engine" not in runtime(result)
    managed = {"version", "disabled_plugins", "default_runtime_name", "SystemdCgroup", "enable_cdi"}
    for path in _paths(tree):
        if path[-1] not in managed:
            assert is_same(get(result.target, path), get(tree, path)), path


def test_reasons_and_kinds_name_what_changed() -> None:
    result = decide(tree_of(3, {"runc": {**RUNC, "options": {"SystemdCgroup": True}}}), set_default=True)
    path = ("plugins", V3, "containerd")
    assert {key[len(path) :]: kind for key, kind in result.kinds.items()} == {
        ("default_runtime_name",): "default",
        ("runtimes", "nvidia", "runtime_type"): "inherit",
        ("runtimes", "nvidia", "options", "BinaryName"): "runtime",
        ("runtimes", "nvidia", "options", "SystemdCgroup"): "inherit",
    }
    assert "make nvidia the default runtime" in result.reasons
    assert decide(result.target).reasons == []


def test_section_of_version_2_in_a_version_3_file_warns() -> None:
    tree = tree_of(3, {"runc": {**RUNC, "options": {"SystemdCgroup": True}}})
    tree["plugins"][V2] = {"containerd": {"snapshotter": "x"}}
    assert [w for w in decide(tree).warnings if "2.0 to 2.2 ignores" in w]


@pytest.mark.parametrize(
    ("table", "runc", "nvidia"),
    [
        (RUNC, True, False),
        ({**RUNC, "options": {"BinaryName": "/usr/bin/crun"}}, True, False),
        ({**RUNC, "options": {"BinaryName": "/opt/nvidia-container-runtime.cdi"}}, True, True),
        ({**RUNC, "options": {"BinaryName": "/usr/bin/kata-runtime"}}, False, False),
        (KATA, False, False),
        ({"runtime_type": ""}, False, False),
        ({}, False, False),
    ],
)
def test_types_of_runtimes(table: dict[str, t.Any], runc: bool, nvidia: bool) -> None:
    assert is_runc_type(table) is runc
    assert is_nvidia(table) is nvidia


def _paths(tree: dict[str, t.Any], prefix: tuple[str, ...] = ()) -> t.Iterator[tuple[str, ...]]:
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _paths(value, (*prefix, key))
        elif value != {}:
            yield (*prefix, key)
