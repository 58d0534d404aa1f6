# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Has a function of the plugins more than 50 lines? ruff counts statements only."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from ._common import ROOT, finish

MOST = 50


def find_long_functions() -> Iterator[str]:
    """Functions of plugins/ with more than MOST lines, with their decorators left out."""
    for path in sorted((ROOT / "plugins").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                count = (node.end_lineno or node.lineno) - node.lineno + 1
                if count > MOST:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {count} lines; split it to at most {MOST}"


def main() -> int:
    """Check the plugins."""
    return finish("lengths", list(find_long_functions()), f"functions of at most {MOST} lines")


if __name__ == "__main__":
    sys.exit(main())
