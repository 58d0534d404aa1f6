# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup returns the vendors of the catalogue."""

from __future__ import annotations

import pytest

pytest.importorskip("ansible.errors")

from ansible_collections.gpu.kubernetes.plugins.lookup.gpu_vendors import LookupModule
from ansible_collections.gpu.kubernetes.plugins.module_utils._vendors import BY_NAME


def test_each_vendor_has_a_row_with_its_driver_role_and_nvidia_is_last():
    rows = LookupModule().run([])
    assert {row["name"]: row["driver_role"] for row in rows} == {
        name: vendor.driver_role for name, vendor in BY_NAME.items()
    }
    assert [row["served"] for row in rows] == [False] * (len(rows) - 1) + [True]
    assert rows[-1]["name"] == "nvidia"
