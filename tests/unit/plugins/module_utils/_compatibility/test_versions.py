# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility import versions
from ansible_collections.gpu.kubernetes.plugins.module_utils._compatibility.versions import CompatibilityError


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("6.8.0-60-generic", (6, 8, 0)),
        ("5.14.0-427.el9.x86_64", (5, 14, 0)),
        ("6.12.48+deb13-amd64", (6, 12, 48)),
        ("6.17-rc3", (6, 17, 0)),
    ],
)
def test_parse_kernel_of_each_release(text: str, numbers: tuple[int, ...]) -> None:
    assert versions.parse_kernel(text) == numbers


def test_parse_version_compares_as_numbers() -> None:
    assert versions.parse_driver("570.9") < versions.parse_driver("570.26") < versions.parse_driver("570.124.06")
    assert versions.parse_driver("570.211.01") < versions.parse_driver("570") < versions.parse_driver("575.51.02")
    assert (
        versions.parse_driver("580.95.05-0ubuntu1")
        == versions.parse_driver("580.95.5")
        == versions.parse_driver("3:580.95.05-1")
    )
    assert versions.parse_driver("570") == versions.parse_driver("570.*") > versions.parse_driver("570.124.*")
    assert (
        versions.parse_driver("570.124.06") < versions.parse_driver("570.124.*") < versions.parse_driver("570.133.20")
    )
    with pytest.raises(CompatibilityError):
        versions.parse_version(12.8)
