# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._config.errors import ConfigError
from ansible_collections.gpu.kubernetes.plugins.module_utils._config.yaml_nodes import Plain
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet import configuration
from ansible_collections.gpu.kubernetes.plugins.module_utils._kubelet.command import Flag

LINES = (Path(__file__).parent / "fixtures" / "flags-1.34.4.txt").read_text().split()
SETTINGS = dict(zip(LINES[::2], LINES[1::2]))


def nested(path: str) -> t.Any:
    """Return values that hold something at a dotted path."""
    tree: t.Any = 1
    for key in reversed(path.split(".")):
        tree = {key: tree}
    return tree


def make_flags(**flags: str) -> list[Flag]:
    return [Flag(name.replace("_", "-"), value, "there") for name, value in flags.items()]


def test_each_flag_of_the_kubelet_overrides_its_setting() -> None:
    assert len(SETTINGS) == 99
    for flag, setting in SETTINGS.items():
        given = [Flag(flag, "X=true", "there")]
        overridden = nested(
            setting + (".X" if flag == "feature-gates" else "")
        )  # only gates that the flag names are overridden
        with pytest.raises(ConfigError, match=f"--{flag}=X=true "):
            configuration.refuse_overrides(overridden, given, {}, "file")
        for other in set(SETTINGS.values()) - {setting}:
            configuration.refuse_overrides(nested(other), given, {}, f"--{flag}, {other}")


@pytest.mark.parametrize(
    ("tree", "flags", "drop_ins", "expected"),
    [
        ({}, {}, {}, ({}, {}, configuration.DEFAULT_EVICTION_HARD)),
        ({"evictionHard": None, "kubeReserved": None}, {}, {}, ({}, {}, configuration.DEFAULT_EVICTION_HARD)),
        ({"evictionHard": {}}, {}, {}, ({}, {}, {})),
        (
            {"kubeReserved": {"cpu": Plain("500m")}, "evictionHard": {"memory.available": Plain("5%")}},
            {},
            {},
            ({"cpu": "500m"}, {}, {"memory.available": "5%"}),
        ),
        # drop-ins are merged one after the other, and null removes
        (
            {"kubeReserved": {"cpu": "1", "memory": "1Gi"}, "systemReserved": {"cpu": "1"}},
            {},
            {
                "1": {"kubeReserved": {"cpu": "2"}, "systemReserved": None},
                "2": {"kubeReserved": {"memory": None, "cpu": "3"}},
                "3": [],
            },
            ({"cpu": "3"}, {}, configuration.DEFAULT_EVICTION_HARD),
        ),
        # a flag replaces the whole setting, with all of its pairs
        (
            {"kubeReserved": {"cpu": "1", "memory": "1Gi"}},
            {"kube_reserved": "memory=2Gi, pid=5", "eviction_hard": "memory.available<1Gi,nodefs.available<5%"},
            {"1": {"kubeReserved": {"cpu": "2"}}},
            ({"memory": "2Gi", "pid": "5"}, {}, {"memory.available": "1Gi", "nodefs.available": "5%"}),
        ),
        (
            {
                "kubeReserved": {"cpu": "1"},
                "systemReserved": {"cpu": "1"},
                "reservedSystemCPUs": "0-3,8",
                "evictionHard": {},
            },
            {},
            {},
            ({}, {"cpu": "5"}, {}),
        ),
        ({"reservedSystemCPUs": "0", "evictionHard": {}}, {"reserved_cpus": "0,2-3"}, {}, ({}, {"cpu": "3"}, {})),
    ],
)
def test_effective_settings_of_file_flags_and_drop_ins(
    tree: t.Any, flags: t.Any, drop_ins: t.Any, expected: t.Any
) -> None:
    found = configuration.read_effective(tree, make_flags(**flags), drop_ins)
    assert (found["kubeReserved"], found["systemReserved"], found["evictionHard"]) == expected


def test_repeated_flag_has_both_values() -> None:
    flags = [Flag("kube-reserved", "memory=2Gi", "there"), Flag("kube-reserved", "pid=5", "there")]
    assert configuration.read_effective({}, flags, {})["kubeReserved"] == {"memory": "2Gi", "pid": "5"}


def test_last_drop_in_is_named() -> None:
    drop_ins = {"/d/1.conf": {"maxPods": 1}, "/d/2.conf": {"maxPods": 2}}
    with pytest.raises(ConfigError, match=r"^/d/2\.conf overrides"):
        configuration.refuse_overrides({"maxPods": 3}, [], drop_ins, "file")
