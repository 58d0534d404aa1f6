# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt itself answers, about packages that are nowhere installed."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import transaction
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.apt_preferences import preferring
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.managers import MANAGERS
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.patience import Runner
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request

pytestmark = pytest.mark.skipif(not shutil.which("apt-get"), reason="there is no apt")

#: What is installed, each with its relations; those that came for others are auto.
PACKAGES = {
    "make": "",
    "dkms": "Depends: make, dpkg-dev, patch, helper",
    "tar": "Suggests: bzip2",
    "mailer": "Recommends: helper",
}
AUTO = {
    "dpkg-dev": "Depends: make, bzip2",
    "bzip2": "Depends: libbz2",
    "libbz2": "",
    "patch": "",
    "helper": "",
    "orphan": "Depends: patch",
}
COMPANY = frozenset({"dpkg-dev", "bzip2", "libbz2", "patch", "helper"})


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """Run commands of apt on a host that has these packages."""
    entry = (
        "Package: {}\nStatus: install ok installed\nArchitecture: all\nVersion: 1-1\nMaintainer: x\nDescription: x\n{}"
    )
    texts = [
        entry.format(name, f"{relations}\n" if relations else "") for name, relations in {**PACKAGES, **AUTO}.items()
    ]
    (tmp_path / "status").write_text("\n".join(texts))
    states = (f"Package: {name}\nArchitecture: all\nAuto-Installed: 1\n" for name in AUTO)
    (tmp_path / "extended_states").write_text("\n".join(states))
    (tmp_path / "lists").mkdir()
    # Without the options of this host: where it is a container, suggestions may not count anyway.
    places = {"State::status": "status", "State::extended_states": "extended_states", "State::Lists": "lists"}
    lines = [f'Dir::{key} "{tmp_path / value}";' for key, value in {**places, "Etc": "etc", "Cache": "cache"}.items()]
    lines += ['Dir::Etc::Parts "parts";', 'Debug::NoLocking "true";', 'APT::Sandbox::User "root";']
    (tmp_path / "apt.conf").write_text("\n".join(lines))
    environment = {**os.environ, "APT_CONFIG": str(tmp_path / "apt.conf"), "LC_ALL": "C.UTF-8"}

    def run_apt(command: Sequence[str]) -> tuple[int, str, str]:
        if "install" in command:
            command = [*command, "--simulate"]
        # The lists are this host's own.
        harmless = "--simulate" in command or command[1].startswith(("show", "madison")) or command[-1] == "update"
        assert harmless, "nothing of this may change anything"
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    return run_apt


def removed(run: Runner, tmp_path: Path, *names: str) -> None:
    """Have packages gone."""
    texts = (tmp_path / "status").read_text().split("\n\n")
    (tmp_path / "status").write_text("\n\n".join(text for text in texts if text.split("\n")[0].split()[1] not in names))


def test_company_goes_with_what_it_depends_on(run: Runner, tmp_path: Path) -> None:
    there: dict[str, str | None] = dict.fromkeys([*PACKAGES, *AUTO], "1-1")
    request = Request(("dkms", "make"), present=False, company=COMPANY)
    _before, gone, _way = transaction.apply("apt", request, there.copy, run, check_mode=True)
    assert gone == ("dkms", "make", "dpkg-dev")
    states = tmp_path / "extended_states"
    states.write_text(states.read_text().replace("Package: dpkg-dev", "Package: dpkg"))
    with pytest.raises(PackageError, match=r"^Cannot remove dkms and make, because dpkg-dev would have to go too"):
        transaction.apply("apt", request, there.copy, run, check_mode=True)


def test_what_is_only_suggested_goes_and_what_is_recommended_stays(run: Runner, tmp_path: Path) -> None:
    removed(run, tmp_path, "dkms", "make", "dpkg-dev")
    chosen = MANAGERS["apt"]
    unneeded = set(chosen.unneeded_names(run(chosen.unneeded)[1]))
    assert unneeded == {"bzip2", "libbz2", "patch", "orphan"}


def test_what_somebodys_orphan_needs_stays_with_it(run: Runner, tmp_path: Path) -> None:
    removed(run, tmp_path, "dkms", "make", "dpkg-dev")
    assert transaction.removable("apt", ["bzip2", "libbz2", "patch"], run) == ("bzip2", "libbz2")


OFFERED = """Package: {}
Architecture: all
Version: 2-1
Maintainer: x
Description: x
Filename: ./x.deb
Size: 1
SHA256: 0000000000000000000000000000000000000000000000000000000000000000
{}"""


def offer(tmp_path: Path, former: str = "", **packages: str) -> None:
    """Have a repository with the version 2-1 of packages with these relations, and *former* stanzas."""
    (tmp_path / "repository").mkdir()
    texts = [OFFERED.format(name, relations) for name, relations in packages.items()]
    (tmp_path / "repository" / "Packages").write_text("\n".join([*texts, former]))
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "sources.list").write_text(f"deb [trusted=yes] file:{tmp_path}/repository ./\n")


@pytest.fixture
def held(run: Runner, tmp_path: Path) -> Runner:
    """The same with a hold on helper, and newer packages in a repository, of which dkms needs the newer helper."""
    status = tmp_path / "status"
    status.write_text(status.read_text().replace("Package: helper\nStatus: install", "Package: helper\nStatus: hold"))
    offer(tmp_path, dkms="Depends: helper (= 2-1)\n", helper="")
    return run


