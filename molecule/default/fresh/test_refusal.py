# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run that cannot do its work ends in one sentence (host, cause, remedy) before any host or the cluster is changed.

What needs no cluster to be found out is in tests/unit.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import yaml

LAB = Path(__file__).resolve().parents[3] / ".lab" / "molecule"


def test_api_server_that_does_not_answer_ends_the_run(tmp_path: Path, refused: Callable[..., None]) -> None:
    config = yaml.safe_load((LAB / "kubeconfig").read_text())
    config["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    refused(["-e", f"gpu_kubeconfig={path}"], "127.0.0.1:1")
