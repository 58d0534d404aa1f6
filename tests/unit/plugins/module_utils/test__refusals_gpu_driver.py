# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The refusals of the roles for AMD's and Intel's drivers."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._refusals import find_refusals

PLAN = {"problem": "", "unsupported_modules": False}
ACCEPTED: dict[str, Any] = {
    "role": "amdgpu_driver",
    "title": "AMD GPU driver",
    "source": "vendor",
    "recorded": True,
    "found": 2,
    "problems": ["GPU 0 has no driver: it is not loaded."],
    "plan": PLAN,
    "kernel": "6.8.0-60-generic",
    "named_headers": True,
    "unsupported_modules": False,
    "reboot": "never",
    "connection": "ssh",
}
#: Other facts, and the beginning of each sentence.
CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "vendor": ({}, []),
    "distribution": ({"source": "distribution", "recorded": False, "plan": {"problem": "none."}}, []),
    "no-gpu": ({"found": 0, "problems": ["no AMD GPU was found."]}, ["no AMD GPU was found."]),
    "recorded": (
        {"source": "distribution"},
        ["this role installed the AMD GPU driver from the vendor's packages, and amdgpu_driver_source is"],
    ),
    "no-packages": ({"plan": {"problem": "AMD has none."}, "named_headers": False}, ["AMD has none."]),
    "headers": (
        {"named_headers": False},
        ["the package name of the headers for the running kernel 6.8.0-60-generic is not known"],
    ),
    "unsupported": (
        {"plan": {**PLAN, "unsupported_modules": True}},
        ["modprobe of this distribution does not load the modules"],
    ),
    "allowed": ({"plan": {**PLAN, "unsupported_modules": True}, "unsupported_modules": True}, []),
    "local": (
        {"reboot": "if_needed", "connection": "local"},
        ["amdgpu_driver_reboot is if_needed, and the connection is local"],
    ),
    "local-without-reboot": ({"connection": "local"}, []),
    "remote": ({"reboot": "if_needed"}, []),
}


@pytest.mark.parametrize("name", CASES)
def test_refusals_of_the_drivers_of_amd_and_intel(name: str) -> None:
    facts, beginnings = CASES[name]
    found = find_refusals({"gpu_driver": {**ACCEPTED, **facts}})
    assert len(found) == len(beginnings)
    for sentence, beginning in zip(found, beginnings):
        assert sentence.startswith(beginning)
        assert sentence.endswith(".")
