# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A template finds a filter by the name of its file."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

if sys.version_info < (3, 11):
    pytest.skip("filters run on the controller", allow_module_level=True)

PACKAGE = "ansible_collections.gpu.kubernetes.plugins.filter"
FOLDER = Path(__file__).resolve().parents[4] / "plugins" / "filter"


def test_filters_are_named_as_files_and_documentation() -> None:
    yaml = pytest.importorskip("yaml")
    names = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
    assert names
    for name in names:
        module = importlib.import_module(f"{PACKAGE}.{name}")
        beside = FOLDER / f"{name}.yml"
        documentation = (
            yaml.safe_load(beside.read_text(encoding="utf-8"))["DOCUMENTATION"]
            if beside.exists()
            else yaml.safe_load(module.DOCUMENTATION)
        )
        assert (list(module.FilterModule().filters()), documentation["name"]) == ([name], name)
