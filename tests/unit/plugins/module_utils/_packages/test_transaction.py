# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import patience, transaction
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.managers import MANAGERS as KNOWN
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._packages.host import (
    ZYPPER_SEARCH,
    Host,
    offered,
)

NAMES = ("toolkit", "base")
MANAGERS = sorted(KNOWN)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only pauses move."""
    now = [0.0]
    patient = patience.run_patiently

    def run_patiently(command: Sequence[str], run: patience.Runner) -> tuple[int, str, str]:
        return patient(command, run, lambda: now[0], lambda seconds: now.__setitem__(0, now[0] + seconds))

    monkeypatch.setattr(transaction, "run_patiently", run_patiently)
    return now


@pytest.mark.parametrize("manager", MANAGERS)
@pytest.mark.parametrize("check_mode", [False, True])
def test_nothing_is_run_where_nothing_is_to_be_done(manager: str, check_mode: bool) -> None:
    host = Host(manager, toolkit="1")
    assert host.apply(Request(("toolkit",)), check_mode) == ()
    assert host.apply(Request(("base",), present=False), check_mode) == ()
    assert host.calls == []


@pytest.mark.parametrize("manager", MANAGERS)
def test_check_mode_changes_nothing_and_needs_no_repository(manager: str) -> None:
    host = Host(manager)
    assert host.apply(Request(NAMES), check_mode=True) == NAMES
    assert host.changing == []


@pytest.mark.parametrize(
    ("manager", "version", "last"),
    [
        ("apt", "1.2", "toolkit=1.2-*"),
        ("apt", "1.2-1", "toolkit=1.2-1"),
        ("apt", "1.*", "toolkit=1.*"),
        ("dnf", "1.*", "toolkit-1.*"),
        ("dnf", "1.2", "toolkit-1.2"),
        ("zypper", "1.2", "toolkit=1.2"),
        ("zypper", "1.2-1", "toolkit=1.2-1"),
    ],
)
def test_a_version_is_asked_for_as_the_manager_writes_it(manager: str, version: str, last: str) -> None:
    host = Host(manager)
    host.makes[" install "] = {"toolkit": "1.2-1"}
    assert host.apply(Request(("toolkit",), version=version)) == ("toolkit",)
    assert host.calls[-1].split()[-1] == last


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    ("manager", "version", "words"),
    [
        ("pacman", "1.2", "leave the version out"),
        ("dnf", "1:1.2", "has an epoch"),
        ("zypper", "1.rc.*", "takes no versions like 1"),
    ],
)
def test_a_version_that_the_manager_cannot_give(manager: str, version: str, words: str, check_mode: bool) -> None:
    host = Host(manager)
    with pytest.raises(PackageError, match=words):
        host.apply(Request(("toolkit",), version=version), check_mode)
    assert host.calls == []


@pytest.mark.parametrize("version", [None, "1.*"])
@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    ("manager", "offer", "asked"),
    [
        ("apt", "1.2-1.el9", "base=1.2-1.el9"),
        ("apt", "1.2-1", "base=1.2-*"),
        ("dnf", "1.2-1.el9", "base-1.2-1.el9"),
        # as NVIDIA's fabric manager beside its libraries
        ("dnf", "1.2-1", "base-1.2"),
        ("zypper", "1.2-1.el9", "base=1.2-1.el9"),
        ("zypper", "1.2-1", "base=1.2"),
    ],
)
def test_what_joins_packages_that_stay_comes_in_their_version(
    manager: str, offer: str, asked: str, version: str | None, check_mode: bool
) -> None:
    """In that of the upstream where the packager's revision is another one."""
    host = Host(manager, toolkit="1.2-1.el9", other="9-1")
    host.answer(*offered(manager, ("base", "1.3-1.el9"), ("base", offer)))
    host.makes[" install "] = {"base": offer}
    request = Request(
        (*NAMES, "other"), version=version, unversioned=frozenset({"other"}), own=frozenset({"toolkit", "other"})
    )
    assert host.apply(request, check_mode) == ("base",)
    assert [call for call in host.calls if call.endswith(f" {asked}")] or (check_mode and manager != "apt")


