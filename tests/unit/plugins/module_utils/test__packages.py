# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils import _packages
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import PackageError, Request

NAMES = ("toolkit", "base")


@pytest.mark.parametrize(
    ("request_", "installed", "pending"),
    [
        (Request(NAMES), {}, NAMES),
        (Request(NAMES), {"toolkit": None, "base": "1.0-1"}, ("toolkit",)),
        (Request(NAMES), {"toolkit": "1.0-1", "base": "1.0-1"}, ()),
        (Request(("toolkit",), version="1.17.8"), {"toolkit": "1.17.8-1"}, ()),
        (Request(("toolkit",), version="1.17.8-1"), {"toolkit": "1.17.8-1"}, ()),
        (Request(("toolkit",), version="1.17.8"), {"toolkit": "1.17.80-1"}, ("toolkit",)),
        (Request(("toolkit",), version="1.17"), {"toolkit": "1.17.8-1"}, ("toolkit",)),
        (Request(NAMES, present=False), {"toolkit": "1.0-1", "base": None}, ("toolkit",)),
        (Request(NAMES, present=False), {}, ()),
    ],
)
def test_pending(request_: Request, installed: dict[str, str | None], pending: tuple[str, ...]) -> None:
    assert _packages.pending(request_, installed) == pending


@pytest.mark.parametrize("manager", sorted(_packages.MANAGERS))
def test_nothing_is_run_where_nothing_is_to_be_done(manager: str) -> None:
    assert _packages.commands(manager, Request(("toolkit",)), {"toolkit": "1"}) == []
    assert _packages.commands(manager, Request(("toolkit",), present=False), {}) == []


@pytest.mark.parametrize(
    ("manager", "last"),
    [("apt", "toolkit=1.2*"), ("dnf", "toolkit-1.2"), ("zypper", "toolkit=1.2")],
)
def test_a_version_is_asked_for_as_the_manager_writes_it(manager: str, last: str) -> None:
    assert _packages.commands(manager, Request(("toolkit",), version="1.2"), {})[-1][-1] == last


def test_pacman_has_no_choice_of_versions() -> None:
    with pytest.raises(PackageError, match="leave the version out"):
        _packages.commands("pacman", Request(("toolkit",), version="1.2"), {})


def test_apt_refreshes_its_own_repository_only() -> None:
    refresh, install = _packages.commands("apt", Request(("toolkit",), source="/etc/apt/x.sources"), {})
    assert refresh[-1] == "update"
    assert "Dir::Etc::sourcelist=/etc/apt/x.sources" in refresh
    assert "Dir::Etc::sourceparts=-" in refresh
    assert install[-2:] == ["install", "toolkit"]
    everything = _packages.commands("apt", Request(("toolkit",)), {})[0]
    assert not [word for word in everything if word.startswith("Dir::")]


@pytest.mark.parametrize("manager", sorted(_packages.MANAGERS))
def test_only_what_is_installed_is_removed(manager: str) -> None:
    (command,) = _packages.commands(manager, Request(NAMES, present=False), {"base": "1.0"})
    assert "base" in command
    assert "toolkit" not in command


@pytest.mark.parametrize(
    ("output", "errors", "words"),
    [
        ("", "", "no reason given"),
        (
            "Reading package lists...",
            "W: a warning\nE: Unable to locate package toolkit\n",
            "E: Unable to locate package toolkit",
        ),
        ("", "error: target not found: toolkit", "error: target not found: toolkit"),
        ("one\ntwo\nthree", "", "two three"),
    ],
)
def test_last_words(output: str, errors: str, words: str) -> None:
    assert _packages.last_words(output, errors) == words
