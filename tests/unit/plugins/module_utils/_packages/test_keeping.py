# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import keeping, record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.keeping import Wish, keep
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.record import Record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request

LISTING = "toolkit 2.0-1\nlibtoolkit 2.0-1\nhelper 3-1\nbash 5-1\n"


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("newer", [True, False])
def test_what_came_for_others_in_a_killed_transaction_is_told_to_dnf(
    tmp_path: Path, present: bool, newer: bool
) -> None:
    """It takes what it did not come to note for what somebody asked for; dnf 4 and dnf 5 are told in other words."""
    file = str(tmp_path / "record")
    record.write(file, Record(before=("bash",)))
    calls: list[str] = []

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(" ".join(command))
        if "--all" in command:
            return 0, LISTING, ""
        return (2, "", "") if newer and "mark remove" in calls[-1] else (0, "", "")

    def query(names: Sequence[str]) -> dict[str, str | None]:
        removed = any(" remove " in call and "mark" not in call for call in calls)
        return dict.fromkeys(names, None if removed else "2.0-1")

    keep("dnf", Wish(Request(("toolkit",), present=present), file), query, run, check_mode=False)
    marked = [call for call in calls if " mark " in call]
    assert len(marked) == (2 if newer else 1)
    assert marked[-1].endswith("mark dependency helper" if newer else "mark remove helper")
    left = Record(("libtoolkit", "toolkit"), ("helper",)) if present else Record()
    assert record.read(file) == left


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("before", [None, ("bash",)])
@pytest.mark.parametrize("present", [True, False])
def test_only_after_a_killed_run_is_pacmans_lock_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, present: bool, before: tuple[str, ...] | None, check: bool
) -> None:
    file = str(tmp_path / "record")
    record.write(file, Record(("toolkit",), before=before))
    broken: list[str] = []
    monkeypatch.setattr(keeping, "break_stale_lock", broken.append)

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return dict.fromkeys(names, "2.0-1" if present else None)

    keep("pacman", Wish(Request(("toolkit",), present=present), file), query, lambda _command: (0, "", ""), check)
    assert broken == (["/var/lib/pacman/db.lck"] if before and not check else []), "a check changes nothing"


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("before", [None, ("bash",)])
@pytest.mark.parametrize("present", [True, False])
def test_only_after_a_killed_run_does_dpkg_finish_what_it_began(
    tmp_path: Path, present: bool, before: tuple[str, ...] | None, check: bool
) -> None:
    file = str(tmp_path / "record")
    record.write(file, Record(("toolkit",), before=before))
    calls: list[str] = []

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(" ".join(command))
        return 0, "", ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return dict.fromkeys(names, "2.0-1" if present else None)

    keep("apt", Wish(Request(("toolkit",), present=present), file), query, run, check)
    finished = [number for number, call in enumerate(calls) if call == "dpkg --force-confold --configure --pending"]
    assert finished == ([0] if before and not check else []), calls


@pytest.mark.parametrize("present", [True, False])
def test_what_dpkg_cannot_finish_is_left_to_the_transaction(tmp_path: Path, present: bool) -> None:
    """As a kernel module that does not build: installing it fails with its name, and it can be removed."""
    file = str(tmp_path / "record")
    record.write(file, Record(("toolkit",), before=("bash",)))
    calls: list[str] = []

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(" ".join(command))
        broken = command[0] == "dpkg" or ("install" in command and "--simulate" not in command)
        return (100, "", "E: Sub-process dpkg returned an error code (1)") if broken else (0, "", "")

    def query(names: Sequence[str]) -> dict[str, str | None]:
        purged = any(call.endswith("purge toolkit") and "--simulate" not in call for call in calls)
        return dict.fromkeys(names, None if present or purged else "2.0-1")

    with pytest.raises(PackageError, match="failed for toolkit ") if present else nullcontext():
        keep("apt", Wish(Request(("toolkit",), present=present), file), query, run, check_mode=False)
    assert record.read(file) == Record()


