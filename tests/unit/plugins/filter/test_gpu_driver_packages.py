# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter for packages of AMD's and Intel's drivers; the packages themselves are tested with their table."""

from __future__ import annotations

import pytest

pytest.importorskip("ansible.errors")

from ansible.errors import AnsibleFilterError

from ansible_collections.gpu.kubernetes.plugins.filter.gpu_driver_packages import FilterModule

HOST = {"distribution": "Ubuntu", "version": "24.04", "architecture": "x86_64", "kernel": "6.8.0-60-generic"}


def test_filter_returns_the_packages() -> None:
    packages = FilterModule().filters()["gpu_driver_packages"]
    assert packages("intel", HOST, "", ["56c0"])["packages"] == ["intel-i915-dkms"]


@pytest.mark.parametrize(("vendor", "host"), [("nvidia", HOST), ("amd", {}), ("amd", None)])
def test_input_of_another_form_is_refused(vendor: str, host: dict[str, str]) -> None:
    with pytest.raises(AnsibleFilterError, match="gpu_driver_packages cannot read its input"):
        FilterModule().filters()["gpu_driver_packages"](vendor, host)
