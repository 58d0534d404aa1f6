# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a module as a node does: a process of its own, arguments as JSON, an answer as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

PREFIX = "ansible_collections.gpu.kubernetes.plugins.modules."
WRAPPER = """
import json, sys
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args
import importlib
module = importlib.import_module(sys.argv[1])
with patch_module_args(json.loads(sys.stdin.read())):
    module.main()
"""


def run(name: str, *, check: bool = False, path: str | None = None, **arguments: Any) -> dict[str, Any]:
    """Run the module and return its answer; ``path`` replaces PATH, so that a test chooses the node's programs."""
    given = {**arguments, "_ansible_check_mode": check}
    environment = {**os.environ, **({"PATH": path} if path is not None else {})}
    done = subprocess.run(
        [sys.executable, "-c", WRAPPER, PREFIX + name],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.stdout.strip(), done.stderr
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer
