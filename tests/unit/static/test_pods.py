# Copyright (c) 2026, the gpu.kubernetes authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No role has pods that the test of their limits and rights does not know. It runs for every change: another role is what it is about."""

from __future__ import annotations

import re

from ansible_collections.gpu.kubernetes.tests.unit.ansible_runs import ROOT
from ansible_collections.gpu.kubernetes.tests.unit.roles.kube_objects.test_pods import ROLES


def test_every_role_that_has_containers_is_in_the_table():
    files = [
        path for part in ("vars", "tasks", "templates", "defaults") for path in ROOT.glob(f"roles/*/{part}/**/*.*")
    ]
    roles = {
        path.relative_to(ROOT / "roles").parts[0] for path in files if re.search(r"\bcontainers:", path.read_text())
    }
    assert roles == set(ROLES)
    plugins = {path.name for path in ROOT.glob("plugins/**/*.py") if re.search(r'"kind": "Pod",', path.read_text())}
    assert plugins == {"pod.py"}
