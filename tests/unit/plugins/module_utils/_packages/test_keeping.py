# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path
from typing import Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import keeping, record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.keeping import Wish, keep
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.record import Record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import Request

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