@pytest.mark.parametrize("manager", ["apt", "dnf", "zypper"])
def test_what_joins_and_is_not_there_in_that_version_is_refused(manager: str) -> None:
    host = Host(manager, toolkit="1.2-1")
    host.answer(*offered(manager, ("base", "1.3-1")))
    with pytest.raises(PackageError, match=rf"^{manager} has no version 1\.2 of base: "):
        host.apply(Request(NAMES, own=frozenset({"toolkit"})))
    refreshes = [call for call in host.calls if call.endswith((" update", " makecache"))]
    assert len(refreshes) == (0 if manager == "zypper" else 1)
    assert not [call for call in host.changing if " install " in call]


@pytest.mark.parametrize("manager", ["apt", "dnf", "zypper"])
def test_what_joins_packages_that_have_versions_of_their_own_comes_as_it_is(manager: str) -> None:
    """As the components of one CUDA toolkit."""
    host = Host(manager, toolkit="1.2-1")
    host.answer(*offered(manager, ("base", "1.3-1")))
    host.makes[" install "] = {"base": "1.3-1"}
    assert host.apply(Request(NAMES, own=frozenset({"toolkit"}), same_version=False)) == ("base",)


#: The fabric manager has another source than the libraries, and other revisions.
PARTS = [("libs", "580.9.2-1.el9"), ("libs", "580.10.1-1.el9"), ("libs", "580.9.3-1.el9")]
PARTS += [("fabric", "580.9.1-1"), ("fabric", "580.9.3-1"), ("fabric", "580.9.3-2")]
PARTS += [("fabric", "590.1-1"), ("libs", "590.1-1.el9")]


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    ("request_", "upstream"),
    [
        (Request(("libs", "fabric"), version="580.*"), "580.9.3"),
        (Request(("libs", "fabric"), same_version=True), "590.1"),
        (Request(("libs", "fabric", "tool"), version="580.*", unversioned=frozenset({"tool"})), "580.9.3"),
    ],
)
@pytest.mark.parametrize(("manager", "asked"), [("apt", "={}-*"), ("dnf", "-{}"), ("zypper", "={}")])
def test_parts_of_one_branch_come_in_the_newest_version_that_all_have(
    manager: str, asked: str, request_: Request, upstream: str, check_mode: bool
) -> None:
    host = Host(manager)
    host.answer(*offered(manager, *PARTS))
    host.makes[" install "] = {"libs": f"{upstream}-1.el9", "fabric": f"{upstream}-2", "tool": "7-1"}
    assert host.apply(request_, check_mode) == request_.names
    if not check_mode:
        names = [name if name == "tool" else name + asked.format(upstream) for name in request_.names]
        assert host.changing[-1].endswith(" ".join(["", *names]))
        assert host.apply(request_) == ()


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("manager", ["apt", "dnf", "zypper"])
def test_parts_of_one_branch_that_do_not_fit_each_other_are_brought_to_one_version(
    manager: str, check_mode: bool
) -> None:
    host = Host(manager, libs="580.9.2-1.el9", fabric="580.9.3-1")
    host.answer(*offered(manager, *PARTS))
    host.makes[" install "] = {"libs": "580.9.3-1.el9"}
    request = Request(("libs", "fabric"), version="580.*")
    assert host.available(request) == ("libs",)
    assert host.apply(request, check_mode) == ("libs",)


@pytest.mark.parametrize(
    ("offers", "words"),
    [
        ([("libs", "580.2-1"), ("fabric", "580.1-1")], r"version 580\.\* that all of libs and fabric have: ask"),
        ([("libs", "580.2-1"), ("fabric", "570.1-1")], r"version 580\.\* of fabric: ask"),
    ],
)
@pytest.mark.parametrize("manager", ["apt", "dnf", "zypper"])
def test_parts_that_have_no_version_together_are_refused(
    manager: str, offers: list[tuple[str, str]], words: str
) -> None:
    host = Host(manager)
    host.answer(*offered(manager, *offers))
    request = Request(("libs", "fabric"), version="580.*")
    with pytest.raises(PackageError, match=f"^{manager} has no {words}"):
        host.available(request)
    with pytest.raises(PackageError, match=f"^{manager} has no {words}"):
        host.apply(request)
    assert not [call for call in host.changing if " install " in call]


