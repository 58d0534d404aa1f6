# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import desired_state, record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.desired_state import Desired, apply_desired
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.record import Record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import PackageError, Request

LISTING = "toolkit 2.0-1\nlibtoolkit 2.0-1\nhelper 3-1\nbash 5-1\n"


@pytest.mark.parametrize("present", [True, False])
@pytest.mark.parametrize("newer", [True, False])
def test_dnf_marks_dependencies_of_interrupted_transaction(tmp_path: Path, present: bool, newer: bool) -> None:
    """Without a mark, dnf regards them as requested; dnf 4 and dnf 5 have different commands."""
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

    apply_desired("dnf", Desired(Request(("toolkit",), present=present), file), query, run, check_mode=False)
    marks = [call for call in calls if " mark " in call]
    assert len(marks) == (2 if newer else 1)
    assert marks[-1].endswith("mark dependency helper" if newer else "mark remove helper")
    expected = Record(("libtoolkit", "toolkit"), ("helper",)) if present else Record()
    assert record.read(file) == expected


#: What an interrupted run of a package manager leaves is removed by a command, or is a lock file.
REPAIRS = {"pacman": "/var/lib/pacman/db.lck", "apt": "dpkg --force-confold --configure --pending"}


@pytest.mark.parametrize("manager", REPAIRS)
@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("before", [None, ("bash",)])
@pytest.mark.parametrize("present", [True, False])
def test_repair_comes_first_and_only_after_interrupted_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    present: bool,
    before: tuple[str, ...] | None,
    check: bool,
    manager: str,
) -> None:
    file = str(tmp_path / "record")
    record.write(file, Record(("toolkit",), before=before))
    steps: list[str] = []
    monkeypatch.setattr(desired_state, "break_stale_lock", steps.append)

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        steps.append(" ".join(command))
        return 0, "", ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return dict.fromkeys(names, "2.0-1" if present else None)

    apply_desired(manager, Desired(Request(("toolkit",), present=present), file), query, run, check)
    repairs = [number for number, step in enumerate(steps) if step == REPAIRS[manager]]
    assert repairs == ([0] if before and not check else []), "check mode changes nothing"


@pytest.mark.parametrize("present", [True, False])
def test_failed_repair_is_left_to_the_transaction(tmp_path: Path, present: bool) -> None:
    """As for a kernel module that does not build: its installation fails with its name, and its removal works."""
    file = str(tmp_path / "record")
    record.write(file, Record(("toolkit",), before=("bash",)))
    calls: list[str] = []

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(" ".join(command))
        fails = command[0] == "dpkg" or ("install" in command and "--simulate" not in command)
        return (100, "", "E: Sub-process dpkg returned an error code (1)") if fails else (0, "", "")

    def query(names: Sequence[str]) -> dict[str, str | None]:
        purged = any(call.endswith("purge toolkit") and "--simulate" not in call for call in calls)
        return dict.fromkeys(names, None if present or purged else "2.0-1")

    with pytest.raises(PackageError, match="failed for toolkit ") if present else nullcontext():
        apply_desired("apt", Desired(Request(("toolkit",), present=present), file), query, run, check_mode=False)
    assert record.read(file) == Record()


@pytest.mark.parametrize(("before", "rejects"), [(None, True), (("bash", "new"), True), (("bash",), False)])
def test_install_removes_only_recorded_packages(tmp_path: Path, before: tuple[str, ...] | None, rejects: bool) -> None:
    """Or packages of an interrupted transaction, which are not in the record yet."""
    file = str(tmp_path / "record")
    record.write(file, Record(("former",), ("dependency",), before=before))

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        if command[0] == "dpkg-query":
            return 0, "".join(f"installed {name} 1-1\n" for name in ("bash", "former", "dependency", "new")), ""
        removed = "Remv former [1-1]\nRemv dependency [1-1]\nRemv new [1-1]\n"
        return 0, removed if "--simulate" in command else "", ""

    with pytest.raises(PackageError, match="because new would") if rejects else nullcontext():
        apply_desired("apt", Desired(Request(("toolkit",)), file), dict.fromkeys, run, check_mode=True)


@pytest.mark.parametrize(("present", "fails"), [(True, False), (True, True), (False, False)])
def test_dnf_does_not_mark_earlier_dependencies_again(tmp_path: Path, present: bool, fails: bool) -> None:
    """Someone may have requested them since. Those of an interrupted transaction are marked also if the next one fails."""
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
        apply_desired("dnf", Desired(Request(("toolkit",), present=present), file), query, run, check_mode=False)
    assert [call.split(" mark ")[1] for call in calls if " mark " in call] == ["remove helper"]
    assert record.read(file) == (Record(("libtoolkit", "toolkit"), ("earlier", "helper")) if present else Record())


