# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd import (
    ContainerdPlan,
    Owned,
    Request,
    plan,
)
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.schema import Release
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.shims import is_nvidia, is_runc_type
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.trees import MISSING, get, same
from ansible_collections.gpu.kubernetes.plugins.module_utils._toml import loads
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes import samples
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._runtimes.samples import V2, V3

BINARY = "/usr/bin/nvidia-container-runtime"
RUNC: dict[str, t.Any] = {"runtime_type": "io.containerd.runc.v2"}
KATA: dict[str, t.Any] = {"runtime_type": "io.containerd.kata.v2", "options": {"ConfigPath": "/opt/kata.toml"}}


def tree_of(version: int, runtimes: dict[str, t.Any], **containerd: t.Any) -> dict[str, t.Any]:
    plugin = V2 if version == 2 else V3
    return {"version": version, "plugins": {plugin: {"containerd": {**containerd, "runtimes": runtimes}}}}


def decide(tree: dict[str, t.Any], release: str = "", **asked: t.Any) -> ContainerdPlan:
    known = Release(*map(int, release.split("."))) if release else None
    before = copy.deepcopy(tree)
    result = plan(tree, Request(path="/etc/c.toml", release=known, **asked))
    assert same(tree, before), "the input was changed"
    again = plan(result.target, Request(path="/etc/c.toml", release=known, **asked))
    assert same(again.target, result.target), "the second run changes something"
    return result


def runtime(result: ContainerdPlan, name: str = "nvidia") -> t.Any:
    return get(result.target, (*result.schema.runtimes, name))


def default(result: ContainerdPlan) -> t.Any:
    return get(result.target, (*result.schema.containerd, "default_runtime_name"))


class TestInheritance:
    @pytest.mark.parametrize(
        ("runtimes", "default_name", "expected"),
        [
            pytest.param({}, None, {**RUNC, "options": {"BinaryName": BINARY}}, id="nothing to inherit"),
            pytest.param(
                {"runc": {**RUNC, "options": {"SystemdCgroup": True}}},
                None,
                {**RUNC, "options": {"BinaryName": BINARY, "SystemdCgroup": True}},
                id="runc",
            ),
            pytest.param(
                {"runc": {**RUNC, "options": {"SystemdCgroup": False}}},
                None,
                {**RUNC, "options": {"BinaryName": BINARY, "SystemdCgroup": False}},
                id="an explicit false",
            ),
            pytest.param(
                {"runc": {**RUNC, "base_runtime_spec": "/b.json", "snapshotter": "x", "pod_annotations": ["a"]}},
                None,
                {
                    **RUNC,
                    "base_runtime_spec": "/b.json",
                    "snapshotter": "x",
                    "pod_annotations": ["a"],
                    "options": {"BinaryName": BINARY},
                },
                id="other settings",
            ),
            pytest.param(
                {
                    "runc": {
                        **RUNC,
                        "runtime_root": "/r",
                        "runtime_engine": "/e",
                        "base_runtime_spec": "",
                        "cni_max_conf_num": 0,
                        "pod_annotations": [],
                        "privileged_without_host_devices": False,
                        "options": {"BinaryName": "/usr/bin/runc", "IoGid": 0, "Root": ""},
                    }
                },
                None,
                {**RUNC, "options": {"BinaryName": BINARY}},
                id="neither what is empty nor runtime_root and runtime_engine",
            ),
            pytest.param(
                {"kata": KATA, "crun": {**RUNC, "options": {"BinaryName": "/usr/bin/crun", "SystemdCgroup": True}}},
                "kata",
                {**RUNC, "options": {"BinaryName": BINARY, "SystemdCgroup": True}},
                id="crun, not kata which is the default",
            ),
            pytest.param(
                {"runc": RUNC, "crun": {**RUNC, "base_runtime_spec": "/crun.json"}},
                "crun",
                {**RUNC, "base_runtime_spec": "/crun.json", "options": {"BinaryName": BINARY}},
                id="the default if it is of runc's type",
            ),
            pytest.param({"kata": KATA}, "kata", {**RUNC, "options": {"BinaryName": BINARY}}, id="kata only"),
            pytest.param(
                {"gvisor": {**RUNC, "pod_annotations": ["g"], "options": {"BinaryName": "/usr/bin/runsc"}}},
                "gvisor",
                {**RUNC, "options": {"BinaryName": BINARY}},
                id="gVisor in runc's clothes",
            ),
            pytest.param(
                {"nvidia-legacy": {**RUNC, "pod_annotations": ["n"], "options": {"BinaryName": BINARY + ".legacy"}}},
                "nvidia-legacy",
                {**RUNC, "options": {"BinaryName": BINARY}},
                id="not from another NVIDIA runtime",
            ),
            pytest.param(
                {"runc": {"runtime_type": "io.containerd.runtime.v1.linux", "runtime_engine": "x", "snapshotter": "y"}},
                None,
                {**RUNC, "options": {"BinaryName": BINARY}},
                id="not from a shim that is gone",
            ),
        ],
    )
    def test_new_runtime(
        self, runtimes: dict[str, t.Any], default_name: str | None, expected: dict[str, t.Any]
    ) -> None:
        named = {} if default_name is None else {"default_runtime_name": default_name}
        for version in (2, 3, 4):
            result = decide(tree_of(version, runtimes, **named))
            assert runtime(result) == expected
            assert default(result) == (default_name or MISSING)

    def test_site_options_stay_and_gaps_are_filled(self) -> None:
        mine = {**RUNC, "pod_annotations": ["site"], "options": {"BinaryName": "/old", "NoNewKeyring": True}}
        runc = {**RUNC, "pod_annotations": ["runc"], "snapshotter": "x", "options": {"SystemdCgroup": True}}
        assert runtime(decide(tree_of(3, {"runc": runc, "nvidia": mine}))) == {
            **RUNC,
            "pod_annotations": ["site"],
            "snapshotter": "x",
            "options": {"BinaryName": BINARY, "NoNewKeyring": True, "SystemdCgroup": True},
        }

    def test_kata_type_of_an_existing_runtime_is_kept_with_a_warning(self) -> None:
        result = decide(tree_of(3, {"runc": RUNC, "nvidia": KATA}))
        assert runtime(result)["runtime_type"] == "io.containerd.kata.v2"
        assert any("io.containerd.kata.v2" in warning for warning in result.warnings)

    def test_imported_runc_is_a_source(self) -> None:
        imported = {"runtimes": {"runc": {**RUNC, "options": {"SystemdCgroup": True}}}}
        result = plan(tree_of(3, {}), Request(path="/c"), imported=imported)
        assert runtime(result)["options"]["SystemdCgroup"] is True
        assert runtime(result, "runc") is MISSING

    def test_what_was_inherited_follows_its_source(self) -> None:
        path = ("plugins", V3, "containerd", "runtimes", "nvidia")
        before = tree_of(
            3,
            {
                "runc": {**RUNC, "options": {"SystemdCgroup": True}},
                "nvidia": {**RUNC, "snapshotter": "old", "options": {"BinaryName": BINARY, "SystemdCgroup": False}},
            },
        )
        owned: dict[tuple[str, ...], Owned] = {
            (*path, "snapshotter"): Owned("inherit", MISSING),
            (*path, "options", "SystemdCgroup"): Owned("inherit", MISSING),
        }
        result = plan(before, Request(path="/c"), owned)
        assert runtime(result) == {**RUNC, "options": {"BinaryName": BINARY, "SystemdCgroup": True}}