@pytest.mark.parametrize(("before", "refused"), [(None, True), (("bash", "fresh"), True), (("bash",), False)])
def test_only_what_the_record_has_may_be_replaced(
    tmp_path: Path, before: tuple[str, ...] | None, refused: bool
) -> None:
    """Or what came in a transaction that was killed, of which it is not told yet."""
    file = str(tmp_path / "record")
    record.write(file, Record(("former",), ("company",), before=before))

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        if command[0] == "dpkg-query":
            return 0, "".join(f"installed {name} 1-1\n" for name in ("bash", "former", "company", "fresh")), ""
        removed = "Remv former [1-1]\nRemv company [1-1]\nRemv fresh [1-1]\n"
        return 0, removed if "--simulate" in command else "", ""

    with pytest.raises(PackageError, match="because fresh would") if refused else nullcontext():
        keep("apt", Wish(Request(("toolkit",)), file), dict.fromkeys, run, check_mode=True)


@pytest.mark.parametrize(("present", "fails"), [(True, False), (True, True), (False, False)])
def test_what_came_earlier_is_not_told_to_dnf_again(tmp_path: Path, present: bool, fails: bool) -> None:
    """Somebody may have asked for it since. What came in a killed transaction is told also where the next one fails."""
    file = str(tmp_path / "record")
    record.write(file, Record(("toolkit",), ("earlier",), before=("bash", "toolkit", "earlier")))
    calls: list[str] = []

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(" ".join(command))
        if "--all" in command:
            return 0, LISTING + "earlier 1-1\n", ""
        return (1, "", "no space left") if fails and "install" in command else (0, "", "")

    def query(names: Sequence[str]) -> dict[str, str | None]:
        done = any(call.endswith((" install toolkit", " remove libtoolkit toolkit")) for call in calls)
        return dict.fromkeys(names, "2.0-1" if done is present else None)

    with pytest.raises(PackageError, match="no space left") if fails else nullcontext():
        keep("dnf", Wish(Request(("toolkit",), present=present), file), query, run, check_mode=False)
    assert [call.split(" mark ")[1] for call in calls if " mark " in call] == ["remove helper"]
    assert record.read(file) == (Record(("libtoolkit", "toolkit"), ("earlier", "helper")) if present else Record())


def test_a_check_foresees_the_removal_of_what_a_killed_run_left(tmp_path: Path) -> None:
    file = str(tmp_path / "record")
    record.write(file, Record(before=("bash", "helper")))
    calls: list[str] = []

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(" ".join(command))
        return 0, LISTING if "--all" in command else "", ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return dict.fromkeys(names, "2.0-1")

    outcome = keep("dnf", Wish(Request(("toolkit",), present=False), file), query, run, check_mode=True)
    assert outcome.packages == ("libtoolkit", "toolkit")
    assert record.read(file) == Record(before=("bash", "helper"))
    assert not [call for call in calls if " mark " in call or " remove " in call]


REPOSITORIES = {"dnf": "--disablerepo=*", "zypper": "--no-refresh"}


@pytest.mark.parametrize("manager", REPOSITORIES)
def test_a_removal_reads_no_repository(tmp_path: Path, manager: str) -> None:
    """One that is dead would keep the packages there."""
    file = str(tmp_path / "record")
    record.write(file, Record(("toolkit",), ("helper",), ("toolkit",)))
    calls: list[list[str]] = []
    holds = {"dnf": "toolkit-0:2.0-1.*\n", "zypper": "1 | toolkit | package | (any)\n"}
    unneeded = {"dnf": "helper\n", "zypper": "i  | @System | helper | 3-1 | x86_64\n"}

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(list(command))
        listed = holds if command[-1] in ("list", "locks") else unneeded if "--unneeded" in command else {}
        return 0, listed.get(manager, ""), ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return {name: None if any("remove" in call and name in call for call in calls) else "1-1" for name in names}

    outcome = keep(manager, Wish(Request((), present=False), file), query, run, check_mode=False)
    assert outcome.packages == ("toolkit", "helper")
    own = [call for call in calls if call[0] == manager and not {"locks", "removelock"} & set(call)]
    assert len(own) >= 3, "both removals, and the question in between"
    assert all(REPOSITORIES[manager] in call for call in own)


