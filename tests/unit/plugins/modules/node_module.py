# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module as a node does: a process of its own, arguments as JSON, an answer as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import yaml

PREFIX = "ansible_collections.gpu.kubernetes.plugins.modules."


def run(name: str, arguments: dict[str, Any], *, check: bool = False, folder: str = "") -> dict[str, Any]:
    """Run the module and return its answer; programs in ``folder`` come before those of the machine."""
    places = [place for place in sys.path if place]
    code = f"import sys; sys.path[:0] = {places!r}; import {PREFIX}{name} as m; m.main()"
    given = {**arguments, "_ansible_check_mode": check, "_ansible_diff": True}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps({"ANSIBLE_MODULE_ARGS": given}),
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}" if folder else os.environ["PATH"]},
    )
    assert done.stdout.strip(), done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def documented_arguments(documentation: str) -> dict[str, Any]:
    """Return what DOCUMENTATION says of the options, in the form of an argument spec."""
    kept = ("type", "default", "choices", "elements", "required")
    options = yaml.safe_load(documentation)["options"]
    return {
        name: {key: list(option[key]) if key == "choices" else option[key] for key in kept if key in option}
        for name, option in options.items()
    }