def test_versions_without_a_revision_are_left_to_apt() -> None:
    """Of an upstream version alone it would be asked for every revision."""
    host = Host("apt")
    host.answer(*offered("apt", ("toolkit", "1.2"), ("base", "1.2")))
    host.makes[" install "] = {"toolkit": "1.2", "base": "1.2"}
    host.apply(Request(NAMES, version="1.*"))
    assert host.changing[-1].endswith(" toolkit=1.* base=1.*")


def test_zypper_agrees_to_the_licences_of_what_is_asked_for() -> None:
    """Where it may not ask, it installs nothing that has one, such as NVIDIA's."""
    for version in (None, "1.2", "1.*"):
        host = Host("zypper")
        host.answer(*offered("zypper", ("toolkit", "1.2-1")))
        host.makes[" install "] = {"toolkit": "1.2-1"}
        host.apply(Request(("toolkit",), version=version))
        assert host.calls[-1].startswith("zypper --non-interactive install --auto-agree-with-licenses ")


def test_packages_that_stay_in_several_versions_tell_nothing() -> None:
    host = Host("apt", toolkit="1.2-1", more="1.3-1")
    host.makes[" install "] = {"base": "1.4-1"}
    host.apply(Request((*NAMES, "more"), own=frozenset({"toolkit", "more"})))
    assert host.changing[-1].endswith(" base")


@pytest.mark.parametrize(
    ("request_", "makes", "words"),
    [
        (Request(("toolkit",)), {}, "toolkit is not installed .*version any"),
        (Request(("toolkit",), version="1.2"), {"toolkit": "1.3-1"}, "toolkit is 1.3-1 .*version 1.2.*repository"),
        (Request(("base",), present=False), {}, "base is 1.0-1 .*none"),
    ],
)
@pytest.mark.parametrize("manager", ["apt", "dnf", "zypper"])
def test_a_manager_that_says_that_all_is_well_is_not_believed(
    manager: str, request_: Request, makes: dict[str, str | None], words: str
) -> None:
    host = Host(manager, base="1.0-1")
    host.makes[" install "] = makes
    with pytest.raises(PackageError, match=words):
        host.apply(request_)


def test_apt_refreshes_its_own_repository_only() -> None:
    host = Host("apt")
    host.makes[" install "] = {"toolkit": "1.0-1"}
    host.apply(Request(("toolkit",), source="/etc/apt/x.sources"))
    refresh, install = host.changing
    assert refresh.endswith("APT::Get::List-Cleanup=0 update")
    assert "Dir::Etc::sourcelist=/etc/apt/x.sources" in refresh
    assert "Dir::Etc::sourceparts=-" in refresh
    assert install.endswith(" install toolkit")
    host.installed.clear()
    host.apply(Request(("toolkit",)))
    assert "Dir::" not in host.changing[2]


@pytest.mark.parametrize(
    "said",
    [
        "error: target not found: toolkit",
        "error: failed retrieving file 'toolkit-1.zst'",
        # what a refresh leaves behind that found a wrong signature
        "error: database 'stubs' is not valid (invalid or corrupted database (PGP signature))",
    ],
)
def test_pacman_refreshes_where_its_database_is_too_old(said: str) -> None:
    host = Host("pacman")
    host.answer("--needed", (1, "", said), (0, "", ""))
    host.makes["--needed"] = {"toolkit": "1.0-1"}
    host.apply(Request(("toolkit",)))
    assert [call.split()[2] for call in host.calls] == ["--noconfirm", "--refresh", "--noconfirm"]


def test_pacman_does_not_refresh_without_need() -> None:
    host = Host("pacman")
    host.makes["--needed"] = {"toolkit": "1.0-1"}
    host.apply(Request(("toolkit",)))
    host.answer("--needed", (1, "", "error: failed to commit transaction (conflicting files)"))
    with pytest.raises(PackageError, match="conflicting files"):
        host.apply(Request(("base",)))
    assert "--refresh" not in " ".join(host.calls)


