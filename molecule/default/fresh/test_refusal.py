# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that cannot succeed ends with one sentence (host, cause, remedy) before any host or the cluster is changed.

Refusals that need no cluster are in tests/unit.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import yaml

LAB = Path(__file__).resolve().parents[3] / ".lab" / "molecule"


def test_silent_api_server_ends_the_run(tmp_path: Path, expect_refusal: Callable[..., None]) -> None:
    config = yaml.safe_load((LAB / "kubeconfig").read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    expect_refusal(["-e", f"gpu_kubeconfig={path}"], "127.0.0.1:1")
