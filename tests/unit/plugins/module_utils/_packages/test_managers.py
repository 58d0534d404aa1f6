# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

from ansible_collections.gpu.kubernetes.plugins.module_utils._packages.managers import MANAGERS

# Output of dnf 4.14, zypper 1.14 and pacman 6.0.
DNF_LOCKS = """Last metadata expiration check: 0:00:11 ago on Sun Nov 22 05:07:02 2026.
libnvidia-stub-ml-0:1.2.0-1.*
nvidia-stub-smi-3:1.2.0-1.el9.*
"""
# Not copied from a real dnf 5.
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
def test_parse_holds(manager: str, words: str, names: list[str]) -> None:
    hold_commands = MANAGERS[manager].hold_commands
    assert hold_commands is not None
    assert hold_commands.parse_holds(words) == names


def test_parse_unneeded_and_affected_packages() -> None:
    assert MANAGERS["zypper"].parse_unneeded(ZYPPER_UNNEEDED) == ["stub-helper", "other"]
    assert MANAGERS["zypper"].parse_requested(ZYPPER_UNNEEDED) == ["other"]
    assert MANAGERS["dnf"].parse_unneeded("stub-helper\n") == ["stub-helper"]
    assert "--installed" not in MANAGERS["dnf"].list_unneeded, "dnf 4 accepts only one of both options"
    assert MANAGERS["pacman"].parse_affected(PACMAN_BREAKS) == ["nvidia-stub-smi"]
