# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Libraries of the simulated NVML with a state of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.nvml import nvml_profile
from fakes.nvml.mig_calls import Compose
from fakes.nvml.simulated import NvmlBuilder


@pytest.fixture(scope="module")
def builder(tmp_path_factory: pytest.TempPathFactory) -> NvmlBuilder:
    return NvmlBuilder(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def compose(builder: NvmlBuilder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Compose:
    """Composes the library of a profile: the keys of ``gpu`` are those of its last section, MIG is as in ``mig``."""
    monkeypatch.setenv("NVML_STATE", str(tmp_path / "run" / "state"))
    monkeypatch.setenv("NVML_INFOROM", str(tmp_path / "lib" / "inforom"))
    monkeypatch.delenv("NVML_PROFILE", raising=False)
    places = iter(range(99))

    def library(name: str, mig: str = "enabled", gpu: str = "", **node: str) -> str:
        text = nvml_profile.profile_path(name).read_text(encoding="utf-8").replace("mig = disabled", f"mig = {mig}")
        text = nvml_profile.with_settings(f"{text}{gpu}\n", node)
        return builder.library_of(f"{tmp_path.name}-{next(places)}", text)

    return library
