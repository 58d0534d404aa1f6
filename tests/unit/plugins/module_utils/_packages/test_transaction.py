# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import runner, transaction
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.managers import MANAGERS as ALL_MANAGERS
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request
from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._packages.host import (
    ZYPPER_SEARCH,
    Host,
    make_available,
)

NAMES = ("toolkit", "base")
MANAGERS = sorted(ALL_MANAGERS)


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A fake clock that only pauses change."""
    now = [0.0]
    original = runner.run_with_lock_wait

    def run_with_lock_wait(command: Sequence[str], run: runner.Runner) -> tuple[int, str, str]:
        return original(command, run, lambda: now[0], lambda seconds: now.__setitem__(0, now[0] + seconds))

    monkeypatch.setattr(transaction, "run_with_lock_wait", run_with_lock_wait)
    return now


@pytest.mark.parametrize("manager", MANAGERS)
@pytest.mark.parametrize("check_mode", [False, True])
def test_satisfied_request_runs_no_command(manager: str, check_mode: bool) -> None:
    host = Host(manager, toolkit="1")
    assert host.apply(Request(("toolkit",)), check_mode) == ()
    assert host.apply(Request(("base",), present=False), check_mode) == ()
    assert host.calls == []


@pytest.mark.parametrize("manager", MANAGERS)
def test_check_mode_changes_nothing_and_needs_no_repository(manager: str) -> None:
    host = Host(manager)
    assert host.apply(Request(NAMES), check_mode=True) == NAMES
    assert host.changing_calls == []


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
def test_version_has_the_form_of_the_manager(manager: str, version: str, last: str) -> None:
    host = Host(manager)
    host.effects[" install "] = {"toolkit": "1.2-1"}
    assert host.apply(Request(("toolkit",), version=version)) == ("toolkit",)
    assert host.calls[-1].split()[-1] == last


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    ("manager", "version", "words"),
    [
        ("pacman", "1.2", "leave the version out"),
        ("dnf", "1:1.2", "has an epoch"),
        ("zypper", "1.rc.*", "does not support versions such as 1"),
    ],
)
def test_unsupported_version_is_rejected(manager: str, version: str, words: str, check_mode: bool) -> None:
    host = Host(manager)
    with pytest.raises(PackageError, match=words):
        host.apply(Request(("toolkit",), version=version), check_mode)
    assert host.calls == []


@pytest.mark.parametrize("version", [None, "1.*"])
@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize(
    ("manager", "available", "requested"),
    [
        ("apt", "1.2-1.el9", "base=1.2-1.el9"),
        ("apt", "1.2-1", "base=1.2-*"),
        ("dnf", "1.2-1.el9", "base-1.2-1.el9"),
        # as for NVIDIA's fabric manager and its libraries
        ("dnf", "1.2-1", "base-1.2"),
        ("zypper", "1.2-1.el9", "base=1.2-1.el9"),
        ("zypper", "1.2-1", "base=1.2"),
    ],
)
def test_joining_package_gets_version_of_managed_ones(
    manager: str, available: str, requested: str, version: str | None, check_mode: bool
) -> None:
    """Or their upstream version if the packager's revision differs."""
    host = Host(manager, toolkit="1.2-1.el9", other="9-1")
    host.answer(*make_available(manager, ("base", "1.3-1.el9"), ("base", available)))
    host.effects[" install "] = {"base": available}
    request = Request(
        (*NAMES, "other"), version=version, unversioned=frozenset({"other"}), managed=frozenset({"toolkit", "other"})
    )
    assert host.apply(request, check_mode) == ("base",)
    assert [call for call in host.calls if call.endswith(f" {requested}")] or (check_mode and manager != "apt")


@pytest.mark.parametrize("manager", ["apt", "dnf", "zypper"])
def test_joining_package_without_that_version_is_rejected(manager: str) -> None:
    host = Host(manager, toolkit="1.2-1")
    host.answer(*make_available(manager, ("base", "1.3-1")))
    with pytest.raises(PackageError, match=rf"^{manager} has no version 1\.2 of base: "):
        host.apply(Request(NAMES, managed=frozenset({"toolkit"})))
    refreshes = [call for call in host.calls if call.endswith((" update", " makecache"))]
    assert len(refreshes) == (0 if manager == "zypper" else 1)
    assert not [call for call in host.changing_calls if " install " in call]


@pytest.mark.parametrize("manager", ["apt", "dnf", "zypper"])
def test_joining_package_without_same_version_gets_available_one(manager: str) -> None:
    """As for the components of a CUDA toolkit."""
    host = Host(manager, toolkit="1.2-1")
    host.answer(*make_available(manager, ("base", "1.3-1")))
    host.effects[" install "] = {"base": "1.3-1"}
    assert host.apply(Request(NAMES, managed=frozenset({"toolkit"}), same_version=False)) == ("base",)


