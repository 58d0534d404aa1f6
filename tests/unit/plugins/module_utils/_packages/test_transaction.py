# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import patience, transaction
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.managers import MANAGERS as KNOWN
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request, pending

NAMES = ("toolkit", "base")
MANAGERS = sorted(KNOWN)


class Host:
    """A host whose commands do what the test says of their first matching words, and otherwise succeed in silence.

    A command that was answered with success ``makes`` its changes in what is installed.
    """

    def __init__(self, manager: str, **installed: str) -> None:
        self.manager = manager
        self.installed: dict[str, str | None] = dict(installed)
        self.calls: list[str] = []
        self.answers: list[tuple[str, list[tuple[int, str, str]]]] = []
        self.makes: dict[str, dict[str, str | None]] = {}

    def answer(self, words: str, *answers: tuple[int, str, str]) -> None:
        """Answer commands with these words so, one after the other; the last answer stays."""
        self.answers.append((words, list(answers)))

    def run(self, command: Sequence[str]) -> tuple[int, str, str]:
        line = " ".join(command)
        self.calls.append(line)
        queue = next((answers for words, answers in self.answers if words in line), [(0, "", "")])
        found = queue.pop(0) if len(queue) > 1 else queue[0]
        if found[0] == 0:
            for words, change in self.makes.items():
                self.installed.update(change if words in line else {})
        return found

    def apply(self, request: Request, check_mode: bool = False) -> tuple[str, ...]:
        return transaction.apply(self.manager, request, self.installed.copy, self.run, check_mode)[1]


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that only pauses move."""
    now = [0.0]
    patient = patience.run_patiently

    def run_patiently(command: Sequence[str], run: patience.Runner) -> tuple[int, str, str]:
        return patient(command, run, lambda: now[0], lambda seconds: now.__setitem__(0, now[0] + seconds))

    monkeypatch.setattr(transaction, "run_patiently", run_patiently)
    return now


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
    ],
)
def test_pending(request_: Request, installed: dict[str, str | None], left: tuple[str, ...]) -> None:
    assert pending(request_, installed) == left


@pytest.mark.parametrize("name", ["", "-y", "--force-yes", "base-", "base=1", "base*", "base/sid", "./base.deb", "a b"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(PackageError, match=re.escape(repr(name))):
        Request((name,))


@pytest.mark.parametrize("version", ["", "-1", "1.17*", "1 --force", "1.0-", "=1"])
def test_what_is_no_version_is_refused(version: str) -> None:
    with pytest.raises(PackageError, match="is no version"):
        Request(("toolkit",), version=version)


def test_usual_names_and_versions_are_taken() -> None:
    for version in ("1.17.8", "1.17.8-1", "1:1.17.8~rc.1-0ubuntu1", "570.124.06^20250101+git"):
        Request(("nvidia-container-toolkit", "python3.11", "libfoo++1", "x"), version=version)


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
    assert host.calls == []


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
    refresh, install = host.calls
    assert refresh.endswith("APT::Get::List-Cleanup=0 update")
    assert "Dir::Etc::sourcelist=/etc/apt/x.sources" in refresh
    assert "Dir::Etc::sourceparts=-" in refresh
    assert install.endswith(" install toolkit")
    host.installed.clear()
    host.apply(Request(("toolkit",)))
    assert "Dir::" not in host.calls[2]


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


@pytest.mark.parametrize(("status", "fails"), [(0, False), (103, False), (106, False), (104, True), (8, True)])
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


@pytest.mark.parametrize(
    "request_", [Request(NAMES, present=False), Request(NAMES, version="2.0")], ids=["absent", "version"]
)
@pytest.mark.parametrize("check_mode", [False, True])
def test_somebody_elses_hold_is_respected(request_: Request, check_mode: bool) -> None:
    host = Host("apt", toolkit="1.0-1", base="1.0-1")
    host.answer("apt-mark showhold", (0, "base\n", ""))
    with pytest.raises(PackageError, match=r"^Cannot change base, .*hold.*\(apt-mark unhold base\)"):
        host.apply(request_, check_mode)
    assert host.calls == ["apt-mark showhold"]


def test_a_hold_of_our_own_is_no_hindrance() -> None:
    host = Host("apt", toolkit="1.0-1")
    host.makes.update({" install ": {"toolkit": "2.0-1"}, " purge ": {"toolkit": None}})
    host.apply(Request(("toolkit",), version="2.0", own_holds=frozenset({"toolkit"})))
    host.apply(Request(("toolkit",), present=False, own_holds=frozenset({"toolkit"})))
    changing = [call for call in host.calls if not call.endswith("update")]
    assert len(changing) == 3  # the rehearsal would stop at a hold, too
    assert all("--allow-change-held-packages" in call for call in changing)


def test_what_is_not_installed_has_no_hold() -> None:
    host = Host("apt")
    host.makes[" install "] = {"toolkit": "1.0-1"}
    host.apply(Request(("toolkit",)))
    assert not [call for call in host.calls if "hold" in call or "held" in call]


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


# dnf 4.14
DNF_PROBLEM = """Error:
 Problem: conflicting requests
  - nothing provides /bin/sh needed by libtoolkit-2.0.0-1.noarch
