# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables: rows are mappings, each with its ``source``."""

from __future__ import annotations

from typing import Any, Mapping, Sequence

from .versions import CompatibilityError, Version, get_branch, parse_kernel, parse_newest, parse_version

Row = Mapping[str, Any]
#: Table and part of it ("" where the table is a list itself) -> what each of its rows must have.
PARTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("cuda_driver", "toolkits"): ("cuda", "driver"),
    ("cuda_driver", "minor_versions"): ("cuda", "driver"),
    ("cuda_driver", "newest"): ("branch", "cuda"),
    ("gpu_driver", "architectures"): ("architecture", "open_modules"),
    ("gpu_driver", "devices"): ("from", "to", "architecture"),
    ("gpu_driver", "exceptions"): ("from", "to"),
    ("gpu_driver", "others"): ("from", "to", "open_modules"),
    ("gpu_driver", "flavors"): ("flavor",),
    ("cuda_gpu", ""): ("architecture", "first"),
    ("driver_kernel", ""): ("from", "to", "kernels"),
    ("kernel_releases", ""): ("series", "date"),
    ("kubernetes", "containerd"): ("kubernetes", "containerd", "date"),
    ("kubernetes", "plugin"): ("from", "to", "date"),
    ("toolkit", "security"): ("fixed", "bulletin", "cves"),
    ("toolkit", "faults"): ("from", "to", "fault", "fixed"),
    ("toolkit", "known"): ("to",),
    ("driver_security", ""): ("branch", "driver", "bulletin", "date"),
    ("driver_branches", ""): ("branch",),
}


class Tables:
    """The tables by name, as their files hold them. Raises CompatibilityError for one that is missing or of another shape."""

    def __init__(self, tables: Mapping[str, Any]) -> None:
        self._rows = {place: _read_rows(tables, *place) for place in PARTS}

    def get_rows(self, table: str, part: str = "") -> Sequence[Row]:
        """The rows of a table or of a part of it."""
        return self._rows[table, part]

    def list_branches(self) -> list[int]:
        """All driver branches that a table names, the oldest first."""
        named = (*self.get_rows("cuda_driver", "newest"), *self.get_rows("driver_branches"))
        return sorted({int(row["branch"]) for row in named})

    def list_supported(self, today: str) -> list[int]:
        """The driver branches that are supported in a month (``2026-05``), the oldest first."""
        return sorted(
            int(row["branch"]) for row in self.get_rows("driver_branches") if str(row.get("end", "")) >= today
        )


def _read_rows(tables: Mapping[str, Any], table: str, part: str) -> list[Row]:
    where = f"{table}.{part}" if part else table
    try:
        found = tables[table][part] if part else tables[table]
    except (KeyError, TypeError, IndexError):
        raise CompatibilityError(f"the table {where} is missing; give all tables of the role gpu_preflight") from None
    if not isinstance(found, list):
        raise CompatibilityError(f"the table {where} is not a list; write one entry for each fact")
    for row in found:
        _check_row(where, row, PARTS[table, part])
    return found


def _check_row(where: str, row: Any, needed: Sequence[str]) -> None:
    if not isinstance(row, Mapping):
        raise CompatibilityError(f"an entry of the table {where} is {row!r}; write a dictionary")
    for name in (*needed, "source"):
        if row.get(name) in (None, "", []):
            raise CompatibilityError(f"an entry of the table {where} has no {name} ({dict(row)!r}); add it")


def contains_version(row: Row, version: Version) -> bool:
    """Whether a version is between ``from`` and ``to`` of a row; ``to`` includes all that begin with it."""
    return parse_version(row["from"]) <= version <= parse_newest(row["to"])


def has_fix(row: Row, version: Version) -> bool:
    """Whether a driver is one of the ``good`` ones of a row, or a later one of the same branch."""
    good = (parse_version(text) for text in row.get("good", ()))
    return any(get_branch(one) == get_branch(version) and one <= version for one in good)


def is_broken_with(row: Row, release: str) -> bool:
    """Whether a kernel is among the ``kernels`` of a row.

    One of three numbers stands for itself and the later ones of its series, one of two for its series and all later ones.
    """
    requested = parse_kernel(release)
    starts = [parse_version(text) for text in row["kernels"]]
    return any(start <= requested and (len(start) == 2 or start[:2] == requested[:2]) for start in starts)
