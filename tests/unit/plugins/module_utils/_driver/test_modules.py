# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of kernel modules, and the plans for it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any, Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._driver import modules
from ansible_collections.gpu.kubernetes.plugins.module_utils._driver.modules import Desired, Loaded, ModulesError, State

TABLE = """\
nvidia_uvm 1556480 4 - Live 0x0000000000000000 (OE)
nvidia_drm 77824 0 - Live 0x0000000000000000 (OE)
nvidia_modeset 1306624 1 nvidia_drm, Live 0x0000000000000000 (OE)
nvidia 56717312 7 nvidia_uvm,nvidia_modeset, Live 0x0000000000000000 (OE)
ext4 1 1 [permanent], Live 0x0
odd 1 - - Live 0x0
"""
ALL = frozenset({"nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm"})
BOTH = ("nvidia", "nvidia_uvm")
NONE = State("6.1", installed=ALL, installed_version="570.2", installed_srcversion="BBB")
IDLE = {"nvidia": Loaded(1, ("nvidia_uvm",)), "nvidia_uvm": Loaded(0)}
SAME = replace(NONE, loaded=IDLE, version="570.2", srcversion="BBB", parameters={"EnableMSI": "1"})
OLD = replace(SAME, version="550.1", srcversion="AAA")
FLAVOR = replace(SAME, srcversion="AAA")
BARE = replace(OLD, loaded={"nvidia": Loaded(0)})
USER = {"pid": 7, "command": "python3", "container_id": None, "pod_uid": None}
USED = "python3 (pid 7) uses the GPUs"
OUTDATED = "the loaded kernel module is 550.1 and the installed one is 570.2"
BUILD = (
    "the loaded kernel module is another build of 570.2 than the installed one (srcversion AAA, and BBB is installed)"
)
NOUVEAU = "nouveau is loaded, and NVIDIA's module cannot be beside it"

# state, desired state, unload, load, reasons
PLANS: list[tuple[State, str, Sequence[str], Sequence[str], Sequence[str]]] = [
    (NONE, "current", [], BOTH, []),
    (NONE, "loaded", [], BOTH, []),
    (NONE, "absent", [], [], []),
    (SAME, "current", [], [], []),
    (SAME, "loaded", [], [], []),
    (SAME, "absent", ["nvidia_uvm", "nvidia"], [], []),
    (OLD, "current", ["nvidia_uvm", "nvidia"], BOTH, []),
    (OLD, "loaded", [], [], []),
    (FLAVOR, "current", ["nvidia_uvm", "nvidia"], BOTH, []),
    (replace(FLAVOR, srcversion=None), "current", [], [], []),
    (replace(FLAVOR, installed_srcversion=None), "current", [], [], []),
    (BARE, "loaded", ["nvidia"], BOTH, []),
    (replace(BARE, version="570.2", srcversion="BBB"), "loaded", [], ["nvidia_uvm"], []),
    (replace(SAME, users=[USER]), "current", [], [], []),
    (replace(SAME, users=[USER]), "absent", [], [], [USED]),
    (replace(OLD, users=[USER]), "current", [], [], [OUTDATED, USED]),
    (replace(FLAVOR, users=[USER]), "current", [], [], [BUILD, USED]),
    (replace(OLD, users=[USER]), "loaded", [], [], []),
    (replace(BARE, users=[USER]), "loaded", [], [], [OUTDATED, USED]),
    (replace(SAME, installed=frozenset(), installed_version=None), "loaded", [], [], []),
    (replace(NONE, nouveau=True), "current", [], [], [NOUVEAU]),
    (replace(NONE, nouveau=True), "absent", [], [], []),
    (replace(SAME, nouveau=True), "current", [], [], []),
    (replace(OLD, nouveau=True), "current", ["nvidia_uvm", "nvidia"], BOTH, []),
]