"""
# zypper 1.14
ZYPPER_UNSIGNED = """Repository 'Stubs' is invalid.
[s|file:/srv/stubs/rpm-unsigned] Valid metadata not found at specified URL
History:
 - Signature verification failed for repomd.xml
 - Can't provide /repodata/repomd.xml

Please check if the URIs defined for this repository are pointing to a valid repository.
Some of the repositories have not been refreshed because of an error.
No provider of 'toolkit' found.
"""
ZYPPER_PROBLEM = """Resolving package dependencies...

Problem: toolkit-1.2.0-1.noarch requires base = 1.2.0-1, but this requirement cannot be provided
  not installable providers: base-1.2.0-1.noarch[stubs]
 Solution 1: downgrade of base-2.0.0-1.noarch to base-1.2.0-1.noarch
 Solution 2: do not install toolkit-1.2.0-1.noarch
 Solution 3: break toolkit-1.2.0-1.noarch by ignoring some of its dependencies

Choose from above solutions by number or cancel [1/2/3/c/d/?] (c): c
"""


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
        (
            DNF_PROBLEM,
            "",
            "Problem: conflicting requests - nothing provides /bin/sh needed by libtoolkit-2.0.0-1.noarch",
        ),
        ("", ZYPPER_UNSIGNED, "- Signature verification failed for repomd.xml"),
        (
            ZYPPER_PROBLEM,
            "",
            "Problem: toolkit-1.2.0-1.noarch requires base = 1.2.0-1, but this requirement cannot be provided",
        ),
    ],
)
def test_last_words(output: str, errors: str, words: str) -> None:
    assert patience.last_words(output, errors) == words


@pytest.mark.parametrize("open_", [True, False])
def test_a_lock_file_that_somebody_has_open_stays(tmp_path: Path, open_: bool) -> None:
    lock = tmp_path / "db.lck"
    lock.touch()
    (tmp_path / "proc" / "7" / "fd").mkdir(parents=True)
    (tmp_path / "proc" / "7" / "fd" / "3").symlink_to(lock if open_ else tmp_path / "other")
    patience.break_stale_lock(str(lock), str(tmp_path / "proc"))
    assert lock.exists() is open_
    patience.break_stale_lock(str(tmp_path / "none"), str(tmp_path / "proc"))


ZYPPER_SEARCH = """<?xml version='1.0'?>
<stream>

