# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.managers import MANAGERS

# What dnf 4.14, zypper 1.14 and pacman 6.0 say.
DNF_LOCKS = """Last metadata expiration check: 0:00:11 ago on Sun Nov 22 05:07:02 2026.
libnvidia-stub-ml-0:1.2.0-1.*
nvidia-stub-smi-3:1.2.0-1.el9.*
"""
# Written down from memory: no dnf 5 was at hand.
DNF5_LOCKS = """# Added by 'versionlock add' command on 2026-05-01 10:00:00
Package name: nvidia-stub-smi
evr = 1.2.0-1
"""
ZYPPER_LOCKS = """
# | Name              | Type    | Repository
--+-------------------+---------+-----------
1 | libnvidia-stub-ml | package | (any)
2 | nvidia-stub-smi   | package | (any)

"""
ZYPPER_NO_LOCKS = """
There are no package locks defined.

"""
ZYPPER_UNNEEDED = """S  | Repository         | Name        | Version | Arch
---+--------------------+-------------+---------+-------
i  | Stubs of the tests | stub-helper | 3.2-1   | noarch
i+ | @System            | other       | 1-1     | noarch
"""
PACMAN_BREAKS = """checking dependencies...
:: removing libnvidia-stub-ml breaks dependency 'libnvidia-stub-ml=1.2.0-1' required by nvidia-stub-smi
"""


@pytest.mark.parametrize(
    ("manager", "words", "names"),
    [
        ("dnf", DNF_LOCKS, ["libnvidia-stub-ml", "nvidia-stub-smi"]),
        ("dnf", DNF5_LOCKS, ["nvidia-stub-smi"]),
        ("zypper", ZYPPER_LOCKS, ["libnvidia-stub-ml", "nvidia-stub-smi"]),
        ("zypper", ZYPPER_NO_LOCKS, []),
    ],
)
def test_holds_are_read(manager: str, words: str, names: list[str]) -> None:
    holding = MANAGERS[manager].holding
    assert holding is not None
    assert holding.names(words) == names


def test_what_nothing_needs_and_what_depends_is_read() -> None:
    assert MANAGERS["zypper"].unneeded_names(ZYPPER_UNNEEDED) == ["stub-helper", "other"]
    assert MANAGERS["zypper"].requested_names(ZYPPER_UNNEEDED) == ["other"]
    assert MANAGERS["dnf"].unneeded_names("stub-helper\n") == ["stub-helper"]
    assert "--installed" not in MANAGERS["dnf"].unneeded, "dnf 4 takes one of the two alone"
    assert MANAGERS["pacman"].concerned(PACMAN_BREAKS) == ["nvidia-stub-smi"]