@pytest.mark.parametrize(
    ("status", "fails"), [(0, False), (102, False), (103, False), (106, False), (104, True), (107, True), (8, True)]
)
def test_zypper_has_more_than_one_status_of_success(status: int, fails: bool) -> None:
    host = Host("zypper")
    host.answer(" install ", (status, "", "words"))

    def query() -> dict[str, str | None]:
        return {"toolkit": "1.0-1" if host.calls else None}

    request = Request(("toolkit",))
    if fails:
        with pytest.raises(PackageError, match=r"zypper failed for toolkit \(words\): "):
            transaction.apply("zypper", request, query, host.run)
    else:
        assert transaction.apply("zypper", request, query, host.run)[1] == ("toolkit",)


LOCKED = [
    ("apt", "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"),
    ("apt", "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (unattended-upgr)"),
    ("apt", "dpkg: error: dpkg frontend lock was locked by another process with pid 7"),
    ("dnf", "Metadata cache already locked by 7"),
    ("dnf", "Failed to obtain rpm transaction lock. Another transaction is in progress."),
    ("zypper", "System management is locked by the application with pid 7 (zypper)."),
    ("pacman", "error: failed to init transaction (unable to lock database)"),
]


@pytest.mark.parametrize(("manager", "said"), LOCKED)
def test_a_lock_is_waited_for(manager: str, said: str, clock: list[float]) -> None:
    host = Host(manager)
    words = " update" if manager == "apt" else "toolkit"
    host.answer(words, (1, "", said), (1, said, ""), (0, "", ""))
    host.makes["toolkit"] = {"toolkit": "1.0-1"}
    host.apply(Request(("toolkit",)))
    assert sum(words in call for call in host.calls) == 3
    assert clock[0] == 1.5


@pytest.mark.parametrize(("manager", "said"), LOCKED)
def test_a_lock_is_not_waited_for_without_end(manager: str, said: str, clock: list[float]) -> None:
    host = Host(manager)
    host.answer("", (1, "", said))
    with pytest.raises(
        PackageError, match=r"lock.*: 300 s were not enough for the lock, so let the other package manager end"
    ):
        host.apply(Request(("toolkit",)))
    assert clock[0] == patience.PATIENCE
    assert len(host.calls) < 100


def test_another_failure_is_not_waited_for(clock: list[float]) -> None:
    host = Host("apt")
    host.answer(" update", (100, "", "E: The repository has no Release file."))
    with pytest.raises(
        PackageError, match=r"^apt-get failed for toolkit \(E: The repository has no Release file\): put that right"
    ):
        host.apply(Request(("toolkit",)))
    assert (len(host.calls), clock[0]) == (1, 0)


@pytest.mark.parametrize(
    ("manager", "words"),
    [("apt", f"DPkg::Lock::Timeout={patience.PATIENCE}"), ("dnf", "--setopt=exit_on_lock=True")],
)
def test_the_managers_own_waiting_is_bounded(manager: str, words: str) -> None:
    host = Host(manager)
    host.makes[" install "] = {"toolkit": "1.0-1"}
    host.apply(Request(("toolkit",)))
    assert all(words in call for call in host.calls)


@pytest.mark.parametrize(("branch", "asked"), [("1.*", "toolkit<2"), ("1.10.*", "toolkit<1.11"), ("1.9.*", "")])
def test_zypper_keeps_to_a_branch_by_a_relation(branch: str, asked: str) -> None:
    host = Host("zypper", toolkit="2.0.0-1")
    host.answer("search", (0, ZYPPER_SEARCH, ""))
    host.makes[" install "] = {"toolkit": "1.10.0-1", "helper": "3-1"}
    request = Request(("toolkit", "helper"), version=branch, unversioned=frozenset({"helper"}))
    if asked:
        host.apply(request)
        assert host.calls[-1].split()[-4:] == ["--oldpackage", "--allow-downgrade", asked, "helper"]
    else:
        with pytest.raises(PackageError, match=r"^zypper has no version 1\.9\.\* of toolkit: "):
            host.apply(request)
        assert not [call for call in host.calls if " install " in call]


def test_dnf_refreshes_where_its_lists_are_too_old() -> None:
    host = Host("dnf")
    host.answer(" install ", (1, "", "Error: Unable to find a match: toolkit-2.0"), (0, "", ""))
    host.makes[" install "] = {"toolkit": "2.0-1"}
    host.apply(Request(("toolkit",), version="2.0"))
    assert [call.split()[-1] for call in host.calls] == ["toolkit-2.0", "makecache", "toolkit-2.0"]
