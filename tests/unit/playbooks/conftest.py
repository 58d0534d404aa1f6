# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbooks are run as users run them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def run(tmp_path):
    """Run a playbook on an inventory: exit code and all that it said."""

    def run_playbook(inventory, playbook, *options, environment=None, **extra):
        hosts = tmp_path / "inventory"
        hosts.write_text(inventory)
        command = ["-m", "ansible", "playbook", "--inventory", hosts, "--extra-vars", json.dumps(extra)]
        done = subprocess.run(
            [sys.executable, *command, *options, playbook],
            cwd=str(ROOT),
            env={
                **os.environ,
                "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
                **(environment or {}),
            },
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run_playbook
