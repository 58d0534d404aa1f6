# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Does every source file name its owner and its licence? ``python -m gates.licences``."""

from __future__ import annotations

import sys

from ._common import ROOT, finish, lines, source_files

# REUSE-IgnoreStart
COPYRIGHT = "Copyright (c) 2026, the gpu.kubernetes authors"
LICENCE = "SPDX-License-Identifier: GPL-3.0-or-later"
# REUSE-IgnoreEnd
FULL = "GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)"
# Files without comments, or whose bytes a test needs. Templates begin with ansible_managed: their output
# belongs to the user.
NO_COMMENT = {".json", ".md", ".png", ".svg", ".gz", ".tar", ".asc", ".gpg", ".sum", ".golden", ".j2"}
COPY = "LICENSES/GPL-3.0-or-later.txt"  # where REUSE finds it
WITHOUT = {"LICENSE", COPY, "changelogs/changelog.yaml", "go.sum"}
DATA = ("fixtures", "testdata", "captures")
HEAD_LINES = 12  # lines from the top


def is_exempt(name: str) -> bool:
    """Whether a file, by its path relative to the root, needs no header."""
    parts = name.split("/")
    suffix = "." + parts[-1].rsplit(".", 1)[-1] if "." in parts[-1] else ""
    return name in WITHOUT or parts[-1] in WITHOUT or suffix in NO_COMMENT or any(part in DATA for part in parts[:-1])


def is_plugin(name: str) -> bool:
    """Whether ansible-test requires the long line, too."""
    return name.startswith("plugins/") and name.endswith(".py") and not name.endswith("__init__.py")


def problems(name: str, head: list[str]) -> list[str]:
    """The required lines that the head of a file does not have."""
    text = "\n".join(head)
    required = [COPYRIGHT, LICENCE] + ([FULL] if is_plugin(name) else [])
    return [f"{name}: not in its first {HEAD_LINES} lines: {line}" for line in required if line not in text]


def main() -> int:
    """Check the top of every source file."""
    same = (ROOT / "LICENSE").read_bytes() == (ROOT / COPY).read_bytes()
    found, count = [] if same else [f"{COPY}: differs from LICENSE"], 0
    for path in source_files():
        full = ROOT / path
        if full.is_symlink() or full.stat().st_size == 0 or is_exempt(path.as_posix()):
            continue
        head = [text for number, text in lines(full) if number <= HEAD_LINES]
        count += 1
        found += problems(path.as_posix(), head)
    return finish("licence headers", found, f"{count} files")


if __name__ == "__main__":
    sys.exit(main())