@pytest.mark.parametrize(("state", "desired", "unload", "load", "reasons"), PLANS)
def test_plan_reload_of_each_state(
    state: State, desired: str, unload: Sequence[str], load: Sequence[str], reasons: Sequence[str]
) -> None:
    plan = modules.plan_reload(state, Desired(desired, BOTH))
    assert (list(plan.unload), list(plan.load), list(plan.reasons)) == (list(unload), list(load), list(reasons))


def test_plan_reload_loads_nvidia_first() -> None:
    assert modules.plan_reload(NONE, Desired("current", ["nvidia_uvm"])).load == ["nvidia", "nvidia_uvm"]


def test_plan_reload_with_unknown_user_is_blocked() -> None:
    state = replace(OLD, loaded={**IDLE, "nvidia": Loaded(3, ("nvidia_uvm",))})
    plan = modules.plan_reload(state, Desired("current", BOTH))
    assert plan.unload == ()
    assert plan.reasons[1].startswith("nvidia is in use (by 2 that no process shows")


@pytest.mark.parametrize(
    ("state", "desired", "words"),
    [
        (
            replace(NONE, installed=frozenset()),
            "current",
            "No kernel module nvidia is installed for the running kernel 6.1",
        ),
        (replace(NONE, installed=frozenset()), "loaded", "install the headers of the running kernel (for 6.1)"),
        (
            replace(NONE, installed=frozenset()),
            "loaded",
            "the kernel's packages contain the modules, boot the newest inst",
        ),
        (replace(SAME, installed=frozenset()), "current", "No kernel module nvidia is"),
        (replace(NONE, installed=frozenset(), make_log="/var/make.log"), "current", "/var/make.log has the reason"),
        (replace(NONE, installed=frozenset({"nvidia"})), "current", "No kernel module nvidia_uvm is"),
    ],
)
def test_plan_reload_with_missing_module_raises(state: State, desired: str, words: str) -> None:
    with pytest.raises(ModulesError) as caught:
        modules.plan_reload(state, Desired(desired, BOTH))
    assert words in str(caught.value)


@pytest.mark.parametrize(("value", "reloads"), [(1, False), (0, True), ("0x1", False), (True, False), ("no", True)])
def test_plan_reload_with_differing_parameter_reloads(value: Any, reloads: bool) -> None:
    plan = modules.plan_reload(SAME, Desired("current", BOTH, {"NVreg_EnableMSI": value}))
    assert bool(plan.unload) is bool(plan.load) is reloads
    lenient = modules.plan_reload(SAME, Desired("loaded", BOTH, {"NVreg_EnableMSI": value}))
    assert [*lenient.unload, *lenient.load, *lenient.reasons] == []


def test_plan_reload_with_differing_parameter_in_use_is_blocked() -> None:
    plan = modules.plan_reload(replace(SAME, users=[USER]), Desired("current", BOTH, {"NVreg_EnableMSI": 0}))
    assert plan.reasons == ["the loaded kernel module has NVreg_EnableMSI = 1, and 0 is requested", USED]


@pytest.mark.parametrize(
    ("former", "desired", "reloads"), [("1", {}, True), ("0", {}, False), ("1", {"NVreg_EnableMSI": 1}, False)]
)
def test_plan_reload_with_removed_parameter_reloads(former: str, desired: dict[str, int], reloads: bool) -> None:
    requested = Desired("current", BOTH, desired, {"NVreg_EnableMSI": former, "NVreg_NotShown": "1"})
    assert bool(modules.plan_reload(SAME, requested).unload) is reloads
    busy = modules.plan_reload(replace(SAME, users=[USER]), requested)
    words = ["the loaded kernel module has NVreg_EnableMSI = 1, which is no longer requested", USED]
    assert list(busy.reasons) == (words if reloads else [])