@pytest.mark.parametrize(
    ("manager", "answer", "fails"),
    [
        ("dnf", (1, "", "Error: database disk image is malformed"), True),
        ("zypper", (106, "", "Warning: a repository is skipped"), False),
        # as it says that there is none
        ("pacman", (1, "", ""), False),
    ],
)
def test_the_record_of_company_stays_until_it_was_asked_for(
    tmp_path: Path, manager: str, answer: tuple[int, str, str], fails: bool
) -> None:
    file = str(tmp_path / "record")
    record.write(file, Record(("toolkit",), ("helper",)))

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        return answer if {"--unneeded", "--unrequired"} & set(command) else (0, "", "")

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return dict.fromkeys(names)

    with pytest.raises(PackageError, match="malformed") if fails else nullcontext():
        keep(manager, Wish(Request((), present=False), file), query, run, check_mode=False)
    assert record.read(file) == (Record(("toolkit",), ("helper",)) if fails else Record())


def test_zypper_lets_go_although_a_reboot_is_due(tmp_path: Path) -> None:
    """What it tells by its status of all its commands, not of installing alone."""
    file = str(tmp_path / "record")
    record.write(file, Record(("toolkit",), held=("toolkit",)))
    calls: list[str] = []

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(" ".join(command))
        return 102, "1 | toolkit | package | (any)\n" if command[-1] == "locks" else "", ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return dict.fromkeys(names, "1-1")

    wish = Wish(Request(("toolkit",)), file, hold=False)
    assert keep("zypper", wish, query, run, check_mode=False).released == ("toolkit",)
    assert calls[-1].endswith(" removelock toolkit")


@pytest.mark.parametrize("check_mode", [False, True])
def test_headers_of_a_former_kernel_are_not_put_on_hold(tmp_path: Path, check_mode: bool) -> None:
    """They were asked for in whatever version, and are asked for no more."""
    file = str(tmp_path / "record")
    record.write(file, Record(("driver", "headers-1"), held=("driver",), free=("headers-1",)))

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        return 0, "driver\n" if command[-1] == "showhold" else "", ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return dict.fromkeys(names, "1-1")

    request = Request(("driver", "headers-2"), unversioned=frozenset({"headers-2"}))
    outcome = keep("apt", Wish(request, file, hold=True), query, run, check_mode)
    assert (outcome.held, outcome.released) == ((), ())
    assert record.read(file).held == ("driver",)


@pytest.mark.parametrize("check_mode", [False, True])
def test_what_was_there_before_is_held_with_the_rest_and_stays_without(tmp_path: Path, check_mode: bool) -> None:
    file = str(tmp_path / "record")
    record.write(file, Record(("libnvml",), held=("libnvml",)))
    versions: dict[str, str | None] = {"libnvml": "1-1", "libcuda": "1-1"}
    held = {"libnvml"}

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        if command[:2] in (["apt-mark", "hold"], ["apt-mark", "unhold"]):
            (held.update if command[1] == "hold" else held.difference_update)(command[2:])
        if "purge" in command and "--simulate" not in command:
            versions.update(dict.fromkeys(command[command.index("purge") + 1 :]))
        listing = "".join(f"installed {name} {version}\n" for name, version in versions.items() if version)
        told = {"apt-mark showhold": "\n".join(held), "dpkg-query": listing}
        return 0, told.get(" ".join(command), told.get(command[0], "")), ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return {name: versions.get(name) for name in names}

    wish = Wish(Request(("libnvml", "libcuda")), file, hold=True)
    assert keep("apt", wish, query, run, check_mode).held == ("libcuda",)
    assert held == ({"libnvml"} if check_mode else {"libnvml", "libcuda"})
    keep("apt", wish, query, run, check_mode=False)
    outcome = keep("apt", Wish(Request((), present=False), file), query, run, check_mode)
    assert (outcome.packages, outcome.released) == (("libnvml",), ("libcuda",))
    if not check_mode:
        assert (held, versions["libcuda"], record.read(file)) == (set(), "1-1", Record())


