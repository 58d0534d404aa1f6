# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures with nodes. They require ruamel.yaml, which is not on nodes."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest

if t.TYPE_CHECKING:
    from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubelet.kubelet_node import Node


# The gate units sets KUBELETS and runs test_real.py.
collect_ignore = [] if os.environ.get("KUBELETS") else ["test_real.py"]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubelet.kubelet_node import Node

    return Node(tmp_path)


@pytest.fixture
def handwritten_node(tmp_path: Path) -> Node:
    """A node whose configuration was written by hand."""
    from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._kubelet.kubelet_node import (
        HANDWRITTEN,
        Node,
    )

    return Node(tmp_path, HANDWRITTEN)