#: The fabric manager has another source package than the libraries, and other revisions.
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
@pytest.mark.parametrize(("manager", "version_format"), [("apt", "={}-*"), ("dnf", "-{}"), ("zypper", "={}")])
def test_parts_of_one_branch_get_the_newest_common_version(
    manager: str, version_format: str, request_: Request, upstream: str, check_mode: bool
) -> None:
    host = Host(manager)
    host.answer(*make_available(manager, *PARTS))
    host.effects[" install "] = {"libs": f"{upstream}-1.el9", "fabric": f"{upstream}-2", "tool": "7-1"}
    assert host.apply(request_, check_mode) == request_.names
    if not check_mode:
        names = [name if name == "tool" else name + version_format.format(upstream) for name in request_.names]
        assert host.changing_calls[-1].endswith(" ".join(["", *names]))
        assert host.apply(request_) == ()


@pytest.mark.parametrize("check_mode", [False, True])
@pytest.mark.parametrize("manager", ["apt", "dnf", "zypper"])
def test_parts_with_different_versions_get_one_version(manager: str, check_mode: bool) -> None:
    host = Host(manager, libs="580.9.2-1.el9", fabric="580.9.3-1")
    host.answer(*make_available(manager, *PARTS))
    host.effects[" install "] = {"libs": "580.9.3-1.el9"}
    request = Request(("libs", "fabric"), version="580.*")
    assert host.check_available(request) == ("libs",)
    assert host.apply(request, check_mode) == ("libs",)


@pytest.mark.parametrize(
    ("available", "words"),
    [
        ([("libs", "580.2-1"), ("fabric", "580.1-1")], r"version 580\.\* that all of libs and fabric have: request"),
        ([("libs", "580.2-1"), ("fabric", "570.1-1")], r"version 580\.\* of fabric: request"),
    ],
)
@pytest.mark.parametrize("manager", ["apt", "dnf", "zypper"])
def test_parts_without_common_version_are_rejected(manager: str, available: list[tuple[str, str]], words: str) -> None:
    host = Host(manager)
    host.answer(*make_available(manager, *available))
    request = Request(("libs", "fabric"), version="580.*")
    with pytest.raises(PackageError, match=f"^{manager} has no {words}"):
        host.check_available(request)
    with pytest.raises(PackageError, match=f"^{manager} has no {words}"):
        host.apply(request)
    assert not [call for call in host.changing_calls if " install " in call]


def test_branch_without_revisions_is_resolved_by_apt() -> None:
    """A request for an upstream version needs revisions."""
    host = Host("apt")
    host.answer(*make_available("apt", ("toolkit", "1.2"), ("base", "1.2")))
    host.effects[" install "] = {"toolkit": "1.2", "base": "1.2"}
    host.apply(Request(NAMES, version="1.*"))
    assert host.changing_calls[-1].endswith(" toolkit=1.* base=1.*")


def test_zypper_agrees_to_licences_of_requested_packages() -> None:
    """Without agreement it does not install NVIDIA's packages, for example."""
    for version in (None, "1.2", "1.*"):
        host = Host("zypper")
        host.answer(*make_available("zypper", ("toolkit", "1.2-1")))
        host.effects[" install "] = {"toolkit": "1.2-1"}
        host.apply(Request(("toolkit",), version=version))
        assert host.calls[-1].startswith("zypper --non-interactive install --auto-agree-with-licenses ")


def test_different_versions_of_managed_packages_do_not_restrict() -> None:
    host = Host("apt", toolkit="1.2-1", more="1.3-1")
    host.effects[" install "] = {"base": "1.4-1"}
    host.apply(Request((*NAMES, "more"), managed=frozenset({"toolkit", "more"})))
    assert host.changing_calls[-1].endswith(" base")


@pytest.mark.parametrize(
    ("request_", "effect", "words"),
    [
        (Request(("toolkit",)), {}, "toolkit is not installed .*version any"),
        (Request(("toolkit",), version="1.2"), {"toolkit": "1.3-1"}, "toolkit is 1.3-1 .*version 1.2.*repository"),
        (Request(("base",), present=False), {}, "base is 1.0-1 .*none"),
    ],
)
@pytest.mark.parametrize("manager", ["apt", "dnf", "zypper"])
def test_result_other_than_requested_raises(
    manager: str, request_: Request, effect: dict[str, str | None], words: str
) -> None:
    host = Host(manager, base="1.0-1")
    host.effects[" install "] = effect
    with pytest.raises(PackageError, match=words):
        host.apply(request_)


def test_apt_refreshes_only_the_given_source() -> None:
    host = Host("apt")
    host.effects[" install "] = {"toolkit": "1.0-1"}
    host.apply(Request(("toolkit",), source="/etc/apt/x.sources"))
    refresh, install = host.changing_calls
    assert refresh.endswith("APT::Get::List-Cleanup=0 update")
    assert "Dir::Etc::sourcelist=/etc/apt/x.sources" in refresh
    assert "Dir::Etc::sourceparts=-" in refresh
    assert install.endswith(" install toolkit")
    host.installed.clear()
    host.apply(Request(("toolkit",)))
    assert "Dir::" not in host.changing_calls[2]


