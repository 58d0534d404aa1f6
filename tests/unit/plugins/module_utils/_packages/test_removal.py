# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removals, and the packages that they include or reject."""

from __future__ import annotations

import re
from typing import Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import transaction
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.managers import MANAGERS as ALL_MANAGERS
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._packages.host import Host

NAMES = ("toolkit", "base")
MANAGERS = sorted(ALL_MANAGERS)


@pytest.mark.parametrize("manager", MANAGERS)
def test_removal_of_installed_package_follows_simulation(manager: str) -> None:
    host = Host(manager, base="1.0")
    word = {"apt": "purge", "pacman": "--nosave"}.get(manager, "remove")
    host.effects[word] = {"base": None}
    assert host.apply(Request(NAMES, present=False), check_mode=True) == ("base",)
    simulated = len(host.calls)
    host.installed["base"] = "1.0"
    assert host.apply(Request(NAMES, present=False)) == ("base",)
    assert [bool(re.search("--simulate|--test|--print|showhold|versionlock|locks", call)) for call in host.calls] == [
        *[True] * simulated * 2,
        False,
    ]
    assert all("toolkit" not in call for call in host.calls)


APT_SIMULATION = """The following packages will be REMOVED:
  base* toolkit* docker-gpu*
Purg docker-gpu [2.0-1]
Purg toolkit [1.0-1]
Purg base [1.0-1]
"""
RPM_TEST = """error: Failed dependencies:
\tbase = 1.0-1 is needed by (installed) docker-gpu-2.0-1.x86_64
"""
PACMAN_PRINT = """error: failed to prepare transaction (could not satisfy dependencies)
:: removing base breaks dependency 'base=1.0' required by docker-gpu
"""
SIMULATIONS = [
    ("apt", "--simulate", (0, APT_SIMULATION, "")),
    ("dnf", "rpm --erase --test", (1, "", RPM_TEST)),
    ("zypper", "rpm --erase --test", (1, "", RPM_TEST)),
    ("pacman", "--print", (1, "", PACMAN_PRINT)),
]


@pytest.mark.parametrize(("manager", "words", "answer"), SIMULATIONS)
@pytest.mark.parametrize("check_mode", [False, True])
def test_removal_with_other_dependents_is_rejected(
    manager: str, words: str, answer: tuple[int, str, str], check_mode: bool
) -> None:
    host = Host(manager, toolkit="1.0-1", base="1.0-1")
    host.answer(words, answer)
    with pytest.raises(PackageError) as caught:
        host.apply(Request(NAMES, present=False), check_mode)
    assert str(caught.value) == (
        "Cannot remove toolkit and base, because docker-gpu would be removed too: "
        "remove the packages that need it first, or keep it installed"
    )
    assert words in host.calls[-1]


def test_rejection_names_all_dependents() -> None:
    host = Host("apt", base="1.0-1")
    host.answer("--simulate", (0, APT_SIMULATION + "Remv zoo [1]\n", ""))
    with pytest.raises(PackageError, match="because docker-gpu, toolkit and zoo would be removed too"):
        host.apply(Request(("base",), present=False))


REMOVAL = Request(NAMES, present=False, dependencies=frozenset({"docker-gpu", "other"}))


@pytest.mark.parametrize(("manager", "words", "answer"), SIMULATIONS)
@pytest.mark.parametrize("check_mode", [False, True])
def test_removal_includes_dependent_dependencies(
    manager: str, words: str, answer: tuple[int, str, str], check_mode: bool
) -> None:
    """Such as dpkg-dev, a dependency of dkms that depends on make."""
    host = Host(manager, toolkit="1.0-1", base="1.0-1", **{"docker-gpu": "2.0-1", "other": "1-1"})
    host.answer(words, answer, (0, "", ""))
    word = {"apt": "purge", "pacman": "--nosave"}.get(manager, "remove")
    host.effects[word] = {"toolkit": None, "base": None, "docker-gpu": None}
    assert host.apply(REMOVAL, check_mode) == (*NAMES, "docker-gpu")
    assert [call for call in host.calls if words in call][-1].endswith(" toolkit base docker-gpu")
    if not check_mode:
        assert host.calls[-1].endswith(" toolkit base docker-gpu")


