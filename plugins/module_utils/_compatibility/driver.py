# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of a driver with GPUs and kernel, and of its security and support."""

from __future__ import annotations

from typing import Iterator, Sequence

from .gpus import IMPOSSIBLE, OPEN, PROPRIETARY, REQUIRED, Gpu, find_branches
from .situation import STOP, WARN, Finding, Situation, join_choices, list_supported
from .tables import Row, Tables, contains_version, has_fix, is_broken_with
from .versions import Version, format_version, get_branch, parse_kernel, parse_version
from .versions import parse_driver as driver_version


def check_gpus(situation: Situation, _tables: Tables) -> Iterator[Finding]:
    """Check whether the driver supports the GPUs.

    STOP for a driver that is too old or too new for one. WARN for a GPU that is in no table, if no driver supports all of them, and for
    a GPU that the running driver does not support either, while it supports others.
    """
    for gpu in situation.list_kinds():
        if gpu.is_unknown or (gpu.architecture is not None and gpu.first_driver is None and gpu.last_driver is None):
            yield Finding(WARN, "driver_gpu", _explain_unknown_gpu(gpu))
        bound = None if situation.version is None else _find_bound(gpu, situation.version)
        if bound is not None:
            message = f"Driver {situation.driver} {_REASONS[bound].format(gpu=gpu)}"
            yield Finding(WARN if _is_ignored(situation, gpu) else STOP, "driver_gpu", message, gpu.sources[bound])
    bounds = find_branches(situation.gpus)
    if situation.version is None and (bounds["first"] or 0) > (bounds["last"] or float("inf")):
        message = (
            f"No driver supports all GPUs: one needs branch {bounds['first']} or newer, another {bounds['last']} or older; "
            "use GPUs that one driver supports."
        )
        yield Finding(WARN, "driver_gpu", message)


_REASONS = {
    "first_driver": "does not know {gpu.label} yet; use {gpu.first_driver} or newer.",
    "last_driver": "no longer supports {gpu.label}; use branch {gpu.last_driver}, the last that does, or an older one.",
}


def _find_bound(gpu: Gpu, version: Version) -> str | None:
    """The bound of a GPU that excludes a driver, if one does."""
    if gpu.first_driver is not None and version < parse_version(gpu.first_driver):
        return "first_driver"
    return "last_driver" if gpu.last_driver is not None and get_branch(version) > gpu.last_driver else None


def _is_ignored(situation: Situation, gpu: Gpu) -> bool:
    """Whether the running driver does not support this GPU, but others."""
    if situation.running is None:
        return False
    running = driver_version(situation.running)
    return _find_bound(gpu, running) is not None and any(
        _find_bound(other, running) is None for other in situation.gpus
    )


def _explain_unknown_gpu(gpu: Gpu) -> str:
    known = f" (PCI device id {gpu.device_id})" if str(gpu.device_id) not in gpu.label else ""
    return (
        f"Nothing is known of {gpu.label}{known}, so that no driver is judged for it; "
        "look it up among the products that the driver supports."
    )


def check_modules(situation: Situation, tables: Tables) -> Iterator[Finding]:
    """Check whether kernel modules of the requested flavour exist and support the GPUs; STOP if not.

    WARN if another GPU needs the open ones, because the driver then ignores a GPU that they do not support, and if they already work on
    the host for other GPUs.
    """
    if situation.flavor is None:
        return
    yield from _check_branch(situation, tables)
    unfit, other = (IMPOSSIBLE, PROPRIETARY) if situation.flavor == OPEN else (REQUIRED, OPEN)
    needed = situation.flavor == OPEN and any(gpu.open_modules == REQUIRED for gpu in situation.gpus)
    remedy = "remove it, because another GPU of the host needs them" if needed else f"use the {other} ones"
    working = situation.running is not None and any(gpu.open_modules != unfit for gpu in situation.gpus)
    for gpu in situation.list_kinds():
        if gpu.open_modules == unfit:
            message = f"The {situation.flavor} kernel modules do not know {gpu.label}; {remedy}."
            yield Finding(WARN if needed or working else STOP, "kernel_modules", message, gpu.sources["open_modules"])


def _check_branch(situation: Situation, tables: Tables) -> Iterator[Finding]:
    number = None if situation.version is None else get_branch(situation.version)
    for row in tables.get_rows("gpu_driver", "flavors") if number is not None else ():
        if row["flavor"] != situation.flavor:
            continue
        other = PROPRIETARY if situation.flavor == OPEN else OPEN
        message = f"Driver branch {number} has no {situation.flavor} kernel modules; use the {other} ones, or branch"
        if number < row.get("first_branch", number):
            yield Finding(STOP, "kernel_modules", f"{message} {row['first_branch']} or newer.", str(row["source"]))
        if number > row.get("last_branch", number):
            yield Finding(STOP, "kernel_modules", f"{message} {row['last_branch']} or older.", str(row["source"]))


