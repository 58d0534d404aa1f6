# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks a situation by the tables: what is known not to work stops; what is not known to work, or not advisable, warns."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

from . import cluster, driver, versions
from .gpus import Gpu, choose_modules, choose_open_modules, find_branches
from .situation import STOP, WARN, Finding, Situation, read_situation
from .tables import Row, Tables, contains_version
from .versions import Version, format_version, get_branch, parse_newest, parse_package, parse_version

# -- the CUDA toolkit with a driver and with GPUs


def check_cuda_driver(situation: Situation, tables: Tables) -> Iterator[Finding]:
    """Check whether the driver runs programs of the toolkit.

    STOP for a driver that is older than the minimum of the toolkit's major version. WARN for one that is older than the driver of the
    toolkit's release, which runs programs without newer features; for a host with GPUs without a driver; and for a toolkit that is in
    no table.
    """
    if situation.cuda is None:
        return
    own, floor = _find_row(situation.cuda, tables), _find_minimum(situation.cuda, tables)
    if own is None:
        yield Finding(WARN, "cuda_driver", _explain_unknown(situation.cuda, tables))
    least = min((row for row in (own, floor) if row), key=lambda row: parse_version(row["driver"]), default=None)
    if least is None:
        return
    version = situation.version
    if version is None:
        if situation.gpus:
            yield Finding(WARN, "cuda_driver", _explain_missing_driver(situation.cuda, least), str(least["source"]))
    elif version < parse_version(least["driver"]):
        yield Finding(STOP, "cuda_driver", _explain_old_driver(situation, least, tables), str(least["source"]))
    elif own is not None and version < parse_version(own["driver"]):
        message = (
            f"Driver {situation.driver} runs programs of CUDA {situation.cuda} without the features that need a newer driver; "
            f"use driver {own['driver']} or newer for all of them."
        )
        yield Finding(WARN, "cuda_driver", message, str(own["source"]))


def _explain_missing_driver(cuda: str, least: Row) -> str:
    return (
        f"CUDA {cuda} compiles without a driver, but no program of it runs here; "
        f"install driver {least['driver']} or newer to run them."
    )


def _explain_old_driver(situation: Situation, least: Row, tables: Tables) -> str:
    supported = [
        row["cuda"] for row in tables.get_rows("cuda_driver", "newest") if row["branch"] == _get_branch(situation)
    ]
    other = f", or CUDA {supported[0]}, the newest that branch {_get_branch(situation)} supports" if supported else ""
    return (
        f"Driver {situation.driver} is too old for programs of CUDA {situation.cuda}; "
        f"use driver {least['driver']} or newer{other}."
    )


def _get_branch(situation: Situation) -> int:
    return get_branch(situation.version or (0,))


def _find_row(cuda: str, tables: Tables) -> Row | None:
    """The toolkit's row; for two numbers that of its first release, for an unknown update that of the update before it."""
    requested = versions.parse_cuda(cuda)
    rows = [
        row for row in tables.get_rows("cuda_driver", "toolkits") if parse_version(row["cuda"])[:2] == requested[:2]
    ]
    rows.sort(key=lambda row: parse_version(row["cuda"]))
    before = [row for row in rows if parse_version(row["cuda"]) <= requested]
    return before[-1] if before else next(iter(rows), None)


def _find_minimum(cuda: str, tables: Tables) -> Row | None:
    rows = tables.get_rows("cuda_driver", "minor_versions")
    return next((row for row in rows if parse_version(row["cuda"]) == versions.parse_cuda(cuda)[:1]), None)


def _explain_unknown(cuda: str, tables: Tables) -> str:
    known = sorted(parse_version(row["cuda"])[:2] for row in tables.get_rows("cuda_driver", "toolkits"))
    return (
        f"Nothing is known of the driver that CUDA {cuda} was made with "
        f"(known are {versions.format_version(known[0])} to {versions.format_version(known[-1])}); "
        "look into NVIDIA's release notes of the toolkit."
    )


def check_cuda_gpus(situation: Situation, tables: Tables) -> Iterator[Finding]:
    """Check whether the toolkit generates code for the GPUs, once for each kind.

    STOP if it does for none of them. WARN if not for some, if no table has the GPU, and if the toolkit knows its architecture but not
    its compute capability, because code for other capabilities may run there.
    """
    if situation.cuda is None:
        return
    requested, kinds = versions.parse_cuda(situation.cuda)[:2], situation.list_kinds()
    level = WARN if any(_can_run(gpu, requested, tables) for gpu in kinds) else STOP
    for gpu in kinds:
        row = _find_architecture(gpu, tables)
        if row is None:
            if gpu.architecture is not None:
                yield Finding(WARN, "cuda_gpu", _explain_unknown_gpu(gpu))
            continue
        bound = _find_bound(row, requested)
        if bound is not None:
            message = f"CUDA {situation.cuda} {_REASONS[bound].format(gpu=gpu, row=row)}"
            yield Finding(level, "cuda_gpu", message, str(row["source"]))


