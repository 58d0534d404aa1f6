# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Task files of the role on a fake machine."""

from __future__ import annotations

import re

import pytest
from fakes.driver_machine import INVENTORY, Machine


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture
def apply(run, machine):
    """Run task files of the role: exit code, number of changed tasks, output in one line."""

    def play(files, *options, hosts=INVENTORY, **variables):
        code, output = run(hosts, machine.write_play(*files.split(), **variables), *options)
        return code, int(re.findall(r"\bchanged=(\d+)", output)[-1]), " ".join(output.split())

    return play
