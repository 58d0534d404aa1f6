# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import (
    Installed,
    PackageError,
    Request,
    choose_common_version,
    find_pending,
)

NAMES = ("toolkit", "base")


@pytest.mark.parametrize(
    ("request_", "installed", "expected"),
    [
        (Request(NAMES), {}, NAMES),
        (Request(NAMES), {"toolkit": None, "base": "1.0-1"}, ("toolkit",)),
        (Request(NAMES), {"toolkit": "1.0-1", "base": "1.0-1"}, ()),
        (Request(("toolkit",), version="1.17.8"), {"toolkit": "1.17.8-1"}, ()),
        (Request(("toolkit",), version="1.17.8"), {"toolkit": "1.17.8"}, ()),
        (Request(("toolkit",), version="1.17.8-1"), {"toolkit": "1.17.8-1"}, ()),
        (Request(("toolkit",), version="1.17.8"), {"toolkit": "1.17.80-1"}, ("toolkit",)),
        (Request(("toolkit",), version="1.17"), {"toolkit": "1.17.8-1"}, ("toolkit",)),
        (Request(("toolkit",), version="1.17.8-1"), {"toolkit": "1.17.8-1-2"}, ("toolkit",)),
        (Request(("toolkit",), version="1.17.*"), {"toolkit": "1.17.8-1"}, ()),
        (Request(("toolkit",), version="1.1.*"), {"toolkit": "1.17.8-1"}, ("toolkit",)),
        (Request(NAMES, present=False), {"toolkit": "1.0-1", "base": None}, ("toolkit",)),
        (Request(NAMES, present=False), {}, ()),
        # Parts of one branch need one version; revisions may differ.
        (Request(NAMES, version="580.*"), {"toolkit": "580.1-1.el9", "base": "580.1-1"}, ()),
        (Request(NAMES, version="580.*"), {"toolkit": "580.1-1", "base": "580.2-1"}, NAMES),
        (Request(NAMES, version="580.*"), {"toolkit": "580.1-1", "base": None}, ("base",)),
        (Request(NAMES, same_version=True), {"toolkit": "580.1-1", "base": "590.1-1"}, NAMES),
        (Request(NAMES), {"toolkit": "580.1-1", "base": "590.1-1"}, ()),
        (
            Request(NAMES, version="580.*", unversioned=frozenset({"base"})),
            {"toolkit": "580.1-1", "base": "7-1"},
            (),
        ),
        (Request(NAMES, present=False, same_version=True), {"toolkit": "1-1", "base": "2-1"}, NAMES),
    ],
)
def test_find_pending(request_: Request, installed: dict[str, str | None], expected: tuple[str, ...]) -> None:
    assert find_pending(request_, installed) == expected


@pytest.mark.parametrize(
    "name", ["", "-y", "--force-yes", "base-", "base+", "base=1", "base*", "base/sid", "./base.deb", "a b"]
)
def test_invalid_name_is_rejected(name: str) -> None:
    with pytest.raises(PackageError, match=re.escape(repr(name))):
        Request((name,))


@pytest.mark.parametrize("version", ["", "-1", "1.17*", "1 --force", "1.0-", "=1"])
def test_invalid_version_is_rejected(version: str) -> None:
    with pytest.raises(PackageError, match="is not a package version"):
        Request(("toolkit",), version=version)


def test_valid_names_and_versions_are_accepted() -> None:
    for version in ("1.17.8", "1.17.8-1", "1:1.17.8~rc.1-0ubuntu1", "570.124.06^20250101+git"):
        Request(("nvidia-container-toolkit", "python3.11", "libfoo++1", "g++", "x"), version=version)


@pytest.mark.parametrize(
    ("versions", "newest"),
    [
        (["580.9.3", "580.126.09", "580.95.05"], "580.126.09"),
        (["1.18.0~rc.1", "1.17.8"], "1.18.0~rc.1"),
        (["1.18.0~rc.1", "1.18.0~rc.2", "1.18.0"], "1.18.0"),
        ([], None),
    ],
)
def test_choose_common_version_returns_newest(versions: list[str], newest: str | None) -> None:
    available = [(name, f"{version}-{number}") for number, name in enumerate(NAMES) for version in versions]
    available += [("toolkit", "999-1"), ("other", "1000-1")]
    assert (
        choose_common_version(Request(NAMES, same_version=True), available, {"toolkit": None, "base": None}) == newest
    )


@pytest.mark.parametrize(
    ("installed", "expected"),
    [
        ({"toolkit": "580.9.3-1", "base": "580.8.1-1"}, "580.9.3"),
        ({"toolkit": "580.9.4-1", "base": "580.8.1-1"}, "580.95.05"),
        ({"toolkit": "570.1-1", "base": None}, "590.1"),
        ({"toolkit": "1:580.9.3-2", "base": "580.95.05-1", "other": "590.1-1"}, "580.95.05"),
    ],
    ids=["installed", "newest of installed release", "newest", "newer installed"],
)
def test_choose_common_version_prefers_installed_version_and_release(installed: Installed, expected: str) -> None:
    available = [(name, f"{version}-1") for name in NAMES for version in ("590.1", "580.9.3", "580.95.05")]
    assert choose_common_version(Request(NAMES, same_version=True), available, installed) == expected


def test_choose_common_version_returns_most_frequent() -> None:
    names = ("libs", "tool", "fabric")
    available = [(name, f"{version}-1") for name in names for version in ("580.9.3", "580.95.05")]
    installed = {"libs": "580.9.3-1", "tool": "1:580.9.3-2", "fabric": "580.95.05-1"}
    assert choose_common_version(Request(names, version="580.*"), available, installed) == "580.9.3"
