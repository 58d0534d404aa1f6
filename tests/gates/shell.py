# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""shellcheck on every shell script of the repository, found by its first line: ``python -m gates.shell``."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

from ._common import ROOT, lines, not_run, source_files

SHEBANG = re.compile(r"#!\s*/.*\b(ba|da|k)?sh\b")


def scripts() -> list[str]:
    """Source files that begin with the shebang of a shell."""
    candidates = [path for path in source_files() if not (ROOT / path).is_symlink()]
    return [str(path) for path in candidates if SHEBANG.match(next(lines(ROOT / path), (1, ""))[1])]


def main() -> int:
    """Exit status of shellcheck."""
    names = scripts()
    if not shutil.which("shellcheck"):
        return not_run("shellcheck: it is not installed")
    print(f"$ shellcheck {' '.join(names)}", flush=True)
    return (
        subprocess.run(["shellcheck", "--external-sources", *names], cwd=ROOT, check=False).returncode if names else 0
    )


if __name__ == "__main__":
    sys.exit(main())
