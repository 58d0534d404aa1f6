# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.tree import MISSING, get
from ansible_collections.gpu.kubernetes.plugins.module_utils._runtimes.containerd.plan import Managed, Request, plan
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
                id="no empty settings, runtime_root or runtime_engine",
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
                id="gVisor with runc's type",
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
                id="not from a removed shim",
            ),
        ],
    )
    def test_new_runtime_inherits_settings(
        self, runtimes: dict[str, t.Any], default_name: str | None, expected: dict[str, t.Any]
    ) -> None:
        named = {} if default_name is None else {"default_runtime_name": default_name}
        for version in (2, 3, 4):
            result = decide(tree_of(version, runtimes, **named))
            assert runtime(result) == expected
            assert default(result) == (default_name or MISSING)

    def test_site_options_are_kept_and_completed(self) -> None:
        own = {**RUNC, "pod_annotations": ["site"], "options": {"BinaryName": "/old", "NoNewKeyring": True}}
        runc = {**RUNC, "pod_annotations": ["runc"], "snapshotter": "x", "options": {"SystemdCgroup": True}}
        assert runtime(decide(tree_of(3, {"runc": runc, "nvidia": own}))) == {
            **RUNC,
            "pod_annotations": ["site"],
            "snapshotter": "x",
            "options": {"BinaryName": BINARY, "NoNewKeyring": True, "SystemdCgroup": True},
        }

    def test_kata_type_of_an_existing_runtime_is_kept_with_a_warning(self) -> None:
        result = decide(tree_of(3, {"runc": RUNC, "nvidia": KATA}))
        assert runtime(result)["runtime_type"] == "io.containerd.kata.v2"
        assert any("io.containerd.kata.v2" in warning for warning in result.warnings)

    def test_imported_runc_is_inherited(self) -> None:
        imported = {"runtimes": {"runc": {**RUNC, "options": {"SystemdCgroup": True}}}}
        result = plan(tree_of(3, {}), Request(path="/c"), imported=imported)
        assert runtime(result)["options"]["SystemdCgroup"] is True
        assert runtime(result, "runc") is MISSING

    def test_inherited_settings_follow_their_source(self) -> None:
        path = ("plugins", V3, "containerd", "runtimes", "nvidia")
        before = tree_of(
            3,
            {
                "runc": {**RUNC, "options": {"SystemdCgroup": True}},
                "nvidia": {**RUNC, "snapshotter": "old", "options": {"BinaryName": BINARY, "SystemdCgroup": False}},
            },
        )
        managed: dict[tuple[str, ...], Managed] = {
            (*path, "snapshotter"): Managed("inherit", MISSING),
            (*path, "options", "SystemdCgroup"): Managed("inherit", MISSING),
        }
        result = plan(before, Request(path="/c"), managed)
        assert runtime(result) == {**RUNC, "options": {"BinaryName": BINARY, "SystemdCgroup": True}}


class TestName:
    @pytest.mark.parametrize("name", ["nvidia", "nvidia-cdi", "n", "0", "x" * 63])
    def test_valid_name_is_accepted(self, name: str) -> None:
        assert runtime(decide(tree_of(3, {}), runtime_name=name), name)

    @pytest.mark.parametrize(
        "name", ["", "nvidia\n", "a\nb", "../x", "a/b", "a.b", ".", "-a", "a-", "NVIDIA", "a b", "x" * 64]
    )
    def test_invalid_name_is_refused(self, name: str) -> None:
        with pytest.raises(ConfigError, match="cannot be the handler of a RuntimeClass") as caught:
            Request(path="/c", runtime_name=name)
        assert "\n" not in str(caught.value)


