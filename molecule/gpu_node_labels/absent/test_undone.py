# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""After state absent no node has a label or a record of ours."""

from __future__ import annotations

from typing import Any


def test_labels_and_record_are_gone(api: Any) -> None:
    nodes = api.list_node().items
    assert len(nodes) == 3
    for node in nodes:
        assert not [key for key in node.metadata.labels if key.startswith("nvidia.com/") or key == "accelerator"]
        assert "gpu-kubernetes/managed-labels" not in (node.metadata.annotations or {})