HEADERS = "kernel-devel-5.14.0-427.el9.x86_64"
KERNELS = {
    "427": "kernel-devel 5.14.0-427.el9 x86_64\n",
    "362": "kernel-devel 5.14.0-362.el9 x86_64\n",
}


@pytest.mark.parametrize("theirs", [False, True])
@pytest.mark.parametrize("killed", [False, True])
def test_headers_of_one_kernel_go_by_their_name_and_those_of_others_stay(
    tmp_path: Path, killed: bool, theirs: bool
) -> None:
    """Of kernel-devel several versions may be installed, some of them somebody's, and dnf lists none of them by the name asked for."""
    file = str(tmp_path / "record")
    there = {"362"} if theirs else set()
    calls: list[str] = []
    dead: set[str] = set()

    class KilledError(Exception):
        """The end of the process."""

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(" ".join(command))
        if "install" in command:
            there.update(["427", "gcc"])
            dead.update(["killed"] if killed else [])
        if dead:
            raise KilledError
        if "remove" in command and "mark" not in command and HEADERS in command:
            there.discard("427")
        if "remove" in command and "gcc" in command:
            there.discard("gcc")
        listed = "".join(KERNELS.get(each, f"{each} 11-1 x86_64\n") for each in sorted(there))
        return (
            0,
            {"--all": listed + "bash 5-1 x86_64\n", "--unneeded": "gcc\n"}.get(
                next((word for word in command if word in ("--all", "--unneeded")), ""), ""
            ),
            "",
        )

    def query(names: Sequence[str]) -> dict[str, str | None]:
        known = {HEADERS: "427", "gcc": "gcc"}
        return {name: "5.14.0-427.el9" if known.get(name) in there else None for name in names}

    wish = Wish(Request((HEADERS,), unversioned=frozenset({HEADERS})), file)
    with pytest.raises(KilledError) if killed else nullcontext():
        keep("dnf", wish, query, run, check_mode=False)
    dead.clear()
    if not killed:
        assert record.read(file) == Record((HEADERS,), ("gcc",), free=(HEADERS,))
        assert keep("dnf", wish, query, run, check_mode=False).changed is False
    keep("dnf", Wish(Request((), present=False), file), query, run, check_mode=False)
    assert there == ({"362"} if theirs else set())
    assert record.read(file) == Record()
    assert not [call for call in calls if call.endswith(" kernel-devel")]


def test_headers_of_somebody_stay_theirs_where_they_are_asked_for_after_a_killed_run(tmp_path: Path) -> None:
    """The host was booted into their kernel meanwhile."""
    file = str(tmp_path / "record")
    other = HEADERS.replace("427", "362")

    dead: list[bool] = []

    class KilledError(Exception):
        """The end of the process."""

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        dead.extend([True] if "install" in command else [])
        if dead:
            raise KilledError
        return 0, KERNELS["362"] if "--all" in command else "", ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return {name: "5.14.0-362.el9" if name == other else None for name in names}

    with pytest.raises(KilledError):
        keep("dnf", Wish(Request((HEADERS,), unversioned=frozenset({HEADERS})), file), query, run, check_mode=False)
    dead.clear()
    keep("dnf", Wish(Request((other,), unversioned=frozenset({other})), file), query, run, check_mode=False)
    assert record.read(file) == Record()


def test_headers_of_a_former_kernel_keep_their_name(tmp_path: Path) -> None:
    """The next kernel's are asked for, and the former ones' are still to be removed."""
    file = str(tmp_path / "record")
    record.write(file, Record((HEADERS,), free=(HEADERS,)))
    there = {"427"}

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        if "install" in command:
            there.add("362")
        return 0, "".join(KERNELS[each] for each in sorted(there)) if "--all" in command else "", ""

    other = HEADERS.replace("427", "362")

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return {name: "1-1" if name == HEADERS or "362" in there else None for name in names}

    keep("dnf", Wish(Request((other,), unversioned=frozenset({other})), file), query, run, check_mode=False)
    assert record.read(file) == Record((other, HEADERS), free=(other, HEADERS))
