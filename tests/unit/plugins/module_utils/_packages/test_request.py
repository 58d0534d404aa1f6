# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import (
    Installed,
    PackageError,
    Request,
    common,
    pending,
)

NAMES = ("toolkit", "base")


@pytest.mark.parametrize(
    ("request_", "installed", "left"),
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
        # Parts of one branch have to have one version, of whatever revision.
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
def test_pending(request_: Request, installed: dict[str, str | None], left: tuple[str, ...]) -> None:
    assert pending(request_, installed) == left


@pytest.mark.parametrize(
    "name", ["", "-y", "--force-yes", "base-", "base+", "base=1", "base*", "base/sid", "./base.deb", "a b"]
)
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(PackageError, match=re.escape(repr(name))):
        Request((name,))


@pytest.mark.parametrize("version", ["", "-1", "1.17*", "1 --force", "1.0-", "=1"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(PackageError, match="is no version"):
        Request(("toolkit",), version=version)


def test_usual_names_and_versions_are_taken() -> None:
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
def test_the_newest_version_that_all_have(versions: list[str], newest: str | None) -> None:
    offers = [(name, f"{version}-{number}") for number, name in enumerate(NAMES) for version in versions]
    offers += [("toolkit", "999-1"), ("other", "1000-1")]
    assert common(Request(NAMES, same_version=True), offers, {"toolkit": None, "base": None}) == newest


@pytest.mark.parametrize(
    ("there", "version"),
    [
        ({"toolkit": "580.9.3-1", "base": "580.8.1-1"}, "580.9.3"),
        ({"toolkit": "580.9.4-1", "base": "580.8.1-1"}, "580.95.05"),
        ({"toolkit": "570.1-1", "base": None}, "590.1"),
        ({"toolkit": "1:580.9.3-2", "base": "580.95.05-1", "other": "590.1-1"}, "580.95.05"),
    ],
    ids=["one-of-these", "else-of-their-release", "else-the-newest", "the-newer-one"],
)
def test_packages_of_different_versions_go_no_further_than_they_have_to(there: Installed, version: str) -> None:
    offers = [(name, f"{offer}-1") for name in NAMES for offer in ("590.1", "580.9.3", "580.95.05")]
    assert common(Request(NAMES, same_version=True), offers, there) == version


def test_packages_of_different_versions_are_brought_to_the_one_that_most_have() -> None:
    names = ("libs", "tool", "fabric")
    offers = [(name, f"{offer}-1") for name in names for offer in ("580.9.3", "580.95.05")]
    there = {"libs": "580.9.3-1", "tool": "1:580.9.3-2", "fabric": "580.95.05-1"}
    assert common(Request(names, version="580.*"), offers, there) == "580.9.3"