def test_removal_of_indirect_dependents() -> None:
    """rpm reports only direct dependents."""
    further = "error: Failed dependencies:\n\tdocker-gpu is needed by (installed) {}-1-1.noarch\n"
    for name, fails in (("other", False), ("unmanaged", True)):
        host = Host("dnf", toolkit="1.0-1", base="1.0-1")
        host.answer("rpm --erase --test", (1, "", RPM_TEST), (1, "", further.format(name)), (0, "", ""))
        if fails:
            with pytest.raises(PackageError, match="base and docker-gpu, because unmanaged would be removed too"):
                host.apply(REMOVAL, check_mode=True)
        else:
            assert host.apply(REMOVAL, check_mode=True) == (*NAMES, "docker-gpu", "other")


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    ("manager", "words", "answer"),
    [
        ("apt", "showmanual", "docker-gpu\n"),
        ("apt", "showhold", "docker-gpu\n"),
        ("dnf", "--userinstalled", "docker-gpu\n"),
        ("dnf", "versionlock list", "docker-gpu-0:2.0-1.*\n"),
        ("zypper", "--installed-only", "i+ | @System | docker-gpu | 2.0-1 | x86_64\n"),
        ("pacman", "--explicit", "docker-gpu\n"),
    ],
)
def test_requested_or_held_dependency_prevents_removal(manager: str, words: str, answer: str, check_mode: bool) -> None:
    host = Host(manager, toolkit="1.0-1", base="1.0-1", **{"docker-gpu": "2.0-1"})
    host.answer(words, (0, answer, ""))
    [simulation] = [each[1:] for each in SIMULATIONS if each[0] == manager]
    host.answer(*simulation)
    with pytest.raises(PackageError, match="because docker-gpu would be removed too"):
        host.apply(REMOVAL, check_mode)


def test_find_removable_packages() -> None:
    """b is needed by a, d by the unmanaged x, and either e or f by y."""
    dependents = {"b": "a", "c": "d", "d": "x", "e f": "y", "f e": "y"}

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        requested = " ".join(command[command.index("--allmatches") + 1 :])
        names = {dependent for name, dependent in dependents.items() if name in requested} - set(requested.split())
        return int(bool(names)), "", "".join(f" is needed by (installed) {name}-1-1.noarch\n" for name in sorted(names))

    assert transaction.find_removable("dnf", ["a", "b"], run) == ("a", "b")
    assert transaction.find_removable("dnf", ["b"], run) == ()
    assert transaction.find_removable("dnf", ["a", "b", "c", "d"], run) == ("a", "b")
    assert transaction.find_removable("dnf", ["e", "f"], run) == ()
    assert transaction.find_removable("dnf", [], run) == ()


def test_removal_of_dependents_of_each_other() -> None:
    host = Host("apt", toolkit="1.0-1", base="1.0-1", **{"docker-gpu": "2.0-1"})
    host.answer("--simulate", (0, APT_SIMULATION, ""))
    host.effects["purge"] = {"toolkit": None, "base": None, "docker-gpu": None}
    assert len(host.apply(Request((*NAMES, "docker-gpu"), present=False))) == 3


def test_failed_simulation_raises() -> None:
    host = Host("apt", base="1.0-1")
    host.answer("--simulate", (100, "", "E: dpkg was interrupted, run dpkg --configure -a."))
    with pytest.raises(
        PackageError, match=r"^apt-get failed for base \(E: dpkg was interrupted, run .* -a\): "
    ) as caught:
        host.apply(Request(("base",), present=False))
    assert caught.value.details["stderr"] == "E: dpkg was interrupted, run dpkg --configure -a."