def check_kernel(situation: Situation, tables: Tables) -> Iterator[Finding]:
    """Check whether the kernel modules build and load with the kernel; one finding for all rows that say no.

    STOP if a row concerns the requested flavour. WARN if it concerns one flavour and none is requested, or if the kernel is newer than
    the driver or than all tables. A running driver is not checked: its package may have a fix of its own.
    """
    version = situation.version
    if version is None or situation.kernel is None or situation.is_running:
        return
    bad = [
        row for row in tables.get_rows("driver_kernel") if _is_broken(row, version, situation.kernel, situation.flavor)
    ]
    sure = [row for row in bad if row.get("flavor") in (None, situation.flavor)]
    if bad:
        rows = sure or bad
        level = STOP if sure else WARN
        yield Finding(
            level, "driver_kernel", _explain_broken(situation, situation.kernel, rows), str(rows[-1]["source"])
        )
        return
    unknown = _explain_unknown_kernel(version, parse_kernel(situation.kernel)[:2], tables)
    if unknown is not None:
        message = (
            f"Nothing is known of driver {situation.driver} with kernel {situation.kernel} ({unknown}); "
            "look into NVIDIA's release notes of the driver."
        )
        yield Finding(WARN, "driver_kernel", message)


def _explain_unknown_kernel(version: Version, series: Version, tables: Tables) -> str | None:
    """Why no table covers a driver with a series of kernels: the series or the driver is too new; empty if one does."""
    months = {parse_version(row["series"]): str(row["date"]) for row in tables.get_rows("kernel_releases")}
    if series > max(months):
        return f"known are kernels up to {format_version(max(months))}"
    number = get_branch(version)
    fixes = [
        row
        for row in tables.get_rows("driver_security")
        if row["branch"] == number and version <= parse_version(row["driver"])
    ]
    ended = [row["end"] for row in tables.get_rows("driver_branches") if row["branch"] == number and "end" in row]
    # The driver had been released by then.
    by = min([*(str(row["date"]) for row in fixes), *map(str, ended)], default=None)
    if by is not None and months.get(series, "") > by:
        return f"which is of {months[series]}, and the driver of {by} at the latest"
    return None


def _is_broken(row: Row, version: Version, release: str, flavor: str | None) -> bool:
    if flavor is not None and row.get("flavor") not in (None, flavor):
        return False
    return contains_version(row, version) and not has_fix(row, version) and is_broken_with(row, release)


def _explain_broken(situation: Situation, release: str, rows: Sequence[Row]) -> str:
    flavors = {row.get("flavor") for row in rows}
    flavor = flavors.pop() if len(flavors) == 1 else None
    what = f"The {flavor} kernel modules of driver" if flavor else "The kernel modules of driver"
    return f"{what} {situation.driver} are known not to work with kernel {release}; use {join_choices(_find_alternatives(situation, rows, flavor))}."


def _find_alternatives(situation: Situation, rows: Sequence[Row], flavor: str | None) -> Iterator[str]:
    """The alternatives. A driver only if all rows name one and it supports the GPUs."""
    last = find_branches(situation.gpus)["last"]
    fixes = [str(row["fixed"]) for row in rows if row.get("fixed")]
    if len(fixes) == len(rows):
        fix = max(fixes, key=parse_version)
        if last is None or get_branch(parse_version(fix)) <= last:
            yield f"driver {fix} or newer"
    unwanted = IMPOSSIBLE if flavor == PROPRIETARY else REQUIRED
    if flavor is not None and all(gpu.open_modules != unwanted for gpu in situation.gpus):
        yield f"the {OPEN if flavor == PROPRIETARY else PROPRIETARY} ones"
    yield f"a kernel older than {min((str(start) for row in rows for start in row['kernels']), key=parse_version)}"


def check_security(situation: Situation, tables: Tables) -> Iterator[Finding]:
    """Check whether the driver has all security fixes of its branch; WARN if not."""
    rows = tables.get_rows("driver_security")
    version = situation.version
    own = next((row for row in rows if version is not None and row["branch"] == get_branch(version)), None)
    if version is None or own is None or version >= parse_version(own["driver"]):
        return
    latest = max(str(row["date"]) for row in rows)
    fit = list_supported(situation, tables)
    ways = [f"{own['driver']} or a newer one of its branch"]
    if str(own["date"]) < latest:
        # Its branch has no fixes of later bulletins.
        ways += [str(row["driver"]) for row in rows if str(row["date"]) == latest and row["branch"] in fit]
    message = (
        f"Driver {situation.driver} lacks the fixes of NVIDIA's security bulletin {own['bulletin']} of {own['date']}; "
        f"use {join_choices(ways)}."
    )
    yield Finding(WARN, "driver_security", message, str(own["source"]))


def check_support(situation: Situation, tables: Tables) -> Iterator[Finding]:
    """Check whether the driver's branch is known and NVIDIA supports it this month; WARN if not."""
    if situation.version is None:
        return
    number, known = get_branch(situation.version), tables.list_branches()
    if number not in known:
        message = (
            f"Nothing is known of driver branch {number} (known are {known[0]} to {known[-1]}, not all of them); "
            "look into NVIDIA's release notes of the driver."
        )
        yield Finding(WARN, "driver_branch", message)
    for row in tables.get_rows("driver_branches"):
        end = row.get("end")
        if row["branch"] == number and (row.get("ended") or (end is not None and str(end) < situation.today)):
            fit = list_supported(situation, tables)
            remedy = (
                f"use branch {join_choices(fit)}"
                if fit
                else "no supported branch is known that supports all GPUs of the host"
            )
            since = f" since {end}" if end is not None else ""
            message = f"NVIDIA no longer supports driver branch {number}{since}; {remedy}."
            yield Finding(WARN, "driver_branch", message, str(row["source"]))