@pytest.mark.parametrize(
    "output",
    [
        "error: target not found: toolkit",
        "error: failed retrieving file 'toolkit-1.zst'",
        # after a refresh that found a wrong signature
        "error: database 'stubs' is not valid (invalid or corrupted database (PGP signature))",
    ],
)
def test_pacman_refreshes_an_outdated_database(output: str) -> None:
    host = Host("pacman")
    host.answer("--needed", (1, "", output), (0, "", ""))
    host.effects["--needed"] = {"toolkit": "1.0-1"}
    host.apply(Request(("toolkit",)))
    assert [call.split()[2] for call in host.calls] == ["--noconfirm", "--refresh", "--noconfirm"]


def test_pacman_does_not_refresh_after_other_errors() -> None:
    host = Host("pacman")
    host.effects["--needed"] = {"toolkit": "1.0-1"}
    host.apply(Request(("toolkit",)))
    host.answer("--needed", (1, "", "error: failed to commit transaction (conflicting files)"))
    with pytest.raises(PackageError, match="conflicting files"):
        host.apply(Request(("base",)))
    assert "--refresh" not in " ".join(host.calls)


@pytest.mark.parametrize(
    ("status", "fails"), [(0, False), (102, False), (103, False), (106, False), (104, True), (107, True), (8, True)]
)
def test_zypper_has_several_success_codes(status: int, fails: bool) -> None:
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


LOCK_ERRORS = [
    ("apt", "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"),
    ("apt", "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 7 (unattended-upgr)"),
    ("apt", "dpkg: error: dpkg frontend lock was locked by another process with pid 7"),
    ("dnf", "Metadata cache already locked by 7"),
    ("dnf", "Failed to obtain rpm transaction lock. Another transaction is in progress."),
    ("zypper", "System management is locked by the application with pid 7 (zypper)."),
    ("pacman", "error: failed to init transaction (unable to lock database)"),
]


@pytest.mark.parametrize(("manager", "output"), LOCK_ERRORS)
def test_released_lock_does_not_fail(manager: str, output: str, clock: list[float]) -> None:
    host = Host(manager)
    words = " update" if manager == "apt" else "toolkit"
    host.answer(words, (1, "", output), (1, output, ""), (0, "", ""))
    host.effects["toolkit"] = {"toolkit": "1.0-1"}
    host.apply(Request(("toolkit",)))
    assert sum(words in call for call in host.calls) == 3
    assert clock[0] == 1.5


@pytest.mark.parametrize(("manager", "output"), LOCK_ERRORS)
def test_permanent_lock_fails_after_timeout(manager: str, output: str, clock: list[float]) -> None:
    host = Host(manager)
    host.answer("", (1, "", output))
    with pytest.raises(
        PackageError, match=r"lock.*: the lock was not released within 300 s; wait until the other package manager ends"
    ):
        host.apply(Request(("toolkit",)))
    assert clock[0] == runner.LOCK_TIMEOUT
    assert len(host.calls) < 100


def test_other_error_fails_without_wait(clock: list[float]) -> None:
    host = Host("apt")
    host.answer(" update", (100, "", "E: The repository has no Release file."))
    with pytest.raises(
        PackageError, match=r"^apt-get failed for toolkit \(E: The repository has no Release file\): correct that"
    ):
        host.apply(Request(("toolkit",)))
    assert (len(host.calls), clock[0]) == (1, 0)


@pytest.mark.parametrize(
    ("manager", "words"),
    [("apt", f"DPkg::Lock::Timeout={runner.LOCK_TIMEOUT}"), ("dnf", "--setopt=exit_on_lock=True")],
)
def test_wait_of_the_manager_is_limited(manager: str, words: str) -> None:
    host = Host(manager)
    host.effects[" install "] = {"toolkit": "1.0-1"}
    host.apply(Request(("toolkit",)))
    assert all(words in call for call in host.calls)


@pytest.mark.parametrize(("branch", "requested"), [("1.*", "toolkit<2"), ("1.10.*", "toolkit<1.11"), ("1.9.*", "")])
def test_zypper_limits_branch_by_relation(branch: str, requested: str) -> None:
    host = Host("zypper", toolkit="2.0.0-1")
    host.answer("search", (0, ZYPPER_SEARCH, ""))
    host.effects[" install "] = {"toolkit": "1.10.0-1", "helper": "3-1"}
    request = Request(("toolkit", "helper"), version=branch, unversioned=frozenset({"helper"}))
    if requested:
        host.apply(request)
        assert host.calls[-1].split()[-4:] == ["--oldpackage", "--allow-downgrade", requested, "helper"]
    else:
        with pytest.raises(PackageError, match=r"^zypper has no version 1\.9\.\* of toolkit: "):
            host.apply(request)
        assert not [call for call in host.calls if " install " in call]


def test_dnf_refreshes_outdated_lists() -> None:
    host = Host("dnf")
    host.answer(" install ", (1, "", "Error: Unable to find a match: toolkit-2.0"), (0, "", ""))
    host.effects[" install "] = {"toolkit": "2.0-1"}
    host.apply(Request(("toolkit",), version="2.0"))
    assert [call.split()[-1] for call in host.calls] == ["toolkit-2.0", "makecache", "toolkit-2.0"]
