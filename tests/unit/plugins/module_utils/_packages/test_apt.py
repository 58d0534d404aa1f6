# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real apt with a database of packages that do not exist."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import transaction
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.apt import prefer_version
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.managers import MANAGERS
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.runner import Runner

pytestmark = pytest.mark.skipif(not shutil.which("apt-get"), reason="apt is not installed")

#: Installed packages with their relations; AUTO has the automatically installed ones.
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
DEPENDENCIES = frozenset({"dpkg-dev", "bzip2", "libbz2", "patch", "helper"})


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    """Run commands of apt with these installed packages."""
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
    # Without the options of this host: in a container, suggestions may not count anyway.
    places = {"State::status": "status", "State::extended_states": "extended_states", "State::Lists": "lists"}
    lines = [f'Dir::{key} "{tmp_path / value}";' for key, value in {**places, "Etc": "etc", "Cache": "cache"}.items()]
    lines += ['Dir::Etc::Parts "parts";', 'Debug::NoLocking "true";', 'APT::Sandbox::User "root";']
    (tmp_path / "apt.conf").write_text("\n".join(lines))
    environment = {**os.environ, "APT_CONFIG": str(tmp_path / "apt.conf"), "LC_ALL": "C.UTF-8"}

    def run_apt(command: Sequence[str]) -> tuple[int, str, str]:
        if "install" in command:
            command = [*command, "--simulate"]
        # The lists are below tmp_path.
        harmless = "--simulate" in command or command[1].startswith(("show", "madison")) or command[-1] == "update"
        assert harmless, "the tests must not change the host"
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    return run_apt


def remove(run: Runner, tmp_path: Path, *names: str) -> None:
    """Remove packages from the database."""
    texts = (tmp_path / "status").read_text().split("\n\n")
    (tmp_path / "status").write_text("\n\n".join(text for text in texts if text.split("\n")[0].split()[1] not in names))


def test_removal_includes_dependent_dependencies(run: Runner, tmp_path: Path) -> None:
    installed: dict[str, str | None] = dict.fromkeys([*PACKAGES, *AUTO], "1-1")
    request = Request(("dkms", "make"), present=False, dependencies=DEPENDENCIES)
    _before, removed, _conflicting = transaction.apply("apt", request, installed.copy, run, check_mode=True)
    assert removed == ("dkms", "make", "dpkg-dev")
    states = tmp_path / "extended_states"
    states.write_text(states.read_text().replace("Package: dpkg-dev", "Package: dpkg"))
    with pytest.raises(PackageError, match=r"^Cannot remove dkms and make, because dpkg-dev would be removed too"):
        transaction.apply("apt", request, installed.copy, run, check_mode=True)


def test_suggested_package_is_unneeded_and_recommended_one_is_not(run: Runner, tmp_path: Path) -> None:
    remove(run, tmp_path, "dkms", "make", "dpkg-dev")
    commands = MANAGERS["apt"]
    unneeded = set(commands.parse_unneeded(run(commands.list_unneeded)[1]))
    assert unneeded == {"bzip2", "libbz2", "patch", "orphan"}


def test_find_removable_keeps_dependencies_of_unmanaged_orphan(run: Runner, tmp_path: Path) -> None:
    remove(run, tmp_path, "dkms", "make", "dpkg-dev")
    assert transaction.find_removable("apt", ["bzip2", "libbz2", "patch"], run) == ("bzip2", "libbz2")


AVAILABLE = """Package: {}
Architecture: all
Version: 2-1
Maintainer: x
Description: x
Filename: ./x.deb
Size: 1
SHA256: 0000000000000000000000000000000000000000000000000000000000000000
{}"""


def add_repository(tmp_path: Path, former: str = "", **packages: str) -> None:
    """Add a repository with version 2-1 of packages with these relations, and with *former* stanzas."""
    (tmp_path / "repository").mkdir()
    texts = [AVAILABLE.format(name, relations) for name, relations in packages.items()]
    (tmp_path / "repository" / "Packages").write_text("\n".join([*texts, former]))
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "sources.list").write_text(f"deb [trusted=yes] file:{tmp_path}/repository ./\n")


@pytest.fixture
def run_with_hold(run: Runner, tmp_path: Path) -> Runner:
    """The same with a hold on helper, and a repository in which dkms needs a newer helper."""
    status = tmp_path / "status"
    status.write_text(status.read_text().replace("Package: helper\nStatus: install", "Package: helper\nStatus: hold"))
    add_repository(tmp_path, dkms="Depends: helper (= 2-1)\n", helper="")
    return run


@pytest.mark.parametrize("names", [("dkms",), ("dkms", "helper")])
def test_install_with_unmanaged_hold_names_it(run_with_hold: Runner, names: tuple[str, ...]) -> None:
    """Also if the package on hold is not requested, and if managed holds exist."""
    installed: dict[str, str | None] = {"dkms": "1-1", "helper": "1-1"}
    request = Request(names, version="2-1", managed_holds=frozenset({"dkms"}))
    with pytest.raises(PackageError, match=r"^Cannot change helper, .* release it \(apt-mark unhold helper\)"):
        transaction.apply("apt", request, installed.copy, run_with_hold)