<search-result version="0.0">
<solvable-list>
<solvable status="installed" name="toolkit" kind="package" edition="2.0.0-1" arch="noarch" repository="Stubs of the tests"/>
<solvable status="other-version" name="toolkit" kind="package" edition="1.10.0-1" arch="noarch" repository="Stubs of the tests"/>
<solvable status="other-version" name="toolkit" kind="package" edition="1.2.0-1" arch="noarch" repository="Stubs of the tests"/>
</solvable-list>
</search-result>
</stream>
"""


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


def ask(host: Host, **asked: Any) -> tuple[str, ...]:
    return transaction.available(host.manager, Request(**asked), host.installed.copy, host.run)[1]


@pytest.mark.parametrize(("manager", "words", "said"), OFFERED)
@pytest.mark.parametrize("version", ["1.10.0", "1.2.0-1", "1.*", None])
def test_what_is_offered_is_available(manager: str, words: str, said: str, version: str | None) -> None:
    host = Host(manager, toolkit=None)
    host.answer(words, (0, said, ""))
    assert ask(host, names=("toolkit", "helper"), version=version, unversioned=frozenset({"helper"})) == (
        "toolkit",
        "helper",
    )
    assert len(host.calls) == 1, "one question, and no refresh"
    assert host.calls[0].endswith(" toolkit")


@pytest.mark.parametrize(("manager", "words", "said"), OFFERED)
def test_what_is_not_offered_is_refused_after_a_refresh(manager: str, words: str, said: str) -> None:
    host = Host(manager)
    host.answer(words, (0, said, ""))
    with pytest.raises(PackageError, match=rf"^{manager} has no version 1\.1\.\* of toolkit and other: "):
        ask(host, names=("toolkit", "other"), version="1.1.*")
    refreshes = [call for call in host.calls if call.endswith(("update", "makecache"))]
    assert len(refreshes) == (0 if manager == "zypper" else 1), "zypper refreshes by itself"
    assert not [call for call in host.calls if " install " in call]


@pytest.mark.parametrize(("manager", "words", "said"), OFFERED[:2])
def test_what_came_since_the_last_refresh_is_available(manager: str, words: str, said: str) -> None:
    host = Host(manager)
    host.answer(words, (0, "", ""), (0, said, ""))
    assert ask(host, names=("toolkit",), version="1.2.0") == ("toolkit",)
    assert len(host.calls) == 3


def test_what_is_installed_may_be_offered_no_more() -> None:
    host = Host("apt", toolkit="1.1.0-1")
    host.answer("madison", (0, APT_MADISON, ""))
    with pytest.raises(PackageError, match=r"^apt has no version 1\.1\.0 of toolkit"):
        ask(host, names=("toolkit",), version="1.1.0")
    host.installed["toolkit"] = "1.2.0-1"
    assert ask(host, names=("toolkit",), version="1.2.0") == ()


def test_what_is_on_hold_cannot_be_had() -> None:
    host = Host("apt", toolkit="1.0-1")
    host.answer("apt-mark showhold", (0, "toolkit\n", ""))
    with pytest.raises(PackageError, match=r"^Cannot change toolkit, because somebody put a hold on it"):
        ask(host, names=("toolkit",), version="1.2.0")


def test_pacman_is_not_asked() -> None:
    host = Host("pacman")
    assert ask(host, names=NAMES) == NAMES
    assert host.calls == []


def test_dnf_refreshes_where_its_lists_are_too_old() -> None:
    host = Host("dnf")
    host.answer(" install ", (1, "", "Error: Unable to find a match: toolkit-2.0"), (0, "", ""))
    host.makes[" install "] = {"toolkit": "2.0-1"}
    host.apply(Request(("toolkit",), version="2.0"))
    assert [call.split()[-1] for call in host.calls] == ["toolkit-2.0", "makecache", "toolkit-2.0"]


# What dnf 4.14, zypper 1.14 and pacman 6.0 say.
DNF_LOCKS = """Last metadata expiration check: 0:00:11 ago on Sun Nov 22 05:07:02 2026.
libnvidia-stub-ml-0:1.2.0-1.*
nvidia-stub-smi-3:1.2.0-1.el9.*
"""
# Written down from memory: no dnf 5 was at hand.
DNF5_LOCKS = """# Added by 'versionlock add' command on 2026-05-01 10:00:00
Package name: nvidia-stub-smi
evr = 1.2.0-1
"""
ZYPPER_LOCKS = """
# | Name              | Type    | Repository
--+-------------------+---------+-----------
1 | libnvidia-stub-ml | package | (any)
2 | nvidia-stub-smi   | package | (any)

"""
ZYPPER_NO_LOCKS = """
There are no package locks defined.

"""
ZYPPER_UNNEEDED = """S  | Repository         | Name        | Version | Arch
---+--------------------+-------------+---------+-------
i  | Stubs of the tests | stub-helper | 3.2-1   | noarch
i+ | @System            | other       | 1-1     | noarch
"""
PACMAN_BREAKS = """checking dependencies...
:: removing libnvidia-stub-ml breaks dependency 'libnvidia-stub-ml=1.2.0-1' required by nvidia-stub-smi
"""


@pytest.mark.parametrize(
    ("manager", "words", "names"),
    [
        ("dnf", DNF_LOCKS, ["libnvidia-stub-ml", "nvidia-stub-smi"]),
        ("dnf", DNF5_LOCKS, ["nvidia-stub-smi"]),
        ("zypper", ZYPPER_LOCKS, ["libnvidia-stub-ml", "nvidia-stub-smi"]),
        ("zypper", ZYPPER_NO_LOCKS, []),
    ],
)
def test_holds_are_read(manager: str, words: str, names: list[str]) -> None:
    holding = KNOWN[manager].holding
    assert holding is not None
    assert holding.names(words) == names


def test_what_nothing_needs_and_what_depends_is_read() -> None:
    assert KNOWN["zypper"].unneeded_names(ZYPPER_UNNEEDED) == ["stub-helper", "other"]
    assert KNOWN["dnf"].unneeded_names("stub-helper\n") == ["stub-helper"]
    assert "--installed" not in KNOWN["dnf"].unneeded, "dnf 4 takes one of the two alone"
    assert KNOWN["pacman"].concerned(PACMAN_BREAKS) == ["nvidia-stub-smi"]