class TestName:
    @pytest.mark.parametrize("name", ["nvidia", "nvidia-cdi", "n", "0", "x" * 63])
    def test_accepted(self, name: str) -> None:
        assert runtime(decide(tree_of(3, {}), runtime_name=name), name)

    @pytest.mark.parametrize(
        "name", ["", "nvidia\n", "a\nb", "../x", "a/b", "a.b", ".", "-a", "a-", "NVIDIA", "a b", "x" * 64]
    )
    def test_refused(self, name: str) -> None:
        with pytest.raises(ConfigError, match="cannot be the handler of a RuntimeClass") as caught:
            Request(path="/c", runtime_name=name)
        assert "\n" not in str(caught.value)


class TestRuncWithoutType:
    """containerd 2 completes it to runc v2, whatever version the file has; containerd 1.x does not."""

    RUNTIMES: t.ClassVar[dict[str, t.Any]] = {"runc": {"snapshotter": "x", "options": {"SystemdCgroup": True}}}

    @pytest.mark.parametrize(("version", "release"), [(3, "2.1"), (3, ""), (4, "2.4"), (2, "2.1")])
    def test_is_inherited_from(self, version: int, release: str) -> None:
        result = decide(tree_of(version, self.RUNTIMES), release)
        expected = {**RUNC, "snapshotter": "x", "options": {"BinaryName": BINARY, "SystemdCgroup": True}}
        assert runtime(result) == expected
        assert runtime(result, "runc") == self.RUNTIMES["runc"], "it is not ours to complete"
        assert result.warnings == []

    @pytest.mark.parametrize(("version", "release"), [(2, "1.7"), (2, "")])
    def test_not_on_1_x(self, version: int, release: str) -> None:
        assert runtime(decide(tree_of(version, self.RUNTIMES), release)) == {**RUNC, "options": {"BinaryName": BINARY}}

    def test_empty_type_is_none(self) -> None:
        result = decide(tree_of(3, {"runc": {**self.RUNTIMES["runc"], "runtime_type": ""}}), "2.1")
        assert runtime(result) == {**RUNC, "options": {"BinaryName": BINARY}}

    def test_its_cgroup_driver_is_set(self) -> None:
        result = decide(tree_of(3, self.RUNTIMES), "2.1", systemd_cgroup=False)
        assert runtime(result, "runc")["options"] == {"SystemdCgroup": False}
        assert runtime(result)["options"]["SystemdCgroup"] is False

    def test_it_has_to_agree_with_the_others(self) -> None:
        nvidia = {**RUNC, "options": {"BinaryName": BINARY, "SystemdCgroup": False}}
        result = decide(tree_of(3, {**self.RUNTIMES, "nvidia": nvidia}), "2.1")
        assert any("true: runc; others: nvidia" in warning for warning in result.warnings)


