# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The role in pieces, on a machine of fakes."""

from __future__ import annotations

import re

import pytest
from fakes.driver_machine import INVENTORY, Machine


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def apply(run, machine):
    """Run a part of the role: exit code, how many tasks changed something, what was said in one line."""

    def play(part, *options, hosts=INVENTORY, **asked):
        code, said = run(hosts, machine.play(*part.split(), **asked), *options)
        return code, int(re.findall(r"\bchanged=(\d+)", said)[-1]), " ".join(said.split())

    return play
