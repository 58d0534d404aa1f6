# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The refusals of the role for the NVIDIA container toolkit."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._refusals import find_refusals

#: Facts and parameters with which nothing is refused.
ACCEPTED: dict[str, Any] = {
    "package_manager": "apt",
    "distribution": "Debian",
    "os_family": "Debian",
    "chooses_versions": True,
    "present": True,
    "managed": True,
    "usable": True,
    "path": "",
    "packaged": True,
    "version": "",
    "hold": False,
}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"package_manager": "", "distribution": "Alpine"}, "no package manager is known for Alpine"),
        (
            {"managed": False, "usable": False},
            "there is no usable nvidia-container-runtime and nvidia_container_toolkit_install is never",
        ),
        (
            {"usable": False, "path": "/x"},
            "the program /x is missing or does not run and the packages with it are installed already",
        ),
        ({"usable": False, "path": "/x", "packaged": False}, ""),
        ({"usable": False, "path": "/x", "present": False}, ""),
        # One refusal at a time: the others would contradict it.
        ({"package_manager": "", "present": False}, "no package manager"),
        ({"package_manager": "", "managed": False, "usable": False}, "no package manager"),
        (
            {"managed": False, "usable": False, "path": "/x"},
            "/x is missing or does not run and nvidia_container_toolkit_install is never",
        ),
        ({"managed": False, "usable": False, "version": "1.17.8"}, "there is no usable"),
        ({"managed": False, "version": "1.17.8"}, "would have no effect"),
        ({"managed": False, "hold": True}, "would have no effect"),
        ({"managed": False, "hold": True, "present": False}, ""),
        ({"version": "1.17.8", "hold": True}, ""),
        (
            {"version": "1.17.8", "chooses_versions": False, "package_manager": "pacman"},
            "pacman installs only the version of its repository",
        ),
        (
            {"hold": True, "chooses_versions": False, "package_manager": "pacman"},
            "this role holds no packages with pacman",
        ),
    ],
)
def test_toolkit_with_unsuitable_parameters_is_refused(facts: dict[str, Any], words: str) -> None:
    sentences = find_refusals({"toolkit": {**ACCEPTED, **facts}})
    assert len(sentences) == (1 if words else 0)
    assert words in " ".join(sentences)