def test_check_mode_ignores_managed_hold_and_rejects_unmanaged_one(run_with_hold: Runner) -> None:
    installed: dict[str, str | None] = {"helper": "1-1", "dkms": "1-1", "mailer": "1-1"}
    managed = Request(("dkms", "helper"), present=False, managed_holds=frozenset({"helper"}))
    assert transaction.apply("apt", managed, installed.copy, run_with_hold, check_mode=True)[1] == ("dkms", "helper")
    with pytest.raises(PackageError, match=r"^Cannot change helper, because of an unmanaged hold"):
        transaction.apply(
            "apt", Request(("dkms", "helper"), present=False), installed.copy, run_with_hold, check_mode=True
        )


def test_install_removes_only_managed_conflicting_packages(run: Runner, tmp_path: Path) -> None:
    """Such as the parts of a driver of another branch."""
    add_repository(tmp_path, driver="Conflicts: mailer, orphan\nDepends: libdriver\n", libdriver="Conflicts: patch\n")
    installed: dict[str, str | None] = {"driver": None}
    message = r"^Cannot install driver, because {} would be removed for it: remove"
    request = Request(("driver",))
    with pytest.raises(PackageError, match=message.format("dkms, mailer, orphan and patch")):
        transaction.apply("apt", request, installed.copy, run)
    request = replace(request, managed=frozenset({"dkms"}), dependencies=frozenset({"patch", "orphan"}))
    with pytest.raises(PackageError, match=message.format("mailer")):
        transaction.apply("apt", request, installed.copy, run, check_mode=True)
    with pytest.raises(PackageError, match=message.format("mailer")):
        transaction.check_available("apt", request, installed.copy, run)
    request = replace(request, managed=frozenset({"dkms", "mailer"}))
    # Managed packages are removed and reported.
    assert transaction.apply("apt", request, installed.copy, run, check_mode=True)[1:] == (
        ("driver",),
        ("dkms", "mailer"),
    )
    # Someone requested it since.
    states = tmp_path / "extended_states"
    states.write_text(states.read_text().replace("Package: orphan", "Package: other"))
    with pytest.raises(PackageError, match=message.format("orphan")):
        transaction.apply("apt", request, installed.copy, run, check_mode=True)


@pytest.mark.parametrize("check_mode", [False, True])
def test_dependencies_get_the_chosen_version(run: Runner, tmp_path: Path, check_mode: bool) -> None:
    """apt would prefer their newest version, also because of the pin of the branch, and fail."""
    depends = "Depends: common (= {})\n"
    former = {"libs": depends.format("1.1-1"), "common": "", "fabric": ""}
    texts = [AVAILABLE.format(*each).replace("Version: 2-1", "Version: 1.1-1") for each in former.items()]
    newer = [AVAILABLE.format(*each).replace("Version: 2-1", "Version: 1.2-1") for each in [("common", "")]]
    newer.append(AVAILABLE.format("libs", depends.format("1.2-1")).replace("Version: 2-1", "Version: 1.2-1"))
    add_repository(tmp_path, "\n".join([*texts, *newer]))
    pins = tmp_path / "etc" / "preferences.d"
    pins.mkdir()
    (pins / "branch").write_text("Package: libs common fabric\nPin: version 1.*\nPin-Priority: 1001\n")
    calls: list[Sequence[str]] = []
    installed: dict[str, str | None] = {"libs": None, "fabric": None}

    def run_and_record(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(command)
        status, output, errors = run(command)
        if "install" in command and "--simulate" not in command:
            assert "Inst common (1.1-1 " in output, errors
            installed.update(libs="1.1-1", fabric="1.1-1")
        return status, output, errors

    run(["apt-get", "update"])
    transaction.apply("apt", Request(("libs", "fabric"), version="1.*"), installed.copy, run_and_record, check_mode)
    assert calls[-1][-2:] == ["libs=1.1-*", "fabric=1.1-*"]


def test_prefer_version_keeps_preferences_of_host(tmp_path: Path) -> None:
    host_preferences = tmp_path / "preferences"
    host_preferences.write_text("Package: other\nPin: version 7-*\nPin-Priority: 990\n")
    with prefer_version(Request(("libs",), version="1.1"), str(host_preferences)) as request:
        file = Path(str(request.preferences))
        managed, unmanaged = file.read_text().split("\n\n")
    assert managed == "Package: /./\nPin: version 1.1-*\nPin-Priority: 1002"
    assert unmanaged == host_preferences.read_text()
    assert not file.exists()
    with prefer_version(Request(("libs",), version="1.1-3"), str(tmp_path / "none")) as request:
        assert "Pin: version 1.1-3\n" in Path(str(request.preferences)).read_text()


def test_prefer_version_with_unreadable_preferences_raises(tmp_path: Path) -> None:
    words = rf"^Cannot write apt preferences for 1\.1 \(.*{tmp_path}.*\): "
    with pytest.raises(PackageError, match=words), prefer_version(Request(("libs",), version="1.1"), str(tmp_path)):
        pytest.fail("a folder was read")
