# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Headers of kernels, of which several versions may be installed, some of them unmanaged."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Sequence

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages import record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.desired_state import Desired, apply_desired
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.record import Record
from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.request import Request


@pytest.mark.parametrize("check_mode", [False, True])
def test_headers_of_former_kernel_are_not_put_on_hold(tmp_path: Path, check_mode: bool) -> None:
    """They are unversioned and no longer requested."""
    file = str(tmp_path / "record")
    record.write(file, Record(("driver", "headers-1"), held=("driver",), unversioned=("headers-1",)))

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        return 0, "driver\n" if command[-1] == "showhold" else "", ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return dict.fromkeys(names, "1-1")

    request = Request(("driver", "headers-2"), unversioned=frozenset({"headers-2"}))
    outcome = apply_desired("apt", Desired(request, file, hold=True), query, run, check_mode)
    assert (outcome.held, outcome.released) == ((), ())
    assert record.read(file).held == ("driver",)


HEADERS = "kernel-devel-5.14.0-427.el9.x86_64"
KERNELS = {
    "427": "kernel-devel 5.14.0-427.el9 x86_64\n",
    "362": "kernel-devel 5.14.0-362.el9 x86_64\n",
}


@pytest.mark.parametrize("unmanaged", [False, True])
@pytest.mark.parametrize("interrupted", [False, True])
def test_undo_removes_headers_of_one_kernel_by_name(tmp_path: Path, interrupted: bool, unmanaged: bool) -> None:
    """Several versions of kernel-devel may be installed, some unmanaged; dnf lists none of them by the requested name."""
    file = str(tmp_path / "record")
    installed = {"362"} if unmanaged else set()
    calls: list[str] = []
    killed: set[str] = set()

    class KilledError(Exception):
        """The process was killed."""

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        calls.append(" ".join(command))
        if "install" in command:
            installed.update(["427", "gcc"])
            killed.update(["dnf"] if interrupted else [])
        if killed:
            raise KilledError
        if "remove" in command and "mark" not in command and HEADERS in command:
            installed.discard("427")
        if "remove" in command and "gcc" in command:
            installed.discard("gcc")
        listing = "".join(KERNELS.get(each, f"{each} 11-1 x86_64\n") for each in sorted(installed))
        return (
            0,
            {"--all": listing + "bash 5-1 x86_64\n", "--unneeded": "gcc\n"}.get(
                next((word for word in command if word in ("--all", "--unneeded")), ""), ""
            ),
            "",
        )

    def query(names: Sequence[str]) -> dict[str, str | None]:
        known = {HEADERS: "427", "gcc": "gcc"}
        return {name: "5.14.0-427.el9" if known.get(name) in installed else None for name in names}

    desired = Desired(Request((HEADERS,), unversioned=frozenset({HEADERS})), file)
    with pytest.raises(KilledError) if interrupted else nullcontext():
        apply_desired("dnf", desired, query, run, check_mode=False)
    killed.clear()
    if not interrupted:
        assert record.read(file) == Record((HEADERS,), ("gcc",), unversioned=(HEADERS,))
        assert apply_desired("dnf", desired, query, run, check_mode=False).changed is False
    apply_desired("dnf", Desired(Request((), present=False), file), query, run, check_mode=False)
    assert installed == ({"362"} if unmanaged else set())
    assert record.read(file) == Record()
    assert not [call for call in calls if call.endswith(" kernel-devel")]


def test_unmanaged_headers_stay_unmanaged_after_interrupted_run(tmp_path: Path) -> None:
    """The host was rebooted into their kernel in the meantime."""
    file = str(tmp_path / "record")
    other = HEADERS.replace("427", "362")

    killed: list[bool] = []

    class KilledError(Exception):
        """The process was killed."""

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        killed.extend([True] if "install" in command else [])
        if killed:
            raise KilledError
        return 0, KERNELS["362"] if "--all" in command else "", ""

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return {name: "5.14.0-362.el9" if name == other else None for name in names}

    with pytest.raises(KilledError):
        apply_desired(
            "dnf", Desired(Request((HEADERS,), unversioned=frozenset({HEADERS})), file), query, run, check_mode=False
        )
    killed.clear()
    apply_desired("dnf", Desired(Request((other,), unversioned=frozenset({other})), file), query, run, check_mode=False)
    assert record.read(file) == Record()


def test_headers_of_former_kernel_keep_their_name(tmp_path: Path) -> None:
    """The undo removes them, although those of the next kernel are requested."""
    file = str(tmp_path / "record")
    record.write(file, Record((HEADERS,), unversioned=(HEADERS,)))
    installed = {"427"}

    def run(command: Sequence[str]) -> tuple[int, str, str]:
        if "install" in command:
            installed.add("362")
        return 0, "".join(KERNELS[each] for each in sorted(installed)) if "--all" in command else "", ""

    other = HEADERS.replace("427", "362")

    def query(names: Sequence[str]) -> dict[str, str | None]:
        return {name: "1-1" if name == HEADERS or "362" in installed else None for name in names}

    apply_desired("dnf", Desired(Request((other,), unversioned=frozenset({other})), file), query, run, check_mode=False)
    assert record.read(file) == Record((other, HEADERS), unversioned=(other, HEADERS))
