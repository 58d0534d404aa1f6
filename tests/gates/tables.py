# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When were the compatibility tables last compared with their sources? ``python -m gates.tables``.

Each table has the date in a comment. The gate warns of a table that is older than DAYS, and fails only if the date is missing: an old table
is not an error of the tested change.
"""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Mapping

from ._common import ROOT, finish

TABLES = ROOT / "roles" / "gpu_preflight" / "vars" / "compatibility"
DAYS = 180
DAY = re.compile(r"^# Compared with its sources on (\d{4}-\d{2}-\d{2})\.$", re.MULTILINE)


def compare(texts: Mapping[str, str], today: datetime.date) -> tuple[list[str], list[str]]:
    """Problems and warnings of the tables, by the text of each file."""
    problems, warnings = [], []
    for name, text in sorted(texts.items()):
        found = DAY.search(text)
        if found is None:
            problems.append(f"{name}: add the line '# Compared with its sources on YYYY-MM-DD.'")
        elif (today - datetime.date.fromisoformat(found.group(1))).days > DAYS:
            warnings.append(
                f"{name} was compared with its sources on {found.group(1)}, more than {DAYS} days ago: compare it again"
            )
    return problems, warnings


def main() -> int:
    """Check all tables; prints the warnings."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in TABLES.glob("*.yml")}
    problems, warnings = compare(texts, datetime.datetime.now(datetime.UTC).date())
    for warning in warnings:
        print(f"WARNING: {warning}")
    return finish("compatibility tables", problems, f"{len(texts)} tables, {len(warnings)} old")


if __name__ == "__main__":
    sys.exit(main())