def test_plan_reload_with_parameter_of_new_version_reloads() -> None:
    assert modules.plan_reload(OLD, Desired("current", BOTH, {"NVreg_New": 1})).load == list(BOTH)
    with pytest.raises(ModulesError, match="does not show its parameter NVreg_New"):
        modules.plan_reload(SAME, Desired("current", BOTH, {"NVreg_New": 1}))


@pytest.mark.parametrize(
    ("desired", "shown", "same"),
    [
        (-1, "4294967295", True),
        ("0666", "438", True),
        ("0", "0", True),
        (False, "0", True),
        ("a=1;b=2", "a=1;b=2", True),
        ("", "", True),
        ("08", "8", False),
        (2, "1", False),
    ],
)
def test_is_same_value_compares_as_the_driver(desired: Any, shown: str, same: bool) -> None:
    assert modules.is_same_value(desired, shown) is same


def test_parse_shown_parameters_removes_quotes() -> None:
    text = 'EnableMSI: 1\nRegistryDwords: "a=1;b=2"\nTemporaryFilePath: "/x:y"\nRmMsg: ""\nnothing\n'
    expected = {"EnableMSI": "1", "RegistryDwords": "a=1;b=2", "TemporaryFilePath": "/x:y", "RmMsg": ""}
    assert modules.parse_shown_parameters(text) == expected


def test_get_shown_name_of_renamed_parameter() -> None:
    assert modules.get_shown_name("NVreg_RestrictProfilingToAdminUsers") == "RmProfilingAdminOnly"
    assert modules.get_shown_name("NVreg_EnableMSI") == "EnableMSI"


def test_find_unload_order_lists_users_first(tmp_path: Path) -> None:
    assert modules.read_loaded_modules(str(tmp_path)) == {}
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/modules").write_text(TABLE)
    loaded = modules.read_loaded_modules(str(tmp_path))
    assert loaded["nvidia"] == Loaded(7, ("nvidia_uvm", "nvidia_modeset"))
    assert (loaded["ext4"], loaded["odd"]) == (Loaded(1), Loaded(0))
    assert modules.find_unload_order(loaded) == ["nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia"]
    assert modules.find_unload_order({}) == []


def test_read_state_of_each_file(tmp_path: Path) -> None:
    files = {
        "proc/modules": TABLE,
        "proc/driver/nvidia/params": "EnableMSI: 1\n",
        "sys/module/nvidia/version": "550.1\n",
        "sys/module/nvidia/srcversion": "AAA\n",
        "sys/module/nouveau/refcnt": "0\n",
        "var/lib/dkms/nvidia-fs/2.1/build/make.log": "",
        "var/lib/dkms/nvidia/560.1/build/make.log": "",
        "var/lib/dkms/nvidia/570.2/build/make.log": "",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    os.utime(tmp_path / "var/lib/dkms/nvidia/560.1/build/make.log", (1, 1))
    requested: list[str] = []

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        program, *_options, field, name = command
        if program == "modprobe":
            return 1, "", "not found"
        requested.append(name)
        result = {"filename": "/lib/x.ko", "version": "570.2", "srcversion": "BBB", "parm": "NVreg_EnableMSI:int\n"}
        return (0, f"{result[field]}\n", "") if name != "nvidia_drm" else (1, "", "not found")

    state = modules.read_state(str(tmp_path), "6.1", Desired("current", BOTH, {"NVreg_EnableMSI": 1}), run)
    assert state.installed == ALL - {"nvidia_drm"}
    assert (state.version, state.srcversion, state.parameters) == ("550.1", "AAA", {"EnableMSI": "1"})
    assert (state.installed_version, state.installed_srcversion) == ("570.2", "BBB")
    assert (state.known_parameters, state.nouveau, state.users) == ({"NVreg_EnableMSI"}, True, [])
    assert state.make_log == "/var/lib/dkms/nvidia/570.2/build/make.log"
    requested.clear()
    assert modules.read_state(str(tmp_path), "6.1", Desired("absent"), run).installed == frozenset()
    assert requested == []
