# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._packages.host import ZYPPER_SEARCH, Host

# What apt 2.6 and dnf 4.14 say; dnf ends each line itself and adds the one it is told.
APT_MADISON = """   toolkit |   1.10.0-1 | http://repository.example.com/archive bookworm/main amd64 Packages
   toolkit |    1.2.0-1 | http://repository.example.com/archive bookworm/main amd64 Packages
      base |      2.0-1 | http://repository.example.com/archive bookworm/main amd64 Packages
"""
DNF_REPOQUERY = """toolkit 1.10.0-1

toolkit 1.2.0-1

base 2.0-1

"""
OFFERED = [("apt", "madison", APT_MADISON), ("dnf", "repoquery", DNF_REPOQUERY), ("zypper", "search", ZYPPER_SEARCH)]


@pytest.mark.parametrize(("manager", "words", "said"), OFFERED)
@pytest.mark.parametrize("version", ["1.10.0", "1.2.0-1", "1.*", None])
def test_what_is_offered_is_available(manager: str, words: str, said: str, version: str | None) -> None:
    host = Host(manager)
    host.answer(words, (0, said, ""))
    request = Request(("toolkit", "helper"), version=version, unversioned=frozenset({"helper"}))
    assert host.available(request) == ("toolkit", "helper")
    assert len(host.changing) == 1, "one question, and no refresh"
    assert host.changing[0].endswith(" toolkit")


@pytest.mark.parametrize(("manager", "words", "said"), OFFERED)
def test_what_is_not_offered_is_refused_after_a_refresh(manager: str, words: str, said: str) -> None:
    host = Host(manager)
    host.answer(words, (0, said, ""))
    with pytest.raises(PackageError, match=rf"^{manager} has no version 1\.1\.\* of toolkit and other: "):
        host.available(Request(("toolkit", "other"), version="1.1.*"))
    refreshes = [call for call in host.calls if call.endswith(("update", "makecache"))]
    assert len(refreshes) == (0 if manager == "zypper" else 1), "zypper refreshes by itself"
    assert not [call for call in host.calls if " install " in call]


@pytest.mark.parametrize(("manager", "words", "said"), OFFERED[:2])
def test_what_came_since_the_last_refresh_is_available(manager: str, words: str, said: str) -> None:
    host = Host(manager)
    host.answer(words, (0, "", ""), (0, said, ""))
    assert host.available(Request(("toolkit",), version="1.2.0")) == ("toolkit",)
    assert len(host.changing) == 3


def test_what_is_installed_may_be_offered_no_more() -> None:
    host = Host("apt", toolkit="1.1.0-1")
    host.answer("madison", (0, APT_MADISON, ""))
    with pytest.raises(PackageError, match=r"^apt has no version 1\.1\.0 of toolkit"):
        host.available(Request(("toolkit",), version="1.1.0"))
    host.installed["toolkit"] = "1.2.0-1"
    assert host.available(Request(("toolkit",), version="1.2.0")) == ()


def test_what_is_on_hold_cannot_be_had() -> None:
    host = Host("apt", toolkit="1.0-1")
    host.answer("apt-mark showhold", (0, "toolkit\n", ""))
    with pytest.raises(PackageError, match=r"^Cannot change toolkit, because somebody put a hold on it"):
        host.available(Request(("toolkit",), version="1.2.0"))


def test_pacman_is_not_asked() -> None:
    host = Host("pacman")
    assert host.available(Request(("toolkit", "base"))) == ("toolkit", "base")
    assert host.calls == []
