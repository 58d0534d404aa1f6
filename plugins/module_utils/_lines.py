# Copyright (c) 2026, the gpu.kubernetes authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of a report with a tone; who prints them chooses the colours."""

from __future__ import annotations

from typing import Iterable, Sequence, Tuple

# (text, tone); the tones are plain, strong, good, bad and weak
Line = Tuple[str, str]


def align_columns(rows: Sequence[tuple[Sequence[str], str]]) -> list[Line]:
    """Return rows of cells as lines with aligned columns."""
    widths = [max(map(len, column)) for column in zip(*(cells for cells, _tone in rows))]
    return [("  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip(), tone) for cells, tone in rows]


def render_section(title: str, entries: Iterable[str], tone: str, bullet: str = "- ") -> list[Line]:
    """Return an empty line, a title and the entries; nothing without entries."""
    listed: list[Line] = [(f"  {bullet}{entry}", tone) for entry in entries]
    return [("", "plain"), (title, "strong"), *listed] if listed else []