_REASONS = {
    "first": "does not know {gpu.label} ({gpu.architecture}) yet; use CUDA {row[first]} or newer for it.",
    "last": "no longer generates code for {gpu.label} ({gpu.architecture}); use CUDA {row[last]} or older for it.",
}


def _find_bound(row: Row, requested: Version) -> str | None:
    """The bound of a row that excludes a toolkit, if one does."""
    if requested < parse_version(row["first"]):
        return "first"
    return "last" if row.get("last") is not None and requested > parse_version(row["last"]) else None


def _can_run(gpu: Gpu, requested: Version, tables: Tables) -> bool:
    """Whether a toolkit's code may run on a GPU by the tables; on a newer GPU, code with PTX does."""
    row = _find_architecture(gpu, tables)
    return row is None or _find_bound(row, requested) != "last"


def _explain_unknown_gpu(gpu: Gpu) -> str:
    return (
        f"Nothing is known of the CUDA toolkits that make code for {gpu.label} ({gpu.architecture}); "
        "look into NVIDIA's release notes of the toolkit."
    )


def _find_architecture(gpu: Gpu, tables: Tables) -> Row | None:
    """The row of the GPU's compute capability, if there is one of its own, else that of its architecture."""
    rows = _list_rows(gpu, tables)
    for capability in (gpu.capability, None):
        for row in rows:
            if row.get("capability") == capability:
                return row
    return None


def _list_rows(gpu: Gpu, tables: Tables) -> list[Row]:
    return [row for row in tables.get_rows("cuda_gpu") if row["architecture"] == gpu.architecture]


# -- the container toolkit


def check_toolkit(situation: Situation, tables: Tables) -> Iterator[Finding]:
    """Check whether the toolkit has all security fixes and no known faults; WARN if not, because each depends on its use.

    WARN also for a toolkit that is newer than all tables.
    """
    if situation.toolkit is None:
        return
    what = "container toolkit version"
    series = situation.toolkit.endswith(".*")  # stands for its newest version
    version = parse_newest(situation.toolkit[:-2], what) if series else parse_package(situation.toolkit, what)
    missing = [row for row in tables.get_rows("toolkit", "security") if version < parse_version(row["fixed"])]
    if missing:
        last = max(missing, key=lambda row: parse_version(row["fixed"]))
        cves = ", ".join(cve for row in missing for cve in row["cves"])
        message = f"NVIDIA's container toolkit {situation.toolkit} has security holes ({cves}); install {last['fixed']} or newer."
        yield Finding(WARN, "toolkit_security", message, str(last["source"]))
    for row in tables.get_rows("toolkit", "faults"):
        if contains_version(row, version) and row.get("branch") in (None, get_branch(situation.version or (0,))):
            message = f"NVIDIA's container toolkit {situation.toolkit} {row['fault']}; install {row['fixed']} or newer."
            yield Finding(WARN, "toolkit", message, str(row["source"]))
    newest = max((parse_newest(row["to"]) for row in tables.get_rows("toolkit", "known")), default=None)
    if newest is not None and version > newest:
        message = (
            f"Nothing is known of NVIDIA's container toolkit {situation.toolkit} "
            f"(known are versions up to {format_version(newest[:-1])}); look into its release notes."
        )
        yield Finding(WARN, "toolkit", message)


# -- all checks


CHECKS = (
    driver.check_gpus,
    driver.check_modules,
    check_cuda_driver,
    check_cuda_gpus,
    driver.check_kernel,
    driver.check_security,
    driver.check_support,
    check_toolkit,
    cluster.check_containerd,
    cluster.check_plugin,
    cluster.check_cgroup_driver,
)


def check_compatibility(situation: Mapping[str, Any], tables: Mapping[str, Any], today: str) -> dict[str, Any]:
    """The findings on a situation in a month (``2026-05``), and the drivers for its GPUs.

    *situation* has any of the fields of situation.Situation; *tables* are those of tables.PARTS. The result has ``findings`` (those
    that stop first), ``kernel_modules``, ``open_kernel_modules`` and ``driver_branches``, as in gpus. Raises CompatibilityError.
    """
    known = Tables(tables)
    host = read_situation(situation, known, today)
    found = [finding for check in CHECKS for finding in check(host, known)]
    found.sort(key=lambda finding: finding.level != STOP)
    return {
        "findings": [finding._asdict() for finding in found],
        "kernel_modules": choose_modules(host.gpus),
        "open_kernel_modules": choose_open_modules(host.gpus),
        "driver_branches": find_branches(host.gpus),
    }
