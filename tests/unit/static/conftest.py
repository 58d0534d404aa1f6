# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests that only read files run for every change; those that run ansible-playbook, for changes of their role or of playbooks."""

from __future__ import annotations

import pytest


@pytest.fixture
def run() -> None:
    """Fail a test of this folder that would run ansible-playbook, since evaluate and refusals use this fixture."""
    pytest.fail("move this test to tests/unit/roles or tests/unit/playbooks: the tests of this folder only read files")
