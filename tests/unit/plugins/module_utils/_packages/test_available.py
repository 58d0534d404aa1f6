# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._packages.host import ZYPPER_SEARCH, Host

# Output of apt 2.6 and dnf 4.14; dnf adds a line end to the one in the format.
APT_MADISON = """   toolkit |   1.10.0-1 | http://repository.example.com/archive bookworm/main amd64 Packages
   toolkit |    1.2.0-1 | http://repository.example.com/archive bookworm/main amd64 Packages
      base |      2.0-1 | http://repository.example.com/archive bookworm/main amd64 Packages
"""
DNF_REPOQUERY = """toolkit 1.10.0-1

toolkit 1.2.0-1

base 2.0-1

"""
AVAILABLE = [("apt", "madison", APT_MADISON), ("dnf", "repoquery", DNF_REPOQUERY), ("zypper", "search", ZYPPER_SEARCH)]


@pytest.mark.parametrize(("manager", "words", "output"), AVAILABLE)
@pytest.mark.parametrize("version", ["1.10.0", "1.2.0-1", "1.*", None])
def test_available_version_needs_no_refresh(manager: str, words: str, output: str, version: str | None) -> None:
    host = Host(manager)
    host.answer(words, (0, output, ""))
    request = Request(("toolkit", "helper"), version=version, unversioned=frozenset({"helper"}))
    assert host.check_available(request) == ("toolkit", "helper")
    assert len(host.changing_calls) == 1, "one query, and no refresh"
    assert host.changing_calls[0].endswith(" toolkit")


@pytest.mark.parametrize(("manager", "words", "output"), AVAILABLE)
def test_missing_version_is_rejected_after_refresh(manager: str, words: str, output: str) -> None:
    host = Host(manager)
    host.answer(words, (0, output, ""))
    with pytest.raises(PackageError, match=rf"^{manager} has no version 1\.1\.\* of toolkit and other: "):
        host.check_available(Request(("toolkit", "other"), version="1.1.*"))
    refreshes = [call for call in host.calls if call.endswith(("update", "makecache"))]
    assert len(refreshes) == (0 if manager == "zypper" else 1), "zypper refreshes by itself"
    assert not [call for call in host.calls if " install " in call]


@pytest.mark.parametrize(("manager", "words", "output"), AVAILABLE[:2])
def test_version_after_refresh_is_available(manager: str, words: str, output: str) -> None:
    host = Host(manager)
    host.answer(words, (0, "", ""), (0, output, ""))
    assert host.check_available(Request(("toolkit",), version="1.2.0")) == ("toolkit",)
    assert len(host.changing_calls) == 3


def test_installed_version_has_to_be_available() -> None:
    host = Host("apt", toolkit="1.1.0-1")
    host.answer("madison", (0, APT_MADISON, ""))
    with pytest.raises(PackageError, match=r"^apt has no version 1\.1\.0 of toolkit"):
        host.check_available(Request(("toolkit",), version="1.1.0"))
    host.installed["toolkit"] = "1.2.0-1"
    assert host.check_available(Request(("toolkit",), version="1.2.0")) == ()


def test_unmanaged_hold_is_rejected() -> None:
    host = Host("apt", toolkit="1.0-1")
    host.answer("apt-mark showhold", (0, "toolkit\n", ""))
    with pytest.raises(PackageError, match=r"^Cannot change toolkit, because of an unmanaged hold"):
        host.check_available(Request(("toolkit",), version="1.2.0"))


def test_pacman_runs_no_command() -> None:
    host = Host("pacman")
    assert host.check_available(Request(("toolkit", "base"))) == ("toolkit", "base")
    assert host.calls == []