class TestRunc:
    @pytest.mark.parametrize("runtimes", [{}, {"kata": KATA}])
    def test_version_2_gets_runc(self, runtimes: dict[str, t.Any]) -> None:
        assert runtime(decide(tree_of(2, runtimes)), "runc") == RUNC

    @pytest.mark.parametrize("version", [3, 4, 5])
    def test_newer_versions_have_it_built_in(self, version: int) -> None:
        assert runtime(decide(tree_of(version, {})), "runc") is MISSING


class TestDefault:
    @pytest.mark.parametrize(
        ("now", "asked", "expected"),
        [
            (None, None, None),
            ("crun", None, "crun"),
            ("nvidia", None, "nvidia"),
            (None, True, "nvidia"),
            ("crun", True, "nvidia"),
            ("crun", False, "crun"),
            ("nvidia", False, "runc"),
            (None, False, None),
        ],
    )
    def test_three_values(self, now: str | None, asked: bool | None, expected: str | None) -> None:
        named = {} if now is None else {"default_runtime_name": now}
        result = decide(tree_of(3, {"runc": RUNC, "crun": RUNC}, **named), set_default=asked)
        assert default(result) == (expected or MISSING)

    @pytest.mark.parametrize(
        ("before", "expected"), [("crun", "crun"), (MISSING, MISSING), ("gone", "runc"), ("nvidia", "runc")]
    )
    def test_false_puts_back_what_was_there(self, before: t.Any, expected: t.Any) -> None:
        tree = tree_of(3, {"runc": RUNC, "crun": RUNC, "nvidia": RUNC}, default_runtime_name="nvidia")
        owned: dict[tuple[str, ...], Owned] = {
            ("plugins", V3, "containerd", "default_runtime_name"): Owned("default", before)
        }
        assert default(plan(tree, Request(path="/c", set_default=False), owned)) == expected


class TestCdi:
    @pytest.mark.parametrize(
        ("version", "now", "asked", "expected"),
        [
            (2, MISSING, None, MISSING),
            (2, MISSING, True, True),
            (2, MISSING, False, MISSING),
            (2, False, True, True),
            (2, True, False, False),
            (3, MISSING, True, MISSING),
            (3, MISSING, False, False),
            (3, False, True, True),
            (3, False, None, False),
        ],
    )
    def test_only_when_asked_and_not_in_vain(self, version: int, now: t.Any, asked: t.Any, expected: t.Any) -> None:
        tree = tree_of(version, {"runc": RUNC})
        plugin = tree["plugins"][V2 if version == 2 else V3]
        if now is not MISSING:
            plugin["enable_cdi"] = now
        result = decide(tree, enable_cdi=asked)
        assert get(result.target, ("plugins", result.schema.cri, "enable_cdi")) is expected

    def test_gone_in_2_4(self) -> None:
        assert any("enable_cdi" in w for w in decide(tree_of(3, {"runc": RUNC}), "2.4", enable_cdi=False).warnings)


