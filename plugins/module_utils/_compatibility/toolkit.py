# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks of NVIDIA's container toolkit."""

from __future__ import annotations

from typing import Iterator

from .situation import WARN, Finding, Situation
from .tables import Tables, contains_version
from .versions import format_version, get_branch, parse_newest, parse_package, parse_version


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
