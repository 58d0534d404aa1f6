# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judges of a CUDA toolkit, beside a driver and for the GPUs."""

from __future__ import annotations

from typing import Iterator

from . import versions
from .gpus import Gpu
from .situation import STOP, WARN, Finding, Situation
from .tables import Row, Tables
from .versions import Version, branch, parse


def with_driver(situation: Situation, tables: Tables) -> Iterator[Finding]:
    """Does the driver run what the toolkit makes?

    Below what the toolkit's major version needs it does not: STOP. From there up to the driver that the toolkit was made with it runs
    what needs nothing newer: WARN. Without a driver the toolkit itself works, and only a host with GPUs is warned. A toolkit that no
    table has gives WARN.
    """
    if situation.cuda is None:
        return
    own, floor = _own(situation.cuda, tables), _floor(situation.cuda, tables)
    if own is None:
        yield Finding(WARN, "cuda_driver", _unknown(situation.cuda, tables))
    least = min((row for row in (own, floor) if row), key=lambda row: parse(row["driver"]), default=None)
    if least is None:
        return
    version = situation.version
    if version is None:
        if situation.gpus:
            yield Finding(WARN, "cuda_driver", _without(situation.cuda, least), str(least["source"]))
    elif version < parse(least["driver"]):
        yield Finding(STOP, "cuda_driver", _too_old(situation, least, tables), str(least["source"]))
    elif own is not None and version < parse(own["driver"]):
        message = (
            f"Driver {situation.driver} runs programs of CUDA {situation.cuda} without the features that need a newer driver; "
            f"use driver {own['driver']} or newer for all of them."
        )
        yield Finding(WARN, "cuda_driver", message, str(own["source"]))


def _without(cuda: str, least: Row) -> str:
    return (
        f"CUDA {cuda} compiles without a driver, but no program of it runs here; "
        f"install driver {least['driver']} or newer to run them."
    )


def _too_old(situation: Situation, least: Row, tables: Tables) -> str:
    served = [row["cuda"] for row in tables.rows("cuda_driver", "newest") if row["branch"] == _branch(situation)]
    other = f", or CUDA {served[0]}, the newest that branch {_branch(situation)} serves" if served else ""
    return (
        f"Driver {situation.driver} is too old for programs of CUDA {situation.cuda}; "
        f"use driver {least['driver']} or newer{other}."
    )


def _branch(situation: Situation) -> int:
    return branch(situation.version or (0,))


def _own(cuda: str, tables: Tables) -> Row | None:
    """The toolkit's own row, of two numbers that of its first release; of an update that is in no row the one before it."""
    asked = versions.cuda(cuda)
    rows = [row for row in tables.rows("cuda_driver", "toolkits") if parse(row["cuda"])[:2] == asked[:2]]
    rows.sort(key=lambda row: parse(row["cuda"]))
    before = [row for row in rows if parse(row["cuda"]) <= asked]
    return before[-1] if before else next(iter(rows), None)


def _floor(cuda: str, tables: Tables) -> Row | None:
    rows = tables.rows("cuda_driver", "minor_versions")
    return next((row for row in rows if parse(row["cuda"]) == versions.cuda(cuda)[:1]), None)


def _unknown(cuda: str, tables: Tables) -> str:
    known = sorted(parse(row["cuda"])[:2] for row in tables.rows("cuda_driver", "toolkits"))
    return (
        f"Nothing is known of the driver that CUDA {cuda} was made with "
        f"(known are {versions.dotted(known[0])} to {versions.dotted(known[-1])}); "
        "look into NVIDIA's release notes of the toolkit."
    )


def for_gpus(situation: Situation, tables: Tables) -> Iterator[Finding]:
    """Does the toolkit make code for the GPUs? For none of them: STOP. Not for some, or if no table tells: WARN, once for each kind.

    A toolkit that knows the GPU's architecture and not yet its compute capability may make code that runs there: WARN.
    """
    if situation.cuda is None:
        return
    asked, kinds = versions.cuda(situation.cuda)[:2], situation.kinds()
    level = WARN if any(_may_run(gpu, asked, tables) for gpu in kinds) else STOP
    for gpu in kinds:
        row = _architecture(gpu, tables)
        if row is None:
            if gpu.architecture is not None:
                yield Finding(WARN, "cuda_gpu", _unknown_architecture(gpu))
            continue
        bound = _unserved(row, asked)
        if bound is not None:
            message = f"CUDA {situation.cuda} {_UNSERVED[bound].format(gpu=gpu, row=row)}"
            yield Finding(level, "cuda_gpu", message, str(row["source"]))


_UNSERVED = {
    "first": "does not know {gpu.label} ({gpu.architecture}) yet; use CUDA {row[first]} or newer for it.",
    "last": "makes no code for {gpu.label} ({gpu.architecture}) any more; use CUDA {row[last]} or older for it.",
}


def _unserved(row: Row, asked: Version) -> str | None:
    """The bound that keeps a toolkit from the GPUs of a row, if one does."""
    if asked < parse(row["first"]):
        return "first"
    return "last" if row.get("last") is not None and asked > parse(row["last"]) else None


def _may_run(gpu: Gpu, asked: Version, tables: Tables) -> bool:
    """Whether a toolkit's code may run on a GPU, as far as the tables tell: on one that came after it what brings PTX does."""
    row = _architecture(gpu, tables)
    return row is None or _unserved(row, asked) != "last"


def _unknown_architecture(gpu: Gpu) -> str:
    return (
        f"Nothing is known of the CUDA toolkits that make code for {gpu.label} ({gpu.architecture}); "
        "look into NVIDIA's release notes of the toolkit."
    )


def _architecture(gpu: Gpu, tables: Tables) -> Row | None:
    """The row of the GPU's compute capability, if there is one of its own, else that of its architecture."""
    rows = _rows(gpu, tables)
    for capability in (gpu.capability, None):
        for row in rows:
            if row.get("capability") == capability:
                return row
    return None


def _rows(gpu: Gpu, tables: Tables) -> list[Row]:
    return [row for row in tables.rows("cuda_gpu") if row["architecture"] == gpu.architecture]