def test_check_mode_plans_removal_after_interrupted_run(tmp_path: Path) -> None:
    file = str(tmp_path / "record")
    record.write(file, Record(before=("bash", "helper")))
    calls: list[str] = []

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(" ".join(command))
        return 0, LISTING if "--all" in command else "", ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return dict.fromkeys(names, "2.0-1")

    outcome = apply_desired("dnf", Desired(Request(("toolkit",), present=False), file), query, run, check_mode=True)
    assert outcome.packages == ("libtoolkit", "toolkit")
    assert record.read(file) == Record(before=("bash", "helper"))
    assert not [call for call in calls if " mark " in call or " remove " in call]


REPOSITORIES = {"dnf": "--disablerepo=*", "zypper": "--no-refresh"}


@pytest.mark.parametrize("manager", REPOSITORIES)
def test_removal_reads_no_repository(tmp_path: Path, manager: str) -> None:
    """An unreachable one would prevent the removal."""
    file = str(tmp_path / "record")
    record.write(file, Record(("toolkit",), ("helper",), ("toolkit",)))
    calls: list[list[str]] = []
    holds = {"dnf": "toolkit-0:2.0-1.*\n", "zypper": "1 | toolkit | package | (any)\n"}
    unneeded = {"dnf": "helper\n", "zypper": "i  | @System | helper | 3-1 | x86_64\n"}

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(list(command))
        outputs = holds if command[-1] in ("list", "locks") else unneeded if "--unneeded" in command else {}
        return 0, outputs.get(manager, ""), ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return {name: None if any("remove" in call and name in call for call in calls) else "1-1" for name in names}

    outcome = apply_desired(manager, Desired(Request((), present=False), file), query, run, check_mode=False)
    assert outcome.packages == ("toolkit", "helper")
    offline = [call for call in calls if call[0] == manager and not {"locks", "removelock"} & set(call)]
    assert len(offline) >= 3, "both removals, and a query between them"
    assert all(REPOSITORIES[manager] in call for call in offline)


@pytest.mark.parametrize(
    ("manager", "answer", "fails"),
    [
        ("dnf", (1, "", "Error: database disk image is malformed"), True),
        ("zypper", (106, "", "Warning: a repository is skipped"), False),
        # pacman fails like this if there are none.
        ("pacman", (1, "", ""), False),
    ],
)
def test_dependencies_stay_in_record_if_query_fails(
    tmp_path: Path, manager: str, answer: tuple[int, str, str], fails: bool
) -> None:
    file = str(tmp_path / "record")
    record.write(file, Record(("toolkit",), ("helper",)))

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        return answer if {"--unneeded", "--unrequired"} & set(command) else (0, "", "")

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return dict.fromkeys(names)

    with pytest.raises(PackageError, match="malformed") if fails else nullcontext():
        apply_desired(manager, Desired(Request((), present=False), file), query, run, check_mode=False)
    assert record.read(file) == (Record(("toolkit",), ("helper",)) if fails else Record())


def test_zypper_releases_hold_although_reboot_is_required(tmp_path: Path) -> None:
    """It reports that with the exit status of each command."""
    file = str(tmp_path / "record")
    record.write(file, Record(("toolkit",), held=("toolkit",)))
    calls: list[str] = []

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(" ".join(command))
        return 102, "1 | toolkit | package | (any)\n" if command[-1] == "locks" else "", ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return dict.fromkeys(names, "1-1")

    desired = Desired(Request(("toolkit",)), file, hold=False)
    assert apply_desired("zypper", desired, query, run, check_mode=False).released == ("toolkit",)
    assert calls[-1].endswith(" removelock toolkit")


@pytest.mark.parametrize("check_mode", [False, True])
def test_package_from_before_is_held_and_not_removed(tmp_path: Path, check_mode: bool) -> None:
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
        outputs = {"apt-mark showhold": "\n".join(held), "dpkg-query": listing}
        return 0, outputs.get(" ".join(command), outputs.get(command[0], "")), ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return {name: versions.get(name) for name in names}

    desired = Desired(Request(("libnvml", "libcuda")), file, hold=True)
    assert apply_desired("apt", desired, query, run, check_mode).held == ("libcuda",)
    assert held == ({"libnvml"} if check_mode else {"libnvml", "libcuda"})
    apply_desired("apt", desired, query, run, check_mode=False)
    outcome = apply_desired("apt", Desired(Request((), present=False), file), query, run, check_mode)
    assert (outcome.packages, outcome.released) == (("libnvml",), ("libcuda",))
    if not check_mode:
        assert (held, versions["libcuda"], record.read(file)) == (set(), "1-1", Record())


@pytest.mark.parametrize("check_mode", [False, True])
def test_removal_without_a_record_keeps_the_requested_packages(tmp_path: Path, check_mode: bool) -> None:
    """They were installed before the first run."""
    calls: list[str] = []

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(" ".join(command))
        return 0, "", ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return dict.fromkeys(names, "1-1")

    desired = Desired(Request(("driver",), present=False), str(tmp_path / "record"))
    outcome = apply_desired("apt", desired, query, run, check_mode)
    assert (outcome.changed, outcome.packages, calls) == (False, (), [])