class TestCgroupDriver:
    def test_all_of_runcs_type_and_no_others(self) -> None:
        runtimes = {"runc": {**RUNC, "options": {"SystemdCgroup": False}}, "crun": RUNC, "kata": KATA}
        result = decide(tree_of(3, runtimes), systemd_cgroup=True)
        drivers = {name: get(runtime(result, name), ("options", "SystemdCgroup")) for name in (*runtimes, "nvidia")}
        assert drivers == {"runc": True, "crun": True, "kata": MISSING, "nvidia": True}

    def test_runc_is_written_where_it_is_only_built_in(self) -> None:
        result = decide(tree_of(3, {}), systemd_cgroup=True)
        assert runtime(result, "runc") == {**RUNC, "options": {"SystemdCgroup": True}}

    def test_false_takes_true_back_but_adds_nothing(self) -> None:
        result = decide(
            tree_of(3, {"runc": {**RUNC, "options": {"SystemdCgroup": True}}, "crun": RUNC}), systemd_cgroup=False
        )
        assert runtime(result, "runc")["options"] == {"SystemdCgroup": False}
        assert runtime(result, "crun") == RUNC
        assert runtime(result)["options"] == {"BinaryName": BINARY, "SystemdCgroup": False}
        assert runtime(decide(tree_of(3, {}), systemd_cgroup=False), "runc") is MISSING

    @pytest.mark.parametrize(
        ("runtimes", "words"),
        [
            ({"runc": RUNC}, "uses cgroupfs"),
            ({"runc": {**RUNC, "options": {"SystemdCgroup": True}}}, None),
            ({"runc": {**RUNC, "options": {"SystemdCgroup": False}}}, None),
            (
                {
                    "runc": {**RUNC, "options": {"SystemdCgroup": True}},
                    "nvidia": {**RUNC, "options": {"SystemdCgroup": False}},
                },
                r"true: runc; others: nvidia",
            ),
        ],
    )
    def test_doubts(self, runtimes: dict[str, t.Any], words: str | None) -> None:
        warnings = decide(tree_of(3, runtimes)).warnings
        assert (len(warnings) == 1 and words in warnings[0]) if words else not warnings


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
            ({}, "", "set containerd_version"),
            ({"disabled_plugins": ["cri"]}, "", "set containerd_version"),
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
    def test_refused_with_the_remedy(self, tree: dict[str, t.Any], release: str, words: str) -> None:
        with pytest.raises(ConfigError, match=words) as caught:
            decide(tree, release)
        assert str(caught.value).startswith("/etc/c.toml")
        assert str(caught.value).endswith(".")

    @pytest.mark.parametrize(("release", "version"), [("1.6", 2), ("1.7", 2), ("2.0", 3), ("2.4", 3)])
    def test_new_file(self, release: str, version: int) -> None:
        result = decide({}, release)
        assert result.target["version"] == version
        assert list(result.target) == ["version", "plugins"]

    def test_settings_without_a_version_that_mean_the_same_everywhere_are_kept(self) -> None:
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
    def test_deep_merge(self) -> None:
        settings = {"plugins": {V3: {"x": 1, "containerd": {"runtimes": {"runc": {"snapshotter": "s"}}}}}, "debug": {}}
        result = decide(tree_of(3, {"runc": RUNC}), settings=settings)
        assert get(result.target, ("plugins", V3, "x")) == 1
        assert result.target["debug"] == {}
        assert runtime(result, "runc") == {**RUNC, "snapshotter": "s"}
        assert runtime(result)["snapshotter"] == "s", "settings come first, so that they are inherited"
        assert result.kinds["plugins", V3, "x"] == "settings"

    def test_options_of_the_module_win(self) -> None:
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
    def test_refused(self, settings: dict[str, t.Any], words: str) -> None:
        with pytest.raises(ConfigError, match=words):
            decide({**tree_of(3, {"runc": RUNC}), "root": "/data"}, settings=settings)


@pytest.mark.parametrize("name", samples.FILES)
@pytest.mark.parametrize("asked", [{}, {"set_default": True, "systemd_cgroup": True, "enable_cdi": True}])
def test_every_sample_keeps_what_it_had(name: str, asked: dict[str, t.Any]) -> None:
    text, release = samples.FILES[name]
    tree = loads(text.replace("\r\n", "\n"))
    result = decide(tree, release, **asked)
    assert runtime(result)["options"]["BinaryName"] == BINARY
    assert "runtime_root" not in runtime(result)
    assert "runtime_engine" not in runtime(result)
    ours = {"version", "disabled_plugins", "default_runtime_name", "SystemdCgroup", "enable_cdi"}
    for path in _paths(tree):
        if path[-1] not in ours:
            assert same(get(result.target, path), get(tree, path)), path


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


def test_section_of_version_2_in_a_version_3_file_is_a_doubt() -> None:
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
def test_types(table: dict[str, t.Any], runc: bool, nvidia: bool) -> None:
    assert is_runc_type(table) is runc
    assert is_nvidia(table) is nvidia


def _paths(tree: dict[str, t.Any], prefix: tuple[str, ...] = ()) -> t.Iterator[tuple[str, ...]]:
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            yield from _paths(value, (*prefix, key))
        elif value != {}:
            yield (*prefix, key)
