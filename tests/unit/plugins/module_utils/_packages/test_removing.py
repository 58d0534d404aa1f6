# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a removal takes with it, and what it leaves."""

from __future__ import annotations

import re
from typing import Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import transaction
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.managers import MANAGERS as KNOWN
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._packages.host import Host

NAMES = ("toolkit", "base")
MANAGERS = sorted(KNOWN)


@pytest.mark.parametrize("manager", MANAGERS)
def test_only_what_is_installed_is_removed_after_a_rehearsal(manager: str) -> None:
    host = Host(manager, base="1.0")
    removing = {"apt": "purge", "pacman": "--nosave"}.get(manager, "remove")
    host.makes[removing] = {"base": None}
    assert host.apply(Request(NAMES, present=False), check_mode=True) == ("base",)
    rehearsal = len(host.calls)
    host.installed["base"] = "1.0"
    assert host.apply(Request(NAMES, present=False)) == ("base",)
    assert [bool(re.search("--simulate|--test|--print|showhold|versionlock|locks", call)) for call in host.calls] == [
        *[True] * rehearsal * 2,
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
COMPANY = [
    ("apt", "--simulate", (0, APT_SIMULATION, "")),
    ("dnf", "rpm --erase --test", (1, "", RPM_TEST)),
    ("zypper", "rpm --erase --test", (1, "", RPM_TEST)),
    ("pacman", "--print", (1, "", PACMAN_PRINT)),
]


@pytest.mark.parametrize(("manager", "words", "answer"), COMPANY)
@pytest.mark.parametrize("check_mode", [False, True])
def test_nothing_is_removed_if_others_would_go_with_it(
    manager: str, words: str, answer: tuple[int, str, str], check_mode: bool
) -> None:
    host = Host(manager, toolkit="1.0-1", base="1.0-1")
    host.answer(words, answer)
    with pytest.raises(PackageError) as caught:
        host.apply(Request(NAMES, present=False), check_mode)
    assert str(caught.value) == (
        "Cannot remove toolkit and base, because docker-gpu would have to go too: "
        "remove what depends on it first, or leave it installed"
    )
    assert words in host.calls[-1]


def test_all_that_would_go_is_named() -> None:
    host = Host("apt", base="1.0-1")
    host.answer("--simulate", (0, APT_SIMULATION + "Remv zoo [1]\n", ""))
    with pytest.raises(PackageError, match="because docker-gpu, toolkit and zoo would have to go too"):
        host.apply(Request(("base",), present=False))


OF_OUR_COMPANY = Request(NAMES, present=False, company=frozenset({"docker-gpu", "other"}))


@pytest.mark.parametrize(("manager", "words", "answer"), COMPANY)
@pytest.mark.parametrize("check_mode", [False, True])
def test_what_came_with_the_packages_goes_with_them(
    manager: str, words: str, answer: tuple[int, str, str], check_mode: bool
) -> None:
    """As dpkg-dev, which comes with dkms and depends on make."""
    host = Host(manager, toolkit="1.0-1", base="1.0-1", **{"docker-gpu": "2.0-1", "other": "1-1"})
    host.answer(words, answer, (0, "", ""))
    removing = {"apt": "purge", "pacman": "--nosave"}.get(manager, "remove")
    host.makes[removing] = {"toolkit": None, "base": None, "docker-gpu": None}
    assert host.apply(OF_OUR_COMPANY, check_mode) == (*NAMES, "docker-gpu")
    assert [call for call in host.calls if words in call][-1].endswith(" toolkit base docker-gpu")
    if not check_mode:
        assert host.calls[-1].endswith(" toolkit base docker-gpu")


def test_what_depends_on_those_goes_with_them_or_stays_with_them() -> None:
    """rpm tells only what depends on the packages themselves."""
    further = "error: Failed dependencies:\n\tdocker-gpu is needed by (installed) {}-1-1.noarch\n"
    for name, fails in (("other", False), ("theirs", True)):
        host = Host("dnf", toolkit="1.0-1", base="1.0-1")
        host.answer("rpm --erase --test", (1, "", RPM_TEST), (1, "", further.format(name)), (0, "", ""))
        if fails:
            with pytest.raises(PackageError, match="base and docker-gpu, because theirs would have to go too"):
                host.apply(OF_OUR_COMPANY, check_mode=True)
        else:
            assert host.apply(OF_OUR_COMPANY, check_mode=True) == (*NAMES, "docker-gpu", "other")


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
def test_what_came_with_the_packages_and_somebody_wants_by_now_keeps_them(
    manager: str, words: str, answer: str, check_mode: bool
) -> None:
    host = Host(manager, toolkit="1.0-1", base="1.0-1", **{"docker-gpu": "2.0-1"})
    host.answer(words, (0, answer, ""))
    [rehearsal] = [each[1:] for each in COMPANY if each[0] == manager]
    host.answer(*rehearsal)
    with pytest.raises(PackageError, match="because docker-gpu would have to go too"):
        host.apply(OF_OUR_COMPANY, check_mode)


def test_what_goes_alone_and_together() -> None:
    """Of packages that nothing needs, b is needed by a, and d by somebody's x; either e or f is needed by y."""
    needed = {"b": "a", "c": "d", "d": "x", "e f": "y", "f e": "y"}

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        asked = " ".join(command[command.index("--allmatches") + 1 :])
        names = {who for name, who in needed.items() if name in asked} - set(asked.split())
        return int(bool(names)), "", "".join(f" is needed by (installed) {name}-1-1.noarch\n" for name in sorted(names))

    assert transaction.removable("dnf", ["a", "b"], run) == ("a", "b")
    assert transaction.removable("dnf", ["b"], run) == ()
    assert transaction.removable("dnf", ["a", "b", "c", "d"], run) == ("a", "b")
    assert transaction.removable("dnf", ["e", "f"], run) == ()
    assert transaction.removable("dnf", [], run) == ()


def test_those_that_depend_on_each_other_go_together() -> None:
    host = Host("apt", toolkit="1.0-1", base="1.0-1", **{"docker-gpu": "2.0-1"})
    host.answer("--simulate", (0, APT_SIMULATION, ""))
    host.makes["purge"] = {"toolkit": None, "base": None, "docker-gpu": None}
    assert len(host.apply(Request((*NAMES, "docker-gpu"), present=False))) == 3


def test_a_rehearsal_that_fails_otherwise_ends_the_run() -> None:
    host = Host("apt", base="1.0-1")
    host.answer("--simulate", (100, "", "E: dpkg was interrupted, run dpkg --configure -a."))
    with pytest.raises(
        PackageError, match=r"^apt-get failed for base \(E: dpkg was interrupted, run .* -a\): "
    ) as caught:
        host.apply(Request(("base",), present=False))
    assert caught.value.details["stderr"] == "E: dpkg was interrupted, run dpkg --configure -a."
