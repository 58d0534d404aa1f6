# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module reads the folder that it is given, and is the same in check mode."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("ansible.module_utils.basic")

from fakes import gpu_sysfs

from ansible_collections.gpu.kubernetes.tests.unit.plugins.modules import node_module


def test_module_returns_the_devices_below_its_root(tmp_path: Path) -> None:
    gpu_sysfs.replace_tree(tmp_path, "amd-cpx")
    done = node_module.run("gpu_devices_info", {"root": str(tmp_path), "naming": "mixed"})
    assert (done["changed"], done["expected"], done["vendors"]) == (False, {"amd.com/cpx_nps4": 4}, ["amd"])
    assert done["plugins"][0]["resource"] == "amd.com/cpx_nps4"
    assert node_module.run("gpu_devices_info", {"root": str(tmp_path), "naming": "mixed"}, check=True) == done
