# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's tables, as the filter receives them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

FOLDER = Path(__file__).resolve().parents[5] / "roles" / "gpu_preflight" / "vars" / "compatibility"


@pytest.fixture(scope="session")
def tables() -> dict[str, Any]:
    """All tables by name."""
    found = {}
    for path in FOLDER.glob("*.yml"):
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert list(content) == [f"__gpu_preflight_compatibility_{path.stem}"]
        found[path.stem] = content[f"__gpu_preflight_compatibility_{path.stem}"]
    return found
