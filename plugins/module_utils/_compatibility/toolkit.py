# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The judge of NVIDIA's container toolkit."""

from __future__ import annotations

from typing import Iterator

from .situation import WARN, Finding, Situation
from .tables import Tables, holds
from .versions import branch, dotted, leading, newest_of, parse


def judge(situation: Situation, tables: Tables) -> Iterator[Finding]:
    """Has the toolkit all security fixes, and none of the faults that are known? If not: WARN, since each depends on its use.

    WARN as well for one that is newer than all that a table tells of.
    """
    if situation.toolkit is None:
        return
    what = "container toolkit version"
    series = situation.toolkit.endswith(".*")  # its newest is meant
    version = newest_of(situation.toolkit[:-2], what) if series else leading(situation.toolkit, what)
    missing = [row for row in tables.rows("toolkit", "security") if version < parse(row["fixed"])]
    if missing:
        last = max(missing, key=lambda row: parse(row["fixed"]))
        cves = ", ".join(cve for row in missing for cve in row["cves"])
        message = f"NVIDIA's container toolkit {situation.toolkit} has security holes ({cves}); install {last['fixed']} or newer."
        yield Finding(WARN, "toolkit_security", message, str(last["source"]))
    for row in tables.rows("toolkit", "faults"):
        if holds(row, version) and row.get("branch") in (None, branch(situation.version or (0,))):
            message = f"NVIDIA's container toolkit {situation.toolkit} {row['fault']}; install {row['fixed']} or newer."
            yield Finding(WARN, "toolkit", message, str(row["source"]))
    newest = max((newest_of(row["to"]) for row in tables.rows("toolkit", "known")), default=None)
    if newest is not None and version > newest:
        message = (
            f"Nothing is known of NVIDIA's container toolkit {situation.toolkit} "
            f"(known are versions up to {dotted(newest[:-1])}); look into its release notes."
        )
        yield Finding(WARN, "toolkit", message)
