# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures with control planes. They require ruamel.yaml, which is not on nodes."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest

if t.TYPE_CHECKING:
    from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._scheduler.control_plane import ControlPlane

# The gate schedulers sets KUBE_SCHEDULERS and runs test_real.py.
collect_ignore = [] if os.environ.get("KUBE_SCHEDULERS") else ["test_real.py"]


@pytest.fixture
def plane(tmp_path: Path) -> ControlPlane:
    from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._scheduler.control_plane import ControlPlane

    return ControlPlane(tmp_path)


@pytest.fixture
def configured_plane(tmp_path: Path) -> ControlPlane:
    """A control plane whose kube-scheduler has a configuration, in a folder that is mounted."""
    from ansible_collections.gpu.kubernetes.tests.unit.plugins.module_utils._scheduler.control_plane import (
        CONFIG,
        OWN_EXTENDER,
        ControlPlane,
    )

    node = ControlPlane(tmp_path, "kubeadm-1.34.4-config.yaml")
    node.config = tmp_path / "sched" / "config.yaml"
    node.config.parent.mkdir()
    node.config.write_text(CONFIG.format(version="v1") + OWN_EXTENDER)
    return node