@pytest.mark.parametrize("names", [("dkms",), ("dkms", "helper")])
def test_somebodys_hold_is_named_and_kept(held: Runner, names: tuple[str, ...]) -> None:
    """Also if packages of ours are on hold, and if the one that is held is none that was asked for."""
    there: dict[str, str | None] = {"dkms": "1-1", "helper": "1-1"}
    request = Request(names, version="2-1", own_holds=frozenset({"dkms"}))
    with pytest.raises(PackageError, match=r"^Cannot change helper, .* let it go \(apt-mark unhold helper\)"):
        transaction.apply("apt", request, there.copy, held)


def test_a_hold_of_our_own_is_no_hindrance_to_a_rehearsal(held: Runner) -> None:
    there: dict[str, str | None] = {"helper": "1-1", "dkms": "1-1", "mailer": "1-1"}
    own = Request(("dkms", "helper"), present=False, own_holds=frozenset({"helper"}))
    assert transaction.apply("apt", own, there.copy, held, check_mode=True)[1] == ("dkms", "helper")
    with pytest.raises(PackageError, match=r"^Cannot change helper, because somebody"):
        transaction.apply("apt", Request(("dkms", "helper"), present=False), there.copy, held, check_mode=True)


def test_what_others_have_installed_is_not_removed_for_an_installation(run: Runner, tmp_path: Path) -> None:
    """What an earlier request brought is, as the parts of a driver of another branch are."""
    offer(tmp_path, driver="Conflicts: mailer, orphan\nDepends: libdriver\n", libdriver="Conflicts: patch\n")
    there: dict[str, str | None] = {"driver": None}
    refused = r"^Cannot install driver, because {} would be removed for it: remove"
    request = Request(("driver",))
    with pytest.raises(PackageError, match=refused.format("dkms, mailer, orphan and patch")):
        transaction.apply("apt", request, there.copy, run)
    request = replace(request, own=frozenset({"dkms"}), company=frozenset({"patch", "orphan"}))
    with pytest.raises(PackageError, match=refused.format("mailer")):
        transaction.apply("apt", request, there.copy, run, check_mode=True)
    with pytest.raises(PackageError, match=refused.format("mailer")):
        transaction.available("apt", request, there.copy, run)
    request = replace(request, own=frozenset({"dkms", "mailer"}))
    # An earlier request's make way for it, and are told.
    assert transaction.apply("apt", request, there.copy, run, check_mode=True)[1:] == (("driver",), ("dkms", "mailer"))
    # Somebody has asked for it since.
    states = tmp_path / "extended_states"
    states.write_text(states.read_text().replace("Package: orphan", "Package: other"))
    with pytest.raises(PackageError, match=refused.format("orphan")):
        transaction.apply("apt", request, there.copy, run, check_mode=True)


@pytest.mark.parametrize("check_mode", [False, True])
def test_what_parts_depend_on_comes_in_the_version_that_was_found_for_them(
    run: Runner, tmp_path: Path, check_mode: bool
) -> None:
    """apt would take the newest of it, also because the branch is pinned, and fail."""
    depends = "Depends: common (= {})\n"
    former = {"libs": depends.format("1.1-1"), "common": "", "fabric": ""}
    texts = [OFFERED.format(*each).replace("Version: 2-1", "Version: 1.1-1") for each in former.items()]
    newer = [OFFERED.format(*each).replace("Version: 2-1", "Version: 1.2-1") for each in [("common", "")]]
    newer.append(OFFERED.format("libs", depends.format("1.2-1")).replace("Version: 2-1", "Version: 1.2-1"))
    offer(tmp_path, "\n".join([*texts, *newer]))
    pins = tmp_path / "etc" / "preferences.d"
    pins.mkdir()
    (pins / "branch").write_text("Package: libs common fabric\nPin: version 1.*\nPin-Priority: 1001\n")
    calls: list[Sequence[str]] = []
    installed: dict[str, str | None] = {"libs": None, "fabric": None}

    def watched(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(command)
        status, output, errors = run(command)
        if "install" in command and "--simulate" not in command:
            assert "Inst common (1.1-1 " in output, errors
            installed.update(libs="1.1-1", fabric="1.1-1")
        return status, output, errors

    run(["apt-get", "update"])
    transaction.apply("apt", Request(("libs", "fabric"), version="1.*"), installed.copy, watched, check_mode)
    assert calls[-1][-2:] == ["libs=1.1-*", "fabric=1.1-*"]


def test_preferences_of_the_host_count_meanwhile(tmp_path: Path) -> None:
    own = tmp_path / "preferences"
    own.write_text("Package: theirs\nPin: version 7-*\nPin-Priority: 990\n")
    with preferring(Request(("libs",), version="1.1"), str(own)) as asked:
        file = Path(str(asked.preferences))
        ours, theirs = file.read_text().split("\n\n")
    assert ours == "Package: /./\nPin: version 1.1-*\nPin-Priority: 1002"
    assert theirs == own.read_text()
    assert not file.exists()
    with preferring(Request(("libs",), version="1.1-3"), str(tmp_path / "none")) as asked:
        assert "Pin: version 1.1-3\n" in Path(str(asked.preferences)).read_text()


def test_preferences_that_cannot_be_had_are_no_traceback(tmp_path: Path) -> None:
    words = rf"^Cannot have apt prefer 1\.1 \(.*{tmp_path}.*\): "
    with pytest.raises(PackageError, match=words), preferring(Request(("libs",), version="1.1"), str(tmp_path)):
        pytest.fail("a folder was read")