class TestRuncWithoutType:
    """containerd 2 completes the type to runc v2 in each file version; containerd 1.x does not."""

    RUNTIMES: t.ClassVar[dict[str, t.Any]] = {"runc": {"snapshotter": "x", "options": {"SystemdCgroup": True}}}

    @pytest.mark.parametrize(("version", "release"), [(3, "2.1"), (3, ""), (4, "2.4"), (2, "2.1")])
    def test_it_is_inherited(self, version: int, release: str) -> None:
        result = decide(tree_of(version, self.RUNTIMES), release)
        expected = {**RUNC, "snapshotter": "x", "options": {"BinaryName": BINARY, "SystemdCgroup": True}}
        assert runtime(result) == expected
        assert runtime(result, "runc") == self.RUNTIMES["runc"], "the unmanaged runc is changed"
        assert result.warnings == []

    @pytest.mark.parametrize(("version", "release"), [(2, "1.7"), (2, "")])
    def test_it_is_not_inherited_on_1_x(self, version: int, release: str) -> None:
        assert runtime(decide(tree_of(version, self.RUNTIMES), release)) == {**RUNC, "options": {"BinaryName": BINARY}}

    def test_empty_type_is_not_runc(self) -> None:
        result = decide(tree_of(3, {"runc": {**self.RUNTIMES["runc"], "runtime_type": ""}}), "2.1")
        assert runtime(result) == {**RUNC, "options": {"BinaryName": BINARY}}

    def test_its_cgroup_driver_is_set(self) -> None:
        result = decide(tree_of(3, self.RUNTIMES), "2.1", systemd_cgroup=False)
        assert runtime(result, "runc")["options"] == {"SystemdCgroup": False}
        assert runtime(result)["options"]["SystemdCgroup"] is False

    def test_different_cgroup_driver_warns(self) -> None:
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
        ("now", "requested", "expected"),
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
    def test_set_default_of_each_value(self, now: str | None, requested: bool | None, expected: str | None) -> None:
        named = {} if now is None else {"default_runtime_name": now}
        result = decide(tree_of(3, {"runc": RUNC, "crun": RUNC}, **named), set_default=requested)
        assert default(result) == (expected or MISSING)

    @pytest.mark.parametrize(
        ("before", "expected"), [("crun", "crun"), (MISSING, MISSING), ("gone", "runc"), ("nvidia", "runc")]
    )
    def test_false_restores_the_former_default(self, before: t.Any, expected: t.Any) -> None:
        tree = tree_of(3, {"runc": RUNC, "crun": RUNC, "nvidia": RUNC}, default_runtime_name="nvidia")
        managed: dict[tuple[str, ...], Managed] = {
            ("plugins", V3, "containerd", "default_runtime_name"): Managed("default", before)
        }
        assert default(plan(tree, Request(path="/c", set_default=False), managed)) == expected


class TestCdi:
    @pytest.mark.parametrize(
        ("version", "now", "requested", "expected"),
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
    def test_enable_cdi_is_written_where_it_has_an_effect(
        self, version: int, now: t.Any, requested: t.Any, expected: t.Any
    ) -> None:
        tree = tree_of(version, {"runc": RUNC})
        plugin = tree["plugins"][V2 if version == 2 else V3]
        if now is not MISSING:
            plugin["enable_cdi"] = now
        result = decide(tree, enable_cdi=requested)
        assert get(result.target, ("plugins", result.schema.cri, "enable_cdi")) is expected

    def test_enable_cdi_on_2_4_warns(self) -> None:
        assert any("enable_cdi" in w for w in decide(tree_of(3, {"runc": RUNC}), "2.4", enable_cdi=False).warnings)


class TestCgroupDriver:
    def test_true_is_set_for_all_of_runcs_type(self) -> None:
        runtimes = {"runc": {**RUNC, "options": {"SystemdCgroup": False}}, "crun": RUNC, "kata": KATA}
        result = decide(tree_of(3, runtimes), systemd_cgroup=True)
        drivers = {name: get(runtime(result, name), ("options", "SystemdCgroup")) for name in (*runtimes, "nvidia")}
        assert drivers == {"runc": True, "crun": True, "kata": MISSING, "nvidia": True}

    def test_true_writes_the_built_in_runc(self) -> None:
        result = decide(tree_of(3, {}), systemd_cgroup=True)
        assert runtime(result, "runc") == {**RUNC, "options": {"SystemdCgroup": True}}

    def test_false_replaces_true_and_adds_nothing(self) -> None:
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
    def test_cgroup_drivers_warn(self, runtimes: dict[str, t.Any], words: str | None) -> None:
        warnings = decide(tree_of(3, runtimes)).warnings
        assert (len(warnings) == 1 and words in warnings[0]) if words else not warnings
